//! `merge`: puts outputs together. Lines of a key, a tab and a number are summed by key; if any line is something else,
//! all lines are kept as they came.

use std::collections::BTreeMap;

use super::{BuiltinError, Counts, Made, Program};

pub(super) struct Merge {
    sums: Counts,
    /// All lines so far; only grows while lines are no sums.
    lines: Vec<u8>,
    plain: bool,
    /// The line that may go on with the next bytes.
    open: Vec<u8>,
}

impl Merge {
    pub(super) fn new(_: &BTreeMap<String, String>) -> Result<Merge, BuiltinError> {
        let sums = Counts::new(true);
        Ok(Merge { sums, lines: Vec::new(), plain: false, open: Vec::new() })
    }

    fn line(&mut self, line: &[u8]) {
        let pair = line.iter().rposition(|byte| *byte == b'\t').and_then(|tab| {
            let number = std::str::from_utf8(&line[tab + 1..]).ok()?.parse::<u64>().ok()?;
            Some((&line[..tab], number))
        });
        match pair {
            Some((key, number)) if !self.plain => self.sums.add(key, number),
            _ => {
                if !self.plain && !self.sums.is_empty() {
                    // What was summed so far was meant as plain lines, too.
                    self.lines = std::mem::take(&mut self.sums).lines();
                }
                self.plain = true;
                self.lines.extend_from_slice(line);
                self.lines.push(b'\n');
            }
        }
    }
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

    fn finish(self: Box<Self>) -> (Made, serde_json::Value) {
        if self.plain {
            let count = self.lines.iter().filter(|byte| **byte == b'\n').count();
            return (
                vec![("lines.txt".to_owned(), self.lines)],
                serde_json::json!({"lines": count}),
            );
        }
        let sorted = self.sums.sorted();
        let total: u64 = sorted.iter().map(|(_, count)| count).sum();
        let result = serde_json::json!({ "sum": total, "different": sorted.len() });
        (vec![("counts.tsv".to_owned(), self.sums.lines())], result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(inputs: &[&str]) -> String {
        let mut merge = Box::new(Merge::new(&BTreeMap::new()).unwrap());
        for input in inputs {
            merge.begin("x");
            input.as_bytes().chunks(3).for_each(|part| merge.feed(part));
            merge.end();
        }
        let (mut files, _) = merge.finish();
        String::from_utf8(files.remove(0).1).unwrap()
    }

    #[test]
    fn numbers_are_summed_and_other_lines_kept() {
        assert_eq!(merged(&["a\t1\nb\t2\n", "b\t3\nc\t1"]), "b\t5\na\t1\nc\t1\n");
        assert_eq!(merged(&["one line\n", "two\t2\n"]), "one line\ntwo\t2\n");
        assert_eq!(merged(&[]), "");
    }
}
