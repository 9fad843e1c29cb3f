//! `grep`: lines that hold a text. Settings: `pattern` (the text itself, no expression), `case` (`keep`, `fold`).

use std::collections::BTreeMap;

use super::{BuiltinError, Made, Program, word};

pub(super) struct Grep {
    pattern: Vec<u8>,
    fold: bool,
    name: String,
    number: u64,
    open: Vec<u8>,
    found: Vec<u8>,
    count: u64,
}

impl Grep {
    pub(super) fn new(settings: &BTreeMap<String, String>) -> Result<Grep, BuiltinError> {
        let pattern = settings.get("pattern").filter(|pattern| !pattern.is_empty());
        let pattern = pattern.ok_or_else(|| {
            BuiltinError::Hopeless("grep needs the setting pattern, as in --set pattern=war".into())
        })?;
        let fold = word(settings, "case", &["keep", "fold"])? == "fold";
        let mut pattern = pattern.clone().into_bytes();
        if fold {
            pattern.make_ascii_lowercase();
        }
        let name = String::new();
        Ok(Grep { pattern, fold, name, number: 0, open: Vec::new(), found: Vec::new(), count: 0 })
    }

    fn line(&mut self, line: &[u8]) {
        self.number += 1;
        let folded = self.fold.then(|| line.to_ascii_lowercase());
        let seen = folded.as_deref().unwrap_or(line);
        if seen.windows(self.pattern.len()).any(|window| window == self.pattern) {
            self.count += 1;
            self.found.extend_from_slice(format!("{}:{}:", self.name, self.number).as_bytes());
            self.found.extend_from_slice(line);
            self.found.push(b'\n');
        }
    }
}

impl Program for Grep {
    fn begin(&mut self, name: &str) {
        (self.name, self.number) = (name.to_owned(), 0);
    }

    fn feed(&mut self, bytes: &[u8]) {
        let mut parts = bytes.split(|byte| *byte == b'\n');
        let last = parts.next_back().unwrap_or_default();
        for part in parts {
            let mut whole = std::mem::take(&mut self.open);
            whole.extend_from_slice(part);
            self.line(&whole);
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
        self.open.len() + self.found.len()
    }

    fn finish(self: Box<Self>) -> (Made, serde_json::Value) {
        let result = serde_json::json!({ "matches": self.count });
        (vec![("matches.txt".to_owned(), self.found)], result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matching_lines_come_with_their_places() {
        let settings = BTreeMap::from([
            ("pattern".to_owned(), "War".to_owned()),
            ("case".to_owned(), "fold".to_owned()),
        ]);
        let mut grep = Box::new(Grep::new(&settings).unwrap());
        grep.begin("a.txt");
        "peace\nwar and\nWARS".as_bytes().chunks(2).for_each(|part| grep.feed(part));
        grep.end();
        let (files, result) = grep.finish();
        assert_eq!(files[0].1, b"a.txt:2:war and\na.txt:3:WARS\n");
        assert_eq!(result["matches"], 2);
        assert!(matches!(Grep::new(&BTreeMap::new()), Err(BuiltinError::Hopeless(_))));
    }
}
