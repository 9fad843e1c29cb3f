//! `wordcount`: how often each word comes. Settings: `case` (`fold`, `keep`), `partitions` (one file per partition of
//! the words instead of one for all, for a shuffle).

use std::collections::{BTreeMap, HashMap};
use std::io::Write;

use super::{BuiltinError, Made, PARTITIONS_MAX, Program, number, word};

/// Longest word; longer runs of letters are cut.
const WORD_BYTES_MAX: usize = 256;
/// Words that a table has room for from the beginning: it need not grow through all sizes for every few megabytes.
const WORDS_FIRST: usize = 4_096;
/// What a word takes beside its letters: its count, its place in the table, and its share of free places.
const WORD_BYTES_MORE: usize = 64;

/// Words with how often they came.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    counts: HashMap<Vec<u8>, u64>,
    /// The word that may go on with the next bytes.
    open: Vec<u8>,
    keep_case: bool,
    /// What the words take, about.
    bytes: usize,
}

impl Counts {
    /// Nothing counted yet; words are told apart by case only if that is wanted.
    pub fn new(keep_case: bool) -> Counts {
        Counts { counts: HashMap::with_capacity(WORDS_FIRST), keep_case, ..Counts::default() }
    }

    /// Counts the words of some bytes. A word is a run of ASCII letters and digits, apostrophes inside it, and bytes of
    /// other alphabets.
    pub fn feed(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let end = rest.iter().position(|byte| !is_part(*byte)).unwrap_or(rest.len());
            if end > 0 || !self.open.is_empty() {
                self.take(&rest[..end], end == rest.len());
            }
            rest = &rest[end..];
            let next = rest.iter().position(|byte| is_part(*byte)).unwrap_or(rest.len());
            rest = &rest[next..];
        }
    }

    /// Takes a part of a word; `open` says that more of it may come.
    fn take(&mut self, part: &[u8], open: bool) {
        if open || !self.open.is_empty() {
            let room = WORD_BYTES_MAX.saturating_sub(self.open.len());
            self.open.extend_from_slice(&part[..part.len().min(room)]);
            if !open {
                let word = std::mem::take(&mut self.open);
                self.count(&word);
            }
            return;
        }
        self.count(&part[..part.len().min(WORD_BYTES_MAX)]);
    }

    /// The text is over.
    pub fn end(&mut self) {
        if !self.open.is_empty() {
            let word = std::mem::take(&mut self.open);
            self.count(&word);
        }
    }

    fn count(&mut self, word: &[u8]) {
        let word = trim(word);
        if word.is_empty() {
            return;
        }
        let mut folded = [0; WORD_BYTES_MAX];
        let folded = &mut folded[..word.len()];
        folded.copy_from_slice(word);
        if !self.keep_case {
            folded.make_ascii_lowercase();
        }
        match self.counts.get_mut(&*folded) {
            Some(count) => *count += 1,
            None => {
                let word = folded.to_vec();
                self.insert(word, 1);
            }
        }
    }

    /// Adds a number to a word's count.
    pub fn add(&mut self, word: &[u8], count: u64) {
        match self.counts.get_mut(word) {
            Some(known) => *known = known.saturating_add(count),
            None => self.insert(word.to_vec(), count),
        }
    }

    fn insert(&mut self, word: Vec<u8>, count: u64) {
        self.bytes += word.len() + WORD_BYTES_MORE;
        self.counts.insert(word, count);
    }

    /// What the words take in memory, about.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds all of another count.
    pub fn absorb(&mut self, other: &Counts) {
        other.counts.iter().for_each(|(word, count)| self.add(word, *count));
    }

    /// How many different words there are.
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// All words with their counts, the most frequent first, equal ones in order.
    pub fn sorted(&self) -> Vec<(&[u8], u64)> {
        let mut all: Vec<(&[u8], u64)> =
            self.counts.iter().map(|(word, count)| (word.as_slice(), *count)).collect();
        all.sort_unstable_by(|left, right| right.1.cmp(&left.1).then(left.0.cmp(right.0)));
        all
    }

    /// As lines of word, tab and count.
    pub fn lines(&self) -> Vec<u8> {
        lines(&self.sorted())
    }
}

