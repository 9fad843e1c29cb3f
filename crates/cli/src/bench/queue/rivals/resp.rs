//! Redis' protocol: commands as lists of texts, and the answers to them.

use std::io;

use bytes::{Buf, BytesMut};

/// Deepest answer that is read: streams, their entries, the entries' fields.
const DEPTH_MAX: usize = 8;

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    /// A text, a number, or a word.
    Text(Vec<u8>),
    List(Vec<Answer>),
    Nothing,
}

impl Answer {
    /// The parts of a list; none of anything else.
    pub(super) fn parts(&self) -> &[Answer] {
        match self {
            Answer::List(parts) => parts,
            _ => &[],
        }
    }
}

/// Gathers a command.
pub(super) fn push_command(out: &mut Vec<u8>, words: &[&[u8]]) {
    out.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
    for word in words {
        out.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
}

/// Takes the first whole answer; none if it is not whole yet. An answer that tells of an error is one.
pub(super) fn take_answer(read: &mut BytesMut) -> io::Result<Option<Answer>> {
    match parse(read, 0)? {
        Some((answer, used)) => {
            read.advance(used);
            Ok(Some(answer))
        }
        None => Ok(None),
    }
}

fn parse(bytes: &[u8], depth: usize) -> io::Result<Option<(Answer, usize)>> {
    let Some(end) = bytes.windows(2).position(|two| two == b"\r\n") else { return Ok(None) };
    let line = String::from_utf8_lossy(bytes.get(1..end).unwrap_or_default()).into_owned();
    let bad = || io::Error::other(format!("redis: {line}"));
    let length = || line.parse::<i64>().map_err(|_| bad());
    let mut used = end + 2;
    match bytes.first() {
        Some(b'+' | b':') => Ok(Some((Answer::Text(line.into_bytes()), used))),
        Some(b'$') => {
            let Ok(length) = usize::try_from(length()?) else {
                return Ok(Some((Answer::Nothing, used)));
            };
            let text = bytes.get(used..used + length).filter(|_| bytes.len() >= used + length + 2);
            Ok(text.map(|text| (Answer::Text(text.to_vec()), used + length + 2)))
        }
        Some(b'*') if depth < DEPTH_MAX => {
            let Ok(count) = usize::try_from(length()?) else {
                return Ok(Some((Answer::Nothing, used)));
            };
            let mut parts = Vec::new();
            for _ in 0..count {
                let Some((part, more)) = parse(&bytes[used..], depth + 1)? else { return Ok(None) };
                parts.push(part);
                used += more;
            }
            Ok(Some((Answer::List(parts), used)))
        }
        _ => Err(bad()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_come_out_whole_or_not_at_all() {
        let text = b"*2\r\n$3\r\nabc\r\n*2\r\n:7\r\n*-1\r\n+OK\r\n";
        for length in 0..text.len() {
            let mut read = BytesMut::from(&text[..length]);
            let whole = length >= text.len() - 5;
            assert_eq!(take_answer(&mut read).unwrap().is_some(), whole, "{length}");
        }
        let mut read = BytesMut::from(&text[..]);
        let inner = Answer::List(vec![Answer::Text(b"7".to_vec()), Answer::Nothing]);
        let list = Answer::List(vec![Answer::Text(b"abc".to_vec()), inner]);
        assert_eq!(take_answer(&mut read).unwrap(), Some(list));
        assert_eq!(take_answer(&mut read).unwrap(), Some(Answer::Text(b"OK".to_vec())));
        assert_eq!(take_answer(&mut read).unwrap(), None);
        assert!(take_answer(&mut BytesMut::from("-ERR no\r\n")).is_err());
        assert!(take_answer(&mut BytesMut::from("*1\r\n".repeat(50).as_str())).is_err());
    }
}
