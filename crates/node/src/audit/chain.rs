//! Lines that vouch for each other: `<hash> <json>`, where the hash covers the hash before and the JSON.

use std::{fmt, io};

use serde::Serialize;

use super::Record;

/// Hash before the first line of all.
pub(super) const FIRST: [u8; 32] = [0; 32];
/// A file's first line holds this and the hash that it goes on from.
const HEAD: &str = "ikada-audit-1";
/// Hexadecimal digits of a hash.
const HASH_DIGITS: usize = 64;

/// Where a chain is broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong.
    pub why: &'static str,
}

impl fmt::Display for Broken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "line {}: {}", self.line, self.why)
    }
}

impl std::error::Error for Broken {}

/// The first line of a file that goes on from a hash.
pub(super) fn head(before: [u8; 32]) -> String {
    format!("{HEAD} {}\n", blake3::Hash::from_bytes(before).to_hex())
}

/// Appends a record's line to a text; the hash becomes the one that the next goes on from.
pub(super) fn link(
    hash: &mut [u8; 32],
    text: &mut Vec<u8>,
    record: &impl Serialize,
) -> io::Result<()> {
    // The hash stands before what it covers: its place is kept, and filled when that is known.
    let place = text.len();
    text.resize(place + HASH_DIGITS + 1, b' ');
    serde_json::to_writer(&mut *text, record)?;
    let next = join(*hash, &text[place + HASH_DIGITS + 1..]);
    text[place..place + HASH_DIGITS].copy_from_slice(next.to_hex().as_bytes());
    text.push(b'\n');
    *hash = *next.as_bytes();
    Ok(())
}

fn join(before: [u8; 32], json: &[u8]) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&before);
    hasher.update(json);
    hasher.finalize()
}

/// Checks one file's text. Gives the number of its records, the hash it goes on from and the one it ends with.
pub fn verify(text: &str) -> Result<(usize, [u8; 32], [u8; 32]), Broken> {
    let broken = |line, why| Broken { line, why };
    let mut lines = text.split_inclusive('\n').enumerate().map(|(place, line)| (place + 1, line));
    let (_, first) = lines.next().ok_or(broken(1, "the file is empty"))?;
    let before = first.strip_prefix(HEAD).and_then(|rest| rest.strip_prefix(' '));
    let before = before.and_then(|rest| rest.strip_suffix('\n')).and_then(read_hash);
    let before = before.ok_or(broken(1, "this is not the head of an audit log"))?;
    let (mut hash, mut records) = (before, 0);
    for (place, line) in lines {
        let body = line.strip_suffix('\n').ok_or(broken(place, "the line is cut off"))?;
        let (told, json) = body
            .split_at_checked(HASH_DIGITS)
            .and_then(|(told, rest)| Some((read_hash(told)?, rest.strip_prefix(' ')?)))
            .ok_or(broken(place, "the line does not begin with a hash"))?;
        let wanted = *join(hash, json.as_bytes()).as_bytes();
        if told != wanted {
            return Err(broken(place, "this line, or the one before it, was changed"));
        }
        (hash, records) = (wanted, records + 1);
    }
    Ok((records, before, hash))
}

/// The text of a file, without a last line that was cut off by a crash; the file after it goes on from the one before. What
/// is no text was not written by us.
pub fn whole_lines(bytes: &[u8]) -> Result<&str, Broken> {
    let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(bytes.len(), |end| end + 1);
    std::str::from_utf8(&bytes[..end]).map_err(|error| {
        let before = bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count();
        Broken { line: before + 1, why: "this line was changed: it is no text" }
    })
}

/// The records of a file's text, as far as they can be read. Whether they are what was written, says [`verify`].
pub fn records(text: &str) -> impl Iterator<Item = Record> + '_ {
    let read = |line: &str| serde_json::from_str(line.get(HASH_DIGITS + 1..)?).ok();
    text.lines().skip(1).filter_map(read)
}

fn read_hash(text: &str) -> Option<[u8; 32]> {
    let hash = blake3::Hash::from_hex(text).ok()?;
    // One hash, one text.
    (hash.to_hex().as_str() == text).then(|| *hash.as_bytes())
}

/// A whole file of some lines.
#[cfg(test)]
pub(crate) fn sample() -> String {
    let (mut text, mut hash) = (head(FIRST).into_bytes(), FIRST);
    for number in 0..5 {
        let record = std::collections::BTreeMap::from([("n", number)]);
        link(&mut hash, &mut text, &record).expect("a record");
    }
    String::from_utf8(text).expect("JSON is text")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x_15_any_changed_byte_and_any_lost_line_is_found() {
        let text = sample();
        assert!(matches!(verify(&text), Ok((5, FIRST, _))));
        let bytes = text.as_bytes();
        for position in 0..bytes.len() {
            let mut changed = bytes.to_vec();
            changed[position] ^= 1;
            let Ok(changed) = String::from_utf8(changed) else { continue };
            let found = verify(&changed);
            assert!(found.is_err() || found.unwrap().1 != FIRST, "byte {position}");
        }
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        for gone in 1..lines.len() - 1 {
            let without: String =
                lines.iter().enumerate().filter(|(at, _)| *at != gone).map(|(_, l)| *l).collect();
            assert!(verify(&without).is_err(), "line {gone}");
        }
        assert!(verify(&text[..text.len() - 1]).is_err(), "cut off");
        assert!(verify("").is_err());
    }

    // A bit that flips may leave bytes that are no text: told with its line like any other, and not in the torn end.
    #[test]
    fn x_15_bytes_that_are_no_text_are_found_in_their_line() {
        let text = sample();
        let mut bytes = text.clone().into_bytes();
        bytes.extend_from_slice(b"torn \xff\xfe");
        assert_eq!(whole_lines(&bytes), Ok(text.as_str()));
        let third = text.match_indices('\n').nth(1).unwrap().0 + 70;
        bytes[third] = 0xff;
        assert_eq!(whole_lines(&bytes).unwrap_err().line, 3);
        assert_eq!(whole_lines(b""), Ok(""));
    }
}