pub(super) fn lines(sorted: &[(&[u8], u64)]) -> Vec<u8> {
    let mut text = Vec::with_capacity(sorted.len() * 12);
    for (word, count) in sorted {
        text.extend_from_slice(word);
        // Memory takes every byte.
        let _ = writeln!(text, "\t{count}");
    }
    text
}

fn is_part(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'\'' || byte >= 0x80
}

/// An apostrophe is part of a word only inside it.
fn trim(word: &[u8]) -> &[u8] {
    let start = word.iter().position(|byte| *byte != b'\'').unwrap_or(word.len());
    let end = word.iter().rposition(|byte| *byte != b'\'').map_or(start, |last| last + 1);
    &word[start..end]
}

/// Which partition a word belongs to: the same on every worker.
fn partition(word: &[u8], partitions: u64) -> u64 {
    let hash = word.iter().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash % partitions
}

pub(super) struct WordCount {
    counts: Counts,
    partitions: u64,
}

impl WordCount {
    pub(super) fn new(settings: &BTreeMap<String, String>) -> Result<WordCount, BuiltinError> {
        let keep = word(settings, "case", &["fold", "keep"])? == "keep";
        let partitions = number(settings, "partitions", PARTITIONS_MAX)?.unwrap_or(0);
        Ok(WordCount { counts: Counts::new(keep), partitions })
    }
}

impl Program for WordCount {
    fn begin(&mut self, _: &str) {}

    fn feed(&mut self, bytes: &[u8]) {
        self.counts.feed(bytes);
    }

    fn end(&mut self) {
        self.counts.end();
    }

    fn kept(&self) -> usize {
        self.counts.bytes()
    }

    fn finish(self: Box<Self>) -> (Made, serde_json::Value) {
        let sorted = self.counts.sorted();
        let total: u64 = sorted.iter().map(|(_, count)| count).sum();
        let result = serde_json::json!({ "words": total, "different": sorted.len() });
        if self.partitions == 0 {
            return (vec![("counts.tsv".to_owned(), lines(&sorted))], result);
        }
        let mut parts: BTreeMap<u64, Vec<(&[u8], u64)>> = BTreeMap::new();
        for (word, count) in sorted {
            parts.entry(partition(word, self.partitions)).or_default().push((word, count));
        }
        let files = parts.iter().map(|(place, part)| (format!("part-{place}"), lines(part)));
        (files.collect(), result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(parts: &[&str], keep_case: bool) -> String {
        let mut counts = Counts::new(keep_case);
        parts.iter().for_each(|part| counts.feed(part.as_bytes()));
        counts.end();
        String::from_utf8(counts.lines()).unwrap()
    }

    #[test]
    fn words_are_counted_however_the_bytes_are_cut() {
        let text = "The cat's hat, the 'cat' -- and THE dog's.\nÜber über";
        let whole = counted(&[text], false);
        assert!(whole.starts_with("the\t3\n"), "{whole}");
        assert!(whole.contains("cat's\t1\n") && whole.contains("cat\t1\n"), "{whole}");
        for cut in 0..text.len() {
            if text.is_char_boundary(cut) {
                assert_eq!(counted(&[&text[..cut], &text[cut..]], false), whole, "{cut}");
            }
        }
        assert!(counted(&[text], true).contains("The\t1\n"));
        assert_eq!(counted(&["", "'", " ''' "], false), "");
    }

    // B4-32
    #[test]
    fn b4_32_partitions_hold_every_word_once() {
        let settings = BTreeMap::from([("partitions".to_owned(), "3".to_owned())]);
        let mut program = Box::new(WordCount::new(&settings).unwrap());
        program.feed(b"a b c d e f g a");
        program.end();
        let (files, result) = program.finish();
        assert_eq!(result["words"], 8);
        let mut all: Vec<&str> =
            files.iter().flat_map(|(_, text)| std::str::from_utf8(text).unwrap().lines()).collect();
        all.sort_unstable();
        assert_eq!(all, ["a\t2", "b\t1", "c\t1", "d\t1", "e\t1", "f\t1", "g\t1"]);
        assert!(files.iter().all(|(name, _)| name.starts_with("part-")));
        let bad = BTreeMap::from([("case".to_owned(), "upper".to_owned())]);
        assert!(matches!(WordCount::new(&bad), Err(BuiltinError::Hopeless(_))));
    }
}
