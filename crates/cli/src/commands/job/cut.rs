//! Cuts a file, or an object of a store, at line ends, by size or by number of lines. Only places are told; the bytes stay
//! where they are.

use std::io::{BufRead, BufReader};
use std::path::Path;

use bytes::Bytes;
use ikada_api::Client;
use ikada_api::client::{GetOptions, ObjectReader};
use ikada_api::s3::Download;
use ikada_api::state::limits::JOB_INPUTS_MAX;
use ikada_api::v1::ObjectInfo;

use crate::failure::Failure;

/// Bytes of an object that are asked for at one time while a line's end is looked for.
const LOOK_BYTES: u64 = 64 << 10;
/// Parts that are smaller are found by reading the object once, and not by a question for each.
const SMALL_PART_BYTES: u64 = 1 << 20;

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

/// What is cut without being here.
pub(super) enum Afar<'a> {
    /// An object of a store.
    Stored(&'a Download),
    /// An object of the cluster.
    Kept(&'a Client, &'a ObjectInfo),
}

/// Some of its bytes, as they arrive.
enum Reading {
    Stored(Download),
    /// And how many are still wanted.
    Kept(ObjectReader, u64),
}

impl Afar<'_> {
    fn size(&self) -> u64 {
        match self {
            Afar::Stored(object) => object.size(),
            Afar::Kept(_, object) => object.size,
        }
    }

    /// Reads so many bytes from this one on; all that follow if none are named.
    async fn read(&self, from: u64, length: Option<u64>) -> Result<Reading, Failure> {
        match self {
            Afar::Stored(object) => Ok(Reading::Stored(object.part(from, length))),
            Afar::Kept(client, object) => {
                let version = Some(object.version.0);
                let options = GetOptions { version, from, ..GetOptions::default() };
                let reader = client.get_object(&object.bucket, &object.key, &options).await?;
                Ok(Reading::Kept(reader, length.unwrap_or(u64::MAX)))
            }
        }
    }
}

impl Reading {
    /// The next bytes; none at the end.
    async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        match self {
            Reading::Stored(reader) => Ok(reader.next().await?),
            Reading::Kept(_, 0) => Ok(None),
            Reading::Kept(reader, left) => {
                let Some(bytes) = reader.next().await? else { return Ok(None) };
                let taken = bytes.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= taken as u64;
                Ok(Some(bytes.slice(..taken)))
            }
        }
    }
}

/// Offsets and lengths of a file's parts. An empty file has one part. No more than a job takes are looked for.
pub(super) fn parts(path: &Path, cut: Cut) -> Result<Vec<(u64, u64)>, Failure> {
    let failed = |error: std::io::Error| Failure::failed(format!("{}: {error}", path.display()));
    let file = std::fs::File::open(path).map_err(failed)?;
    if cut == Cut::Whole {
        return Ok(vec![(0, file.metadata().map_err(failed)?.len())]);
    }
    cut_lines(BufReader::with_capacity(1 << 20, file), cut).map_err(failed)
}

fn cut_lines(mut text: impl BufRead, cut: Cut) -> std::io::Result<Vec<(u64, u64)>> {
    let mut cutter = Cutter::new(cut);
    loop {
        let buffer = text.fill_buf()?;
        if buffer.is_empty() {
            return Ok(cutter.finish());
        }
        let taken = buffer.len();
        cutter.feed(buffer);
        if cutter.parts.len() > JOB_INPUTS_MAX {
            return Ok(cutter.finish());
        }
        text.consume(taken);
    }
}

/// Offsets and lengths of the parts of an object elsewhere. No more than a job takes are looked for.
pub(super) async fn parts_of_object(
    object: &Afar<'_>,
    cut: Cut,
) -> Result<Vec<(u64, u64)>, Failure> {
    let bytes = match cut {
        Cut::Whole => return Ok(vec![(0, object.size())]),
        Cut::Bytes(bytes) if bytes >= SMALL_PART_BYTES => bytes,
        Cut::Bytes(_) | Cut::Lines(_) => return read_through(object, cut).await,
    };
    let (mut parts, mut start) = (Vec::new(), 0u64);
    while parts.len() <= JOB_INPUTS_MAX {
        // The first line's end that makes the part large enough.
        let Some(end) = line_end(object, start.saturating_add(bytes - 1)).await? else { break };
        parts.push((start, end - start));
        start = end;
    }
    if object.size() > start || parts.is_empty() {
        parts.push((start, object.size() - start));
    }
    Ok(parts)
}

async fn read_through(object: &Afar<'_>, cut: Cut) -> Result<Vec<(u64, u64)>, Failure> {
    let mut cutter = Cutter::new(cut);
    let mut reader = object.read(0, None).await?;
    while cutter.parts.len() <= JOB_INPUTS_MAX
        && let Some(bytes) = reader.next().await?
    {
        cutter.feed(&bytes);
    }
    Ok(cutter.finish())
}

/// The place after the first line's end that is not before this byte.
async fn line_end(object: &Afar<'_>, from: u64) -> Result<Option<u64>, Failure> {
    let mut at = from;
    while at < object.size() {
        let mut window = object.read(at, Some(LOOK_BYTES)).await?;
        while let Some(bytes) = window.next().await? {
            if let Some(found) = bytes.iter().position(|byte| *byte == b'\n') {
                return Ok(Some(at + found as u64 + 1));
            }
            at += bytes.len() as u64;
        }
    }
    Ok(None)
}

/// Notes where parts begin and end while the bytes pass.
struct Cutter {
    cut: Cut,
    parts: Vec<(u64, u64)>,
    start: u64,
    place: u64,
    lines: u64,
}

impl Cutter {
    fn new(cut: Cut) -> Cutter {
        Cutter { cut, parts: Vec::new(), start: 0, place: 0, lines: 0 }
    }

    fn feed(&mut self, bytes: &[u8]) {
        for (at, _) in bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n') {
            let end = self.place + at as u64 + 1;
            self.lines += 1;
            let full = match self.cut {
                Cut::Whole => false,
                Cut::Bytes(bytes) => end - self.start >= bytes,
                Cut::Lines(count) => self.lines >= count,
            };
            if full {
                self.parts.push((self.start, end - self.start));
                (self.start, self.lines) = (end, 0);
            }
        }
        self.place += bytes.len() as u64;
    }

    fn finish(mut self) -> Vec<(u64, u64)> {
        if self.place > self.start || self.parts.is_empty() {
            self.parts.push((self.start, self.place - self.start));
        }
        self.parts
    }
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
        // However many there are, no more are noted than it takes to refuse them; a buffer's worth at the most.
        let many = "x\n".repeat(20 * JOB_INPUTS_MAX);
        let found = cut(&many, Cut::Lines(1)).len();
        assert!((JOB_INPUTS_MAX + 1..JOB_INPUTS_MAX + 10).contains(&found), "{found}");
        assert_eq!(read_size("4MiB").unwrap(), 4 << 20);
        assert_eq!(read_size("10").unwrap(), 10);
        for bad in ["0", "x", "4 TiB", "", "99999999999999GiB"] {
            assert!(read_size(bad).is_err(), "{bad}");
        }
    }
}
