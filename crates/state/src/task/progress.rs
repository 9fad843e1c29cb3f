//! How far an attempt is, in its worker's own words.
//!
//! Never in the log and never in a snapshot: it comes with renewals and is kept by the shard's leader alone
//! (`replica/liveness.rs`), so that a new leader knows it again from the next renewal on.

use minicbor::{Decode, Encode};

use crate::limits::PROGRESS_NOTE_BYTES_MAX;

/// The newest word about an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Progress {
    /// What is done, in thousandths.
    #[n(0)]
    pub permille: u16,
    /// What its worker says beside the figure; may be empty.
    #[n(1)]
    pub note: String,
}

impl Progress {
    /// A word within its bounds: the figure at most 1000, the note cut at a whole character.
    pub fn new(permille: u16, note: &str) -> Progress {
        let bytes_max = PROGRESS_NOTE_BYTES_MAX.min(note.len());
        let end = (0..=bytes_max).rev().find(|end| note.is_char_boundary(*end)).unwrap_or(0);
        Progress { permille: permille.min(1000), note: note[..end].to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tq_19_a_word_about_progress_is_cut_to_its_bounds() {
        let long = Progress::new(2_000, &"ä".repeat(PROGRESS_NOTE_BYTES_MAX));
        assert_eq!(long.permille, 1000);
        assert_eq!(long.note, "ä".repeat(PROGRESS_NOTE_BYTES_MAX / 2));
        assert_eq!(Progress::new(5, "half").note, "half");
    }
}
