//! `merge`: puts outputs together. Lines of a key, a tab and a number are summed by key; if any line is something else,
//! all lines are kept as they came.
//!
//! Whether all lines are sums is known at the end only. A line that is none, after others that were, makes the inputs be read
//! once more, for their lines: so only sums or only lines are ever in memory.

use std::collections::BTreeMap;

use super::wordcount::lines;
use super::{BuiltinError, Counts, Made, Program};

/// What is made of the lines.
enum Mode {
    /// All so far are sums.
    Sums(Counts),
    /// A line is none after others were: the lines before it are needed again.
    Mixed,
    /// All lines so far, as they came.
    Lines(Vec<u8>),
}

pub(super) struct Merge {
    mode: Mode,
    /// The line that may go on with the next bytes.
    open: Vec<u8>,
}

impl Merge {
    pub(super) fn new(_: &BTreeMap<String, String>) -> Result<Merge, BuiltinError> {
        Ok(Merge { mode: Mode::Sums(Counts::new(true)), open: Vec::new() })
    }

    fn line(&mut self, line: &[u8]) {
        if let Mode::Sums(sums) = &mut self.mode {
            match pair(line) {
                Some((key, number)) => return sums.add(key, number),
                None if sums.is_empty() => self.mode = Mode::Lines(Vec::new()),
                None => self.mode = Mode::Mixed,
            }
        }
        if let Mode::Lines(lines) = &mut self.mode {
            lines.extend_from_slice(line);
            lines.push(b'\n');
        }
    }
}

/// A key and its number.
fn pair(line: &[u8]) -> Option<(&[u8], u64)> {
    let tab = line.iter().rposition(|byte| *byte == b'\t')?;
    let number = std::str::from_utf8(&line[tab + 1..]).ok()?.parse::<u64>().ok()?;
    Some((&line[..tab], number))
}

impl Program for Merge {
    fn begin(&mut self, _: &str) {}

    fn feed(&mut self, bytes: &[u8]) {
        let mut parts = bytes.split(|byte| *byte == b'\n');
        let last = parts.next_back().unwrap_or_default();
        for part in parts {
            match self.open.is_empty() {
                true => self.line(part),
                false => {
                    let mut whole = std::mem::take(&mut self.open);
                    whole.extend_from_slice(part);
                    self.line(&whole);
                }
            }
        }
        self.open.extend_from_slice(last);
    }

    fn end(&mut self) {
        if !self.open.is_empty() {
            let line = std::mem::take(&mut self.open);
            self.line(&line);
        }
    }

    fn kept(&self) -> usize {
        let kept = match &self.mode {
            Mode::Sums(sums) => sums.bytes(),
            Mode::Mixed => 0,
            Mode::Lines(lines) => lines.len(),
        };
        self.open.len() + kept
    }

    fn wants_again(&mut self) -> bool {
        let mixed = matches!(self.mode, Mode::Mixed);
        if mixed {
            (self.mode, self.open) = (Mode::Lines(Vec::new()), Vec::new());
        }
        mixed
    }

    fn finish(self: Box<Self>) -> (Made, serde_json::Value) {
        let sums = match self.mode {
            Mode::Sums(sums) => sums,
            // Mixed lines are read again before anything is made of them.
            Mode::Mixed => Counts::new(true),
            Mode::Lines(lines) => {
                let count = lines.iter().filter(|byte| **byte == b'\n').count();
                let result = serde_json::json!({ "lines": count });
                return (vec![("lines.txt".to_owned(), lines)], result);
            }
        };
        let sorted = sums.sorted();
        let total: u64 = sorted.iter().map(|(_, count)| count).sum();
        let result = serde_json::json!({ "sum": total, "different": sorted.len() });
        (vec![("counts.tsv".to_owned(), lines(&sorted))], result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(inputs: &[&str]) -> String {
        let mut merge = Box::new(Merge::new(&BTreeMap::new()).unwrap());
        let mut readings = 0;
        while readings == 0 || merge.wants_again() {
            readings += 1;
            for input in inputs {
                merge.begin("x");
                input.as_bytes().chunks(3).for_each(|part| merge.feed(part));
                merge.end();
            }
        }
        assert!(readings <= 2, "read {readings} times");
        let (mut files, _) = merge.finish();
        String::from_utf8(files.remove(0).1).unwrap()
    }

    #[test]
    fn numbers_are_summed_and_other_lines_kept() {
        assert_eq!(merged(&["a\t1\nb\t2\n", "b\t3\nc\t1"]), "b\t5\na\t1\nc\t1\n");
        assert_eq!(merged(&["one line\n", "two\t2\n"]), "one line\ntwo\t2\n");
        assert_eq!(merged(&[]), "");
    }

    #[test]
    fn b4_32_one_line_that_is_no_sum_keeps_all_lines_as_they_came() {
        assert_eq!(merged(&["b\t1\na\t1\n", "b\t1\nx"]), "b\t1\na\t1\nb\t1\nx\n");
        assert_eq!(merged(&["b\t1\nx", "b\t1\n"]), "b\t1\nx\nb\t1\n");
    }
}
