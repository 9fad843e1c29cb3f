//! `Range`: which bytes of an object are wanted.

use hyper::header::{HeaderMap, IF_RANGE, RANGE};
use ikada_api::state::Digest;

/// What a caller gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Span {
    /// Everything.
    Whole,
    /// From the first byte to the one before the second number.
    Part(u64, u64),
    /// The range begins after the end.
    Beyond,
}

/// The span that the headers ask for. What is no single range of bytes counts as no range, as the standard allows.
pub(super) fn span(headers: &HeaderMap, size: u64, digest: &Digest) -> Span {
    let text =
        |name| headers.get(name).and_then(|value: &hyper::header::HeaderValue| value.to_str().ok());
    let Some(range) = text(RANGE) else { return Span::Whole };
    if text(IF_RANGE).is_some_and(|tag| Digest::parse(tag.trim_matches('"')) != Some(*digest)) {
        return Span::Whole;
    }
    read(range, size).unwrap_or(Span::Whole)
}

fn read(range: &str, size: u64) -> Option<Span> {
    let (from, to) = range.trim().strip_prefix("bytes=")?.split_once('-')?;
    let (from, to) = (from.trim(), to.trim());
    if from.is_empty() {
        let last: u64 = to.parse().ok()?;
        return Some(match last.min(size) {
            0 => Span::Beyond,
            last => Span::Part(size - last, size),
        });
    }
    let from: u64 = from.parse().ok()?;
    let end = match to {
        "" => size,
        to => {
            let last = to.parse::<u64>().ok().filter(|last| *last >= from)?;
            last.saturating_add(1)
        }
    };
    Some(if from >= size { Span::Beyond } else { Span::Part(from, end.min(size)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_the_standard_says() {
        let cases = [
            ("bytes=0-0", Some(Span::Part(0, 1))),
            ("bytes=2-5", Some(Span::Part(2, 6))),
            ("bytes=90-", Some(Span::Part(90, 100))),
            ("bytes=90-400", Some(Span::Part(90, 100))),
            ("bytes=-7", Some(Span::Part(93, 100))),
            ("bytes=-700", Some(Span::Part(0, 100))),
            ("bytes=-0", Some(Span::Beyond)),
            ("bytes=100-", Some(Span::Beyond)),
            ("bytes=100-200", Some(Span::Beyond)),
            ("bytes=5-2", None),
            ("bytes=1-2,4-5", None),
            ("bytes=a-b", None),
            ("lines=1-2", None),
            ("bytes=18446744073709551615-18446744073709551615", Some(Span::Beyond)),
        ];
        for (text, wanted) in cases {
            assert_eq!(read(text, 100), wanted, "{text}");
        }
        assert_eq!(read("bytes=0-", 0), Some(Span::Beyond));
    }
}
