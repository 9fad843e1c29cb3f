//! Documents as CBOR: the same structs as in JSON, with payloads as byte strings.
//!
//! Promise: any bytes give a document or an error in words; bytes left over are an error. What nests too deep is refused
//! before it is read: the reader calls itself for every level, and documents may hold documents (X7).

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::v1::JSON_DEPTH_MAX;

/// The media type.
pub const CBOR_TYPE: &str = "application/cbor";

/// Why bytes are no document.
#[derive(Debug, thiserror::Error)]
pub enum CborError {
    /// They cannot be read as the document wanted.
    #[error("{0}")]
    Read(String),
    /// A document was read and bytes are left over.
    #[error("{0} bytes follow the document")]
    LeftOver(usize),
    /// Lists and maps are nested too deep.
    #[error("lists and maps may nest at most {JSON_DEPTH_MAX} levels")]
    TooDeep,
}

/// Writes a document.
pub fn to_vec<T: Serialize>(document: &T) -> Result<Vec<u8>, CborError> {
    let mut bytes = Vec::with_capacity(128);
    let mut serializer = minicbor_serde::Serializer::new(&mut bytes);
    document.serialize(&mut serializer).map_err(|error| CborError::Read(error.to_string()))?;
    Ok(bytes)
}

/// Reads a document; all bytes must belong to it.
pub fn from_slice<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CborError> {
    if is_too_deep(bytes) {
        return Err(CborError::TooDeep);
    }
    let mut deserializer = minicbor_serde::Deserializer::new(bytes);
    let document =
        T::deserialize(&mut deserializer).map_err(|error| CborError::Read(error.to_string()))?;
    match bytes.len() - deserializer.decoder().position() {
        0 => Ok(document),
        left => Err(CborError::LeftOver(left)),
    }
}

/// Whether lists and maps nest deeper than JSON may. Looks no further than the first byte that cannot be read.
fn is_too_deep(bytes: &[u8]) -> bool {
    // Each level begins with such a byte: most documents have fewer of them than levels are allowed.
    let heads = bytes.iter().filter(|byte| matches!(byte, 0x80..=0xbf)).count();
    heads > JSON_DEPTH_MAX && deepest(bytes) > JSON_DEPTH_MAX
}

/// How deep lists and maps nest, as far as is needed to tell whether that is too deep. Reads heads only: whether texts are
/// texts is for the reader to say.
fn deepest(bytes: &[u8]) -> usize {
    // Items left of each open list or map; none where a mark ends it.
    let mut open: Vec<Option<u64>> = Vec::with_capacity(JSON_DEPTH_MAX + 1);
    let (mut rest, mut deepest) = (bytes, 0);
    while deepest <= JSON_DEPTH_MAX {
        while open.pop_if(|left| *left == Some(0)).is_some() {}
        let Some((head, after)) = read_head(rest) else { break };
        rest = after;
        // A tag and what follows it are one item.
        if head.kind != TAG
            && let Some(Some(left)) = open.last_mut()
        {
            *left -= 1;
        }
        match head.kind {
            BYTES | TEXT => match skip_string(rest, head.argument) {
                Some(after) => rest = after,
                None => break,
            },
            LIST => open.push(head.argument),
            MAP => open.push(head.argument.map(|pairs| pairs.saturating_mul(2))),
            // The mark that ends a list or a map.
            SIMPLE if head.argument.is_none() => drop(open.pop()),
            _ => {}
        }
        deepest = deepest.max(open.len());
    }
    deepest
}

/// Kinds of items: the upper three bits of their first byte.
const BYTES: u8 = 2;
const TEXT: u8 = 3;
const LIST: u8 = 4;
const MAP: u8 = 5;
const TAG: u8 = 6;
const SIMPLE: u8 = 7;

/// How an item begins.
struct Head {
    kind: u8,
    /// Its length, count or value; none where a mark ends it.
    argument: Option<u64>,
}

/// The first item's head and what follows it; none if that cannot be read.
fn read_head(bytes: &[u8]) -> Option<(Head, &[u8])> {
    let (first, rest) = bytes.split_first()?;
    let wide = |length: usize| {
        let (argument, rest) = rest.split_at_checked(length)?;
        let argument = argument.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        Some((Some(argument), rest))
    };
    let (argument, rest) = match first & 0x1f {
        small @ 0..24 => (Some(u64::from(small)), rest),
        24 => wide(1)?,
        25 => wide(2)?,
        26 => wide(4)?,
        27 => wide(8)?,
        31 => (None, rest),
        _ => return None,
    };
    Some((Head { kind: first >> 5, argument }, rest))
}

