//! What the S3 door reads of a request before it knows the caller, and of its body after that.

use bytes::BytesMut;
use hyper::http::request::Parts;
use ikada_api::s3::xml::{elements, first};

use super::chunked::{ChunkReader, Step};
use super::route::Call;
use super::sign::{ChunkKey, Signed};

/// The secret key of all callers; seeds are signed with it.
pub(crate) const SECRET: &str = "secret";
/// When seeds are signed, ms since 1970.
pub(crate) const SIGNED_MS: u64 = 1_795_705_445_000;
/// Pieces in which a body arrives.
const PIECE_BYTES: usize = 61;

/// Reads a request.
pub(in crate::http) fn read(parts: &Parts, body: &[u8]) {
    if let Ok(call) = Call::read(parts) {
        let _ = (call.action.operation(), call.name());
    }
    let mut key = None;
    if let Ok(signed) = Signed::read(parts) {
        key = signed.check(parts, SECRET, SIGNED_MS).ok();
        let _ = signed.check(parts, SECRET, 0);
        let _ = signed.check(parts, SECRET, u64::MAX / 2);
    }
    if key.is_some() {
        read_chunks(key, body);
    }
    read_chunks(None, body);
    let text = String::from_utf8_lossy(body);
    for name in ["Object", "Key", "Part", "PartNumber", "ETag", "VersionId"] {
        let _ = (elements(&text, name).len(), first(&text, name));
    }
}

fn read_chunks(key: Option<ChunkKey>, body: &[u8]) {
    let mut reader = ChunkReader::new(key);
    let mut buffer = BytesMut::new();
    let mut given = 0;
    for piece in body.chunks(PIECE_BYTES) {
        buffer.extend_from_slice(piece);
        loop {
            match reader.step(&mut buffer) {
                Ok(Step::Data(data)) => given += data.len(),
                Ok(Step::More | Step::Done) => break,
                Err(_) => return,
            }
        }
    }
    let _ = reader.end();
    assert!(given <= body.len(), "a body gives no more than it has");
}
