//! One line per event, and a running hash over all of them.
//!
//! The same seed must give the same bytes (S-2). The hash is always kept, over the numbers of each event, and costs
//! nanoseconds; text is written only when someone wants to read it (`replay`, `meta`, `run --trace`).
//!
//! Invariant: two traces with equal text have equal hashes; an event whose content matters (a frame, an answer)
//! contributes a hash of that content as one of its numbers.

use std::fmt::Write as _;

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// What one event looked like.
#[derive(Debug, Clone, Copy)]
pub struct Line {
    /// True time.
    pub at_us: u64,
    /// The node it concerns; 0 for the world at large.
    pub node: u64,
    /// What happened, one stable word.
    pub what: &'static str,
    /// Two numbers whose meaning depends on `what`.
    pub numbers: (u64, u64),
}

/// The trace of one run.
#[derive(Debug, Default)]
pub struct Trace {
    hash: u64,
    lines: u64,
    text: Option<String>,
}

impl Trace {
    /// A trace that keeps its hash, and its text if asked to.
    pub fn new(with_text: bool) -> Self {
        Self { hash: 0, lines: 0, text: with_text.then(String::new) }
    }

    /// Adds one line; `detail` is called only when text is kept.
    pub fn add(&mut self, line: Line, detail: impl FnOnce(&mut String)) {
        self.lines += 1;
        let mut bytes = [0u8; 40];
        bytes[..8].copy_from_slice(&line.at_us.to_le_bytes());
        bytes[8..16].copy_from_slice(&line.node.to_le_bytes());
        bytes[16..24].copy_from_slice(&line.numbers.0.to_le_bytes());
        bytes[24..32].copy_from_slice(&line.numbers.1.to_le_bytes());
        let word = line.what.as_bytes();
        let cut = word.len().min(8);
        bytes[32..32 + cut].copy_from_slice(&word[..cut]);
        self.hash = xxh3_64_with_seed(&bytes, self.hash);
        if let Some(text) = &mut self.text {
            let (seconds, micros) = (line.at_us / 1_000_000, line.at_us % 1_000_000);
            let _ = write!(
                text,
                "{:>8} {seconds:>5}.{micros:06} n{} {} {:x} {:x}",
                self.lines, line.node, line.what, line.numbers.0, line.numbers.1
            );
            let before = text.len();
            text.push(' ');
            detail(text);
            if text.len() == before + 1 {
                text.pop();
            }
            text.push('\n');
        }
    }

    /// Hash over all lines so far.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// How many lines there are.
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// The text, if it is kept.
    pub fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// Takes the text written since the last call, for a reader that follows along.
    pub fn take_text(&mut self) -> String {
        self.text.as_mut().map(std::mem::take).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(what: &'static str, number: u64) -> Line {
        Line { at_us: 1_500_000, node: 2, what, numbers: (number, 0) }
    }

    #[test]
    fn hash_is_the_same_with_and_without_text() {
        let mut plain = Trace::new(false);
        let mut written = Trace::new(true);
        for trace in [&mut plain, &mut written] {
            trace.add(line("frame", 7), |text| text.push_str("to n3"));
        }
        assert_eq!(plain.hash(), written.hash());
        assert_eq!(written.text(), Some("       1     1.500000 n2 frame 7 0 to n3\n"));
    }

    #[test]
    fn a_changed_number_changes_the_hash() {
        let (mut one, mut other) = (Trace::new(false), Trace::new(false));
        one.add(line("frame", 7), |_| {});
        other.add(line("frame", 8), |_| {});
        assert_ne!(one.hash(), other.hash());
    }
}