/// What follows a string of this length, or one in pieces up to a mark.
fn skip_string<'a>(bytes: &'a [u8], length: Option<u64>) -> Option<&'a [u8]> {
    let behind = |bytes: &'a [u8], length: u64| bytes.get(usize::try_from(length).ok()?..);
    if let Some(length) = length {
        return behind(bytes, length);
    }
    let mut rest = bytes;
    loop {
        let (piece, after) = read_head(rest)?;
        match (piece.kind, piece.argument) {
            (SIMPLE, None) => return Some(after),
            (BYTES | TEXT, Some(length)) => rest = behind(after, length)?,
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v1::{CompleteItem, CompleteRequest, EnqueueBatch, NewTask, Number, RawBytes};

    fn task(payload: &[u8]) -> NewTask {
        let payload_bytes = Some(RawBytes(payload.to_vec()));
        NewTask { queue: Some("mail".into()), payload_bytes, ..NewTask::default() }
    }

    // TQ-27
    #[test]
    fn tq_27_any_bytes_survive_in_cbor() {
        for payload in [&b""[..], b"a|b", b"\xff\x00", b"{\"n\": 1}", &[7; 70_000]] {
            let batch = EnqueueBatch { tasks: vec![task(payload)] };
            let read: EnqueueBatch = from_slice(&to_vec(&batch).unwrap()).unwrap();
            assert_eq!(read.tasks[0].payload_bytes.as_ref().unwrap().0, payload);
        }
    }

    #[test]
    fn fences_keep_all_their_bits() {
        let item = CompleteItem {
            id: "a".into(),
            fence: Number(u64::MAX - 1),
            result: None,
            result_base64: None,
            result_bytes: None,
            then: Vec::new(),
            outputs: Vec::new(),
        };
        let request = CompleteRequest { worker: "w".into(), tasks: vec![item], claim: None };
        let read: CompleteRequest = from_slice(&to_vec(&request).unwrap()).unwrap();
        assert_eq!(read.tasks[0].fence.0, u64::MAX - 1);
    }

    /// A task with a task that follows it, and so on.
    fn nested(tasks: usize) -> Vec<u8> {
        // {"then": [..]}
        [b"\xa1\x64then\x81".repeat(tasks), b"\xa0".to_vec()].concat()
    }

    // X7
    #[test]
    fn x_7_deep_documents_are_refused_before_they_are_read() {
        assert!(from_slice::<NewTask>(&nested(31)).is_ok());
        for deep in [nested(32), nested(150_000), b"\x81".repeat(1 << 20), b"\x9f".repeat(1 << 20)]
        {
            assert!(matches!(from_slice::<NewTask>(&deep), Err(CborError::TooDeep)));
        }
        // Behind values that are not lists, and in a list that only a mark ends.
        let behind = [b"\xa2\x65queue\x61q\x64then\x9f".to_vec(), nested(40)].concat();
        assert!(matches!(from_slice::<NewTask>(&behind), Err(CborError::TooDeep)));
        let tagged = [b"\x82\xc2\x41\x01".to_vec(), nested(40)].concat();
        assert!(matches!(from_slice::<Vec<NewTask>>(&tagged), Err(CborError::TooDeep)));
    }

    #[test]
    fn x_7_long_documents_are_not_deep() {
        let tasks: Vec<NewTask> = (0..200).map(|_| task(&[0x81; 100])).collect();
        let batch = EnqueueBatch { tasks };
        let read: EnqueueBatch = from_slice(&to_vec(&batch).unwrap()).unwrap();
        assert_eq!(read.tasks.len(), 200);
        let marked = [b"\x9f".to_vec(), b"\x9f\xff".repeat(200), b"\xff".to_vec()].concat();
        assert_eq!(deepest(&marked), 2);
    }

    #[test]
    fn x_7_every_kind_of_item_is_passed_over() {
        // Numbers of all widths, strings whole and in pieces, tags, floats, and a list after each.
        let items: &[&[u8]] = &[
            b"\x17",
            b"\x18\x80",
            b"\x39\x80\x80",
            b"\x1a\x80\x80\x80\x80",
            b"\x1b\x81\x81\x81\x81\x81\x81\x81\x81",
            b"\x42\x81\x81",
            b"\x58\x02\x9f\x9f",
            b"\x62\xff\xff",
            b"\x5f\x41\x81\x42\x81\x81\xff",
            b"\x7f\x61a\xff",
            b"\xc1\x82\x01\x02",
            b"\xf5",
            b"\xf9\x81\x81",
            b"\xfb\x81\x81\x81\x81\x81\x81\x81\x81",
            b"\xa1\x01\x02",
        ];
        for item in items {
            let mut list = vec![0x82];
            list.extend_from_slice(item);
            list.extend_from_slice(b"\x81\x81\x81\x00");
            assert_eq!(deepest(&list), 4, "{item:x?}");
            for length in 0..list.len() {
                assert!(deepest(&list[..length]) <= 4, "{item:x?} cut at {length}");
            }
        }
        // Lengths and counts beyond the end, and heads that mean nothing.
        for broken in [
            &b"\x5b\xff\xff\xff\xff\xff\xff\xff\xff"[..],
            b"\xbb\xff\xff\xff\xff\xff\xff\xff\xff\x81",
            b"\x1c",
            b"\x5f\x81",
        ] {
            assert!(deepest(broken) <= 2, "{broken:x?}");
        }
    }

    #[test]
    fn broken_documents_are_refused_in_words() {
        let whole = to_vec(&task(b"abc")).unwrap();
        for length in 0..whole.len() {
            assert!(from_slice::<NewTask>(&whole[..length]).is_err(), "{length}");
        }
        let mut longer = whole;
        longer.push(0);
        assert!(matches!(from_slice::<NewTask>(&longer), Err(CborError::LeftOver(1))));
        // {"quue": "a"}
        let unknown = from_slice::<NewTask>(b"\xa1\x64quue\x61a").unwrap_err();
        assert!(unknown.to_string().contains("quue"), "{unknown}");
    }
}
