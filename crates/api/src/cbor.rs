//! Documents as CBOR: the same structs as in JSON, with payloads as byte strings.
//!
//! Promise: any bytes give a document or an error in words; bytes left over are an error. What nests too deep is refused
//! before it is read: the reader calls itself for every level, and documents may hold documents (X7).

use minicbor::data::Type;
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

/// How deep lists and maps nest, as far as is needed to tell whether that is too deep.
fn deepest(bytes: &[u8]) -> usize {
    let mut decoder = minicbor::Decoder::new(bytes);
    // Items left of each open list or map; none where a mark ends it.
    let mut open: Vec<Option<u64>> = Vec::new();
    let mut deepest = 0;
    while deepest <= JSON_DEPTH_MAX {
        while open.pop_if(|left| *left == Some(0)).is_some() {}
        if let Some(Some(left)) = open.last_mut() {
            *left -= 1;
        }
        let Ok(kind) = decoder.datatype() else { break };
        let read = match kind {
            Type::Array | Type::ArrayIndef => decoder.array().map(|count| open.push(count)),
            Type::Map | Type::MapIndef => {
                decoder.map().map(|count| open.push(count.map(|count| count.saturating_mul(2))))
            }
            Type::Break => {
                decoder.set_position(decoder.position() + 1);
                open.pop();
                Ok(())
            }
            // A tag and what follows it are one item.
            Type::Tag => decoder.tag().map(|_| {
                if let Some(Some(left)) = open.last_mut() {
                    *left += 1;
                }
            }),
            _ => decoder.skip(),
        };
        if read.is_err() {
            break;
        }
        deepest = deepest.max(open.len());
    }
    deepest
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
        let request = CompleteRequest { worker: "w".into(), tasks: vec![item] };
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
