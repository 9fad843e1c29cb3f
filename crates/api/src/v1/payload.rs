//! Payloads and results: any JSON value, any bytes as base64, or (in CBOR) any bytes as they are.
//!
//! Inside the cluster a payload is bytes. JSON is kept as the very text that was sent, so that nothing is reformatted
//! on the way. On the way out, bytes that are one JSON value without surrounding space are shown as JSON, all others
//! as base64; reading either form back gives exactly the bytes that were stored. JSON `null` means no payload.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// Deepest nesting of JSON that is taken or shown (X7): deeper text is a trap for readers, not data.
pub const JSON_DEPTH_MAX: usize = 64;

/// The three forms in which bytes travel; at most one is present.
#[derive(Debug, Clone, Default)]
pub struct Body {
    /// A JSON value.
    pub json: Option<Box<RawValue>>,
    /// Bytes as base64.
    pub base64: Option<String>,
    /// Bytes as they are; for CBOR.
    pub bytes: Option<RawBytes>,
}

/// A byte string.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RawBytes(pub Vec<u8>);

impl Serialize for RawBytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for RawBytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            return Err(D::Error::custom("byte strings exist in CBOR only; use base64 in JSON"));
        }
        deserializer.deserialize_bytes(BytesVisitor).map(RawBytes)
    }
}

struct BytesVisitor;

impl serde::de::Visitor<'_> for BytesVisitor {
    type Value = Vec<u8>;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a byte string")
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
        Ok(bytes.to_vec())
    }

    fn visit_byte_buf<E>(self, bytes: Vec<u8>) -> Result<Vec<u8>, E> {
        Ok(bytes)
    }
}

/// Why a body has no bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// Two forms were given.
    #[error("give a JSON value, base64 or a byte string, not two of them")]
    Both,
    /// The text is not base64.
    #[error("is not valid base64 (standard alphabet, with padding)")]
    BadBase64,
}

impl Body {
    /// Shows bytes in the form that loses nothing.
    pub fn of(bytes: &[u8]) -> Body {
        if bytes.is_empty() {
            return Body::default();
        }
        match show_as_json(bytes) {
            Some(json) => Body { json: Some(json), ..Body::default() },
            None => Body { base64: Some(STANDARD.encode(bytes)), ..Body::default() },
        }
    }

    /// The bytes as they are, for CBOR.
    pub fn raw(bytes: &[u8]) -> Body {
        let bytes = (!bytes.is_empty()).then(|| RawBytes(bytes.to_vec()));
        Body { bytes, ..Body::default() }
    }

    /// Reads the bytes of whichever form is present; none means empty.
    pub fn bytes(
        json: Option<&RawValue>,
        base64: Option<&str>,
        bytes: Option<&RawBytes>,
    ) -> Result<Vec<u8>, BodyError> {
        match (json, base64, bytes) {
            (None, None, None) => Ok(Vec::new()),
            (None, None, Some(bytes)) => Ok(bytes.0.clone()),
            (Some(json), None, None) => Ok(json.get().as_bytes().to_vec()),
            (None, Some(text), None) => STANDARD.decode(text).map_err(|_| BodyError::BadBase64),
            _ => Err(BodyError::Both),
        }
    }
}

/// The bytes as a JSON value, if that round-trips exactly: a lone `null` would be read back as nothing.
fn show_as_json(bytes: &[u8]) -> Option<Box<RawValue>> {
    let trimmed = |byte: &u8| !byte.is_ascii_whitespace();
    let plain = bytes.first().is_some_and(trimmed) && bytes.last().is_some_and(trimmed);
    if !plain || bytes == b"null" || json_depth(bytes) > JSON_DEPTH_MAX {
        return None;
    }
    serde_json::from_slice(bytes).ok()
}

/// How deep brackets nest outside of strings; meaningful for any bytes, valid JSON or not.
pub fn json_depth(bytes: &[u8]) -> usize {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0usize, 0usize, false, false);
    for byte in bytes {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(bytes: &[u8]) -> Vec<u8> {
        let shown = Body::of(bytes);
        // As over the wire: serialise, parse, read.
        let json: Option<Box<RawValue>> = shown
            .json
            .map(|value| serde_json::from_str(&serde_json::to_string(&value).unwrap()).unwrap());
        Body::bytes(json.as_deref(), shown.base64.as_deref(), None).unwrap()
    }

    // TQ-27
    #[test]
    fn tq_27_any_bytes_survive_both_ways() {
        let deep = "[".repeat(200) + &"]".repeat(200);
        let samples: Vec<&[u8]> = vec![
            b"",
            b"{}",
            b"null",
            b" 1",
            b"1\n",
            b"{\"a\": [1, 2.50]}",
            b"\xff\x00|",
            b"text",
            b"\"a\\\"b\"",
            b"1e400",
            deep.as_bytes(),
        ];
        for bytes in samples {
            assert_eq!(round_trip(bytes), bytes, "{:?}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn json_is_shown_as_json() {
        assert!(Body::of(b"{\"n\":1}").json.is_some());
        assert!(Body::of(b"not json").base64.is_some());
    }

    #[test]
    fn two_forms_and_bad_base64_are_refused() {
        let json: Box<RawValue> = serde_json::from_str("1").unwrap();
        assert_eq!(Body::bytes(Some(&json), Some(""), None), Err(BodyError::Both));
        assert_eq!(Body::bytes(None, Some("%%"), None), Err(BodyError::BadBase64));
        let bytes = RawBytes(vec![1]);
        assert_eq!(Body::bytes(None, Some(""), Some(&bytes)), Err(BodyError::Both));
    }

    // X7
    #[test]
    fn depth_ignores_brackets_in_strings() {
        assert_eq!(json_depth(b"\"[[[\\\"[[\""), 0);
        assert_eq!(json_depth(b"{\"a\":[[1],[2]]}"), 3);
        assert_eq!(json_depth(b"]]]]["), 1);
    }
}
