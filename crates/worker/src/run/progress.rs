//! How far the running attempts are, as their handlers say: the next renewal takes it along.
//!
//! Promise: a word costs no call of its own, and the newest is the one that is told. Bounded by the slots: a word goes
//! with its attempt.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use ikada_api::v1::ProgressBody;

/// The newest word of each attempt, by task and fence; clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Board(Arc<Mutex<BTreeMap<(String, u64), ProgressBody>>>);

impl Board {
    /// Puts a word up. A share outside of 0 to 1 is drawn to the nearer end.
    pub(crate) fn say(&self, id: &str, fence: u64, share: f64, note: &str) {
        let permille = (share.clamp(0.0, 1.0) * 1000.0).round() as u16;
        let word = ProgressBody { permille, note: note.to_owned() };
        self.look(|words| words.insert((id.to_owned(), fence), word));
    }

    /// The newest word of an attempt.
    pub(super) fn said(&self, id: &str, fence: u64) -> Option<ProgressBody> {
        self.look(|words| words.get(&(id.to_owned(), fence)).cloned())
    }

    /// The attempt has ended.
    pub(super) fn forget(&self, id: &str, fence: u64) {
        self.look(|words| words.remove(&(id.to_owned(), fence)));
    }

    fn look<T>(&self, see: impl FnOnce(&mut BTreeMap<(String, u64), ProgressBody>) -> T) -> T {
        // Nobody panics while holding it; if somebody did, the words are still good.
        see(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tq_19_the_newest_word_of_an_attempt_is_told_until_it_ends() {
        let board = Board::default();
        board.say("a", 7, 0.25, "one of four");
        board.say("a", 7, 7.0, "");
        assert_eq!(board.said("a", 8), None, "another attempt");
        assert_eq!(board.said("a", 7).map(|word| word.permille), Some(1000));
        board.say("b", 1, f64::NAN, "");
        assert_eq!(board.said("b", 1).map(|word| word.permille), Some(0));
        board.forget("a", 7);
        assert_eq!(board.said("a", 7), None);
    }
}
