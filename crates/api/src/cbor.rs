//! Documents as CBOR: the same structs as in JSON, with payloads as byte strings.
//!
//! Promise: any bytes give a document or an error in words; bytes left over are an error.

use serde::Serialize;
use serde::de::DeserializeOwned;

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
    let mut deserializer = minicbor_serde::Deserializer::new(bytes);
    let document =
        T::deserialize(&mut deserializer).map_err(|error| CborError::Read(error.to_string()))?;
    match bytes.len() - deserializer.decoder().position() {
        0 => Ok(document),
        left => Err(CborError::LeftOver(left)),
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
        let request = CompleteRequest { worker: "w".into(), tasks: vec![item] };
        let read: CompleteRequest = from_slice(&to_vec(&request).unwrap()).unwrap();
        assert_eq!(read.tasks[0].fence.0, u64::MAX - 1);
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
