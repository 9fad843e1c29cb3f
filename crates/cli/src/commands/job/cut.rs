//! Cuts a file at line ends, by size or by number of lines. Only places are told; the bytes stay where they are.

use std::io::{BufRead, BufReader};
use std::path::Path;

use crate::failure::Failure;

/// How files are cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    /// Not at all.
    Whole,
    /// Parts of at least so many bytes.
    Bytes(u64),
    /// Parts of so many lines.
    Lines(u64),
}

/// Offsets and lengths of a file's parts. An empty file has one part.
pub(super) fn parts(path: &Path, cut: Cut) -> Result<Vec<(u64, u64)>, Failure> {
    let failed = |error: std::io::Error| Failure::failed(format!("{}: {error}", path.display()));
    let file = std::fs::File::open(path).map_err(failed)?;
    if cut == Cut::Whole {
        return Ok(vec![(0, file.metadata().map_err(failed)?.len())]);
    }
    cut_lines(BufReader::with_capacity(1 << 20, file), cut).map_err(failed)
}

fn cut_lines(mut text: impl BufRead, cut: Cut) -> std::io::Result<Vec<(u64, u64)>> {
    let (mut parts, mut start, mut place, mut lines) = (Vec::new(), 0u64, 0u64, 0u64);
    loop {
        let buffer = text.fill_buf()?;
        if buffer.is_empty() {
            break;
        }
        let taken = buffer.len();
        for (at, _) in buffer.iter().enumerate().filter(|(_, byte)| **byte == b'\n') {
            let end = place + at as u64 + 1;
            lines += 1;
            let full = match cut {
                Cut::Whole => false,
                Cut::Bytes(bytes) => end - start >= bytes,
                Cut::Lines(count) => lines >= count,
            };
            if full {
                parts.push((start, end - start));
                (start, lines) = (end, 0);
            }
        }
        place += taken as u64;
        text.consume(taken);
    }
    if place > start || parts.is_empty() {
        parts.push((start, place - start));
    }
    Ok(parts)
}

/// A size such as `65536`, `64KiB`, `4MiB` or `1GiB`.
pub(super) fn read_size(text: &str) -> Result<u64, Failure> {
    let units = [("KiB", 1u64 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("", 1)];
    let size = units.iter().find_map(|(unit, bytes)| {
        let number = text.strip_suffix(unit)?.trim();
        number.parse::<u64>().ok()?.checked_mul(*bytes)
    });
    match size {
        Some(size) if size > 0 => Ok(size),
        _ => {
            Err(Failure::usage(format!("--split {text}: give a size such as 65536, 64KiB or 4MiB")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str, cut: Cut) -> Vec<&str> {
        let parts = cut_lines(BufReader::with_capacity(3, text.as_bytes()), cut).unwrap();
        parts
            .iter()
            .map(|(offset, length)| &text[*offset as usize..(offset + length) as usize])
            .collect()
    }

    #[test]
    fn parts_end_at_line_ends_and_leave_nothing_out() {
        let text = "one\ntwo\nthree\nfour";
        assert_eq!(cut(text, Cut::Lines(2)), ["one\ntwo\n", "three\nfour"]);
        assert_eq!(cut(text, Cut::Bytes(5)), ["one\ntwo\n", "three\n", "four"]);
        assert_eq!(cut(text, Cut::Bytes(1_000)), [text]);
        assert_eq!(cut("", Cut::Lines(1)), [""]);
        assert_eq!(cut("a\n", Cut::Lines(1)), ["a\n"]);
        assert_eq!(read_size("4MiB").unwrap(), 4 << 20);
        assert_eq!(read_size("10").unwrap(), 10);
        for bad in ["0", "x", "4 TiB", "", "99999999999999GiB"] {
            assert!(read_size(bad).is_err(), "{bad}");
        }
    }
}
