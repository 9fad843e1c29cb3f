//! What a call is about, where its path does not say: told by its handler, for the audit log.
//!
//! Promise: it costs nothing where no log wants it, and no list makes a line long.

use std::fmt::{Display, Write};
use std::sync::{Arc, OnceLock};

/// Longest text; of a longer list the first names are told, and how many there were.
const BYTES_MAX: usize = 256;

/// A place for the words. Copies share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Subject(Option<Arc<OnceLock<String>>>);

impl Subject {
    /// One that is listened to, or not.
    pub(super) fn heard(wanted: bool) -> Subject {
        Subject(wanted.then(Arc::default))
    }

    /// Says what the call is about; the first word counts.
    pub(super) fn is(&self, words: impl FnOnce() -> String) {
        let Some(place) = &self.0 else { return };
        place.get_or_init(|| {
            let mut words = words();
            if words.len() > BYTES_MAX {
                let end = (0..=BYTES_MAX).rev().find(|end| words.is_char_boundary(*end));
                words.truncate(end.unwrap_or(0));
                words.push_str("...");
            }
            words
        });
    }

    /// Says that it is about these.
    pub(super) fn are<T: Display>(&self, names: impl ExactSizeIterator<Item = T>) {
        self.is(|| list(names));
    }

    /// What was said.
    pub(super) fn said(&self) -> Option<&str> {
        self.0.as_ref()?.get().map(String::as_str)
    }
}

fn list<T: Display>(mut names: impl ExactSizeIterator<Item = T>) -> String {
    let mut text = String::new();
    while let Some(name) = names.next() {
        let before = text.len();
        let comma = if before > 0 { "," } else { "" };
        // Writing to a text cannot fail.
        let _ = write!(text, "{comma}{name}");
        let left = names.len();
        if left > 0 && text.len() > BYTES_MAX / 2 {
            let _ = write!(text, " and {left} more");
            break;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x_15_what_a_call_is_about_is_told_shortly_and_only_if_asked() {
        let silent = Subject::heard(false);
        silent.is(|| unreachable!("nobody listens"));
        assert_eq!(silent.said(), None);
        let subject = Subject::heard(true);
        subject.are(["a", "b"].iter());
        subject.is(|| "later".to_owned());
        assert_eq!(subject.said(), Some("a,b"));
        let many = Subject::heard(true);
        many.are((0..1_000).map(|number| format!("task-{number}")));
        let said = many.said().unwrap();
        assert!(said.starts_with("task-0,task-1,") && said.ends_with(" more"), "{said}");
        assert!(said.len() <= BYTES_MAX);
        let long = Subject::heard(true);
        long.is(|| "\u{e9}".repeat(1_000));
        assert!(long.said().unwrap().len() <= BYTES_MAX + 3);
    }
}
