//! Colours of states, so that trouble is seen at a glance. They add nothing that the words do not say.

/// Cells under these headings are words for a state, and so are the values beside these names.
const STATES: [&str; 8] =
    ["state", "status", "outcome", "verdict", "link", "role", "reason", "dead because"];

const GOOD: &[&str] = &[
    "done",
    "completed",
    "created",
    "existing",
    "healthy",
    "up",
    "good",
    "active",
    "ok",
    "leader",
    "renewed",
    "retried",
    "alive",
    "ready",
];
const BAD: &[&str] = &[
    "dead",
    "error",
    "failed",
    "refused",
    "down",
    "lost",
    "bad",
    "unavailable",
    "unhealthy",
    "expired",
    "unknown",
    "degraded",
];
const BUSY: &[&str] = &["claimed", "in_progress", "running", "candidate", "retrying"];
const HELD: &[&str] =
    &["paused", "cancelled", "scheduled", "doubtful", "suspect", "draining", "cordoned", "missing"];

/// Whether colours are wanted: `NO_COLOR` says no, and so does a terminal that has none.
pub(super) fn is_wanted(set: impl Fn(&str) -> Option<String>) -> bool {
    let off = set("NO_COLOR").is_some_and(|value| !value.is_empty());
    !off && set("TERM").as_deref() != Some("dumb")
}

/// A heading.
pub(super) fn paint_heading(text: &str) -> String {
    format!("\u{1b}[1m{text}\u{1b}[0m")
}

/// A cell of a column; of two columns the first may name what the second holds.
pub(super) fn paint(heading: &str, row: &[String], text: &str) -> String {
    let named = heading == "value" && row.first().is_some_and(|name| STATES.contains(&&**name));
    if !named && !STATES.contains(&heading) {
        return text.to_owned();
    }
    let word = text.trim().to_lowercase();
    let holds = |words: &[&str]| words.contains(&&*word);
    let colour = match () {
        () if holds(GOOD) => 32,
        () if holds(BAD) => 31,
        () if holds(BUSY) => 36,
        () if holds(HELD) => 33,
        () => return text.to_owned(),
    };
    format!("\u{1b}[{colour}m{text}\u{1b}[0m")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_color_and_dumb_terminals_are_honoured() {
        let with = |name: &'static str, value: &'static str| {
            is_wanted(move |asked| (asked == name).then(|| value.to_owned()))
        };
        assert!(with("TERM", "xterm"));
        assert!(with("NO_COLOR", ""), "an empty value sets nothing");
        assert!(!with("NO_COLOR", "1"));
        assert!(!with("TERM", "dumb"));
    }

    #[test]
    fn only_words_for_states_are_coloured() {
        let row = ["a".to_owned(), "dead".to_owned()];
        assert_eq!(paint("state", &row, "dead"), "\u{1b}[31mdead\u{1b}[0m");
        assert_eq!(paint("id", &row, "dead"), "dead", "a task may be named so");
        let fact = ["state".to_owned(), "done".to_owned()];
        assert_eq!(paint("value", &fact, "done"), "\u{1b}[32mdone\u{1b}[0m");
        let payload = ["payload".to_owned(), "done".to_owned()];
        assert_eq!(paint("value", &payload, "done"), "done");
    }
}
