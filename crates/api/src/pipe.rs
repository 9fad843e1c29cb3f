//! The pipe: many calls at once over one connection, for programs that send thousands a second.
//!
//! A client opens it with `GET /v1/pipe`, `Connection: Upgrade`, `Upgrade: ikada-pipe`; after `101` both sides send
//! frames: a length (u32, little endian) and that many bytes of CBOR, a [`PipeAsk`] one way and a [`PipeAnswer`] the
//! other. A call is the same as the route of its verb, with the same body in CBOR and the same answer; answers come in
//! any order and name their call. Fields are numbered, so that later versions may add some.
//!
//! Leaves out: routes that are not on a worker's or a submitter's hot path; those use plain HTTP.

use minicbor::bytes::ByteSlice;
use minicbor::{Decode, Encode};

use crate::routes::Operation;

/// The protocol's name in `Upgrade`.
pub const PIPE_PROTOCOL: &str = "ikada-pipe";
/// Where a pipe is opened.
pub const PIPE_PATH: &str = "/v1/pipe";
/// Bytes of a frame's length.
pub const LENGTH_BYTES: usize = 4;

/// What a call does. Numbers are stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum PipeVerb {
    /// `POST /v1/tasks`.
    #[n(1)]
    Enqueue,
    /// `POST /v1/tasks/claim`.
    #[n(2)]
    Claim,
    /// `POST /v1/tasks/complete`.
    #[n(3)]
    Complete,
    /// `POST /v1/tasks/fail`.
    #[n(4)]
    Fail,
    /// `POST /v1/tasks/renew`.
    #[n(5)]
    Renew,
}

impl PipeVerb {
    /// The route that it stands for.
    pub fn operation(self) -> Operation {
        match self {
            PipeVerb::Enqueue => Operation::Enqueue,
            PipeVerb::Claim => Operation::Claim,
            PipeVerb::Complete => Operation::Complete,
            PipeVerb::Fail => Operation::Fail,
            PipeVerb::Renew => Operation::Renew,
        }
    }

    /// The verb of a path that is posted to, if it has one.
    pub fn of_path(path: &str) -> Option<PipeVerb> {
        match path {
            "/v1/tasks" => Some(PipeVerb::Enqueue),
            "/v1/tasks/claim" => Some(PipeVerb::Claim),
            "/v1/tasks/complete" => Some(PipeVerb::Complete),
            "/v1/tasks/fail" => Some(PipeVerb::Fail),
            "/v1/tasks/renew" => Some(PipeVerb::Renew),
            _ => None,
        }
    }
}

/// One call.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct PipeAsk<'a> {
    /// Comes back with the answer; the client's choice.
    #[n(0)]
    pub call: u64,
    /// What to do.
    #[n(1)]
    pub verb: PipeVerb,
    /// How long the client waits.
    #[n(2)]
    pub timeout_ms: u32,
    /// The idempotency key.
    #[b(3)]
    pub key: Option<&'a str>,
    /// The namespace; `default` when absent.
    #[b(4)]
    pub namespace: Option<&'a str>,
    /// The request document, in CBOR.
    #[b(5)]
    pub body: &'a ByteSlice,
}

/// One answer.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct PipeAnswer<'a> {
    /// The call.
    #[n(0)]
    pub call: u64,
    /// The status as in HTTP.
    #[n(1)]
    pub status: u16,
    /// The document, or the problem, in CBOR.
    #[b(2)]
    pub body: &'a ByteSlice,
}

/// Appends a frame.
pub fn push_frame<T: Encode<()>>(frames: &mut Vec<u8>, message: &T) {
    let start = frames.len();
    frames.extend_from_slice(&[0; LENGTH_BYTES]);
    let outcome = minicbor::encode(message, &mut *frames);
    assert!(outcome.is_ok(), "encoding into memory failed");
    let length = (frames.len() - start - LENGTH_BYTES) as u32;
    frames[start..start + LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
}

/// What a buffer begins with.
#[derive(Debug, PartialEq, Eq)]
pub enum FrontFrame<'a> {
    /// A whole frame's message.
    Whole(&'a [u8]),
    /// Not all of it is there yet.
    Part,
    /// A frame longer than allowed.
    TooLong(usize),
}

/// Looks at the first frame of a buffer. A whole one takes its message and `LENGTH_BYTES` more.
pub fn front_frame(buffer: &[u8], bytes_max: usize) -> FrontFrame<'_> {
    let Some((length, rest)) = buffer.split_first_chunk::<LENGTH_BYTES>() else {
        return FrontFrame::Part;
    };
    let length = u32::from_le_bytes(*length) as usize;
    if length > bytes_max {
        return FrontFrame::TooLong(length);
    }
    rest.get(..length).map_or(FrontFrame::Part, FrontFrame::Whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_back_one_by_one() {
        let body: &ByteSlice = b"\xa0".as_slice().into();
        let ask = PipeAsk {
            call: 7,
            verb: PipeVerb::Claim,
            timeout_ms: 500,
            key: Some("k"),
            namespace: None,
            body,
        };
        let answer = PipeAnswer { call: 7, status: 200, body };
        let mut frames = Vec::new();
        push_frame(&mut frames, &ask);
        let first = frames.len();
        push_frame(&mut frames, &answer);
        for length in 0..first {
            assert_eq!(front_frame(&frames[..length], 1 << 20), FrontFrame::Part);
        }
        let FrontFrame::Whole(message) = front_frame(&frames, 1 << 20) else { panic!("whole") };
        assert_eq!(minicbor::decode::<PipeAsk<'_>>(message).unwrap(), ask);
        let FrontFrame::Whole(message) = front_frame(&frames[first..], 1 << 20) else {
            panic!("whole")
        };
        assert_eq!(minicbor::decode::<PipeAnswer<'_>>(message).unwrap(), answer);
        assert!(matches!(front_frame(&frames, 3), FrontFrame::TooLong(_)));
    }
}
