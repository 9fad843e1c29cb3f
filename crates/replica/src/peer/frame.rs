//! Frames: a header and any number of messages, for one peer.
//!
//! Layout, little endian: version u8, cluster u64, from u64, from's incarnation u64, to u64, to's incarnation as the
//! sender knows it u64 (0 = not known), sender's wall clock u64; then per message: kind u8, length u32, body. Raft
//! bodies and snapshot chunks are slices of the frame, not copies.

use bytes::{Buf, Bytes};
use ikada_consensus::{Message, NodeId, Start};
use ikada_state::ShardId;

use super::message::{PeerMessage, SnapshotMessage};

/// The version this build writes. A node refuses frames of a later one.
const VERSION: u8 = 1;
const HEADER_BYTES: usize = 1 + 8 * 6;
/// Room for a few heartbeats or one small entry, so that a usual frame is not copied while it grows.
const FRAME_BYTES_USUAL: usize = 512;
/// Most messages read from one frame.
const MESSAGES_MAX: usize = 65_536;
/// Room is made at once for at most this many.
const COUNTED_MAX: usize = 64;

const RAFT: u8 = 1;
const ASK: u8 = 2;
const TOLD: u8 = 3;
const HINT: u8 = 4;
const HASH: u8 = 5;
const OFFER: u8 = 6;
const WANT: u8 = 7;
const CHUNK: u8 = 8;
const END: u8 = 9;
const DISK_STILL: u8 = 10;
const LEVEL: u8 = 11;
const DISK_LOW: u8 = 12;
const REACH: u8 = 13;

/// Who speaks to whom, and when by the speaker's wall clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The cluster.
    pub cluster: u64,
    /// The speaker.
    pub from: NodeId,
    /// The speaker's disk.
    pub from_incarnation: u64,
    /// The addressee.
    pub to: NodeId,
    /// The addressee's disk as the speaker knows it; 0 if it does not.
    pub to_incarnation: u64,
    /// The speaker's wall clock.
    pub wall_ms: u64,
}

/// Why a frame was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Too short, too long, or cut off.
    #[error("frame is cut off or malformed")]
    Malformed,
    /// Written by a later version.
    #[error("frame has version {0}, this node reads {VERSION}")]
    Version(u8),
}

/// Builds one frame.
#[derive(Debug)]
pub struct Framer {
    bytes: Vec<u8>,
    messages: usize,
}

impl Framer {
    /// An empty frame; the header is written when it is finished.
    pub fn new() -> Self {
        let mut bytes = Vec::with_capacity(FRAME_BYTES_USUAL);
        bytes.resize(HEADER_BYTES, 0);
        Framer { bytes, messages: 0 }
    }

    /// Whether no message was added.
    pub fn is_empty(&self) -> bool {
        self.messages == 0
    }

    /// Bytes so far.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Adds one message.
    pub fn push(&mut self, message: &PeerMessage) {
        self.messages += 1;
        match message {
            PeerMessage::Raft(raft) => self.body(RAFT, |out| raft.encode(out)),
            PeerMessage::Ask { leg, shard, ask } => self.body(ASK, |out| {
                out.extend_from_slice(&leg.to_le_bytes());
                out.extend_from_slice(&shard.to_le_bytes());
                cbor(ask, out);
            }),
            PeerMessage::Told { leg, told } => self.body(TOLD, |out| {
                out.extend_from_slice(&leg.to_le_bytes());
                cbor(told, out);
            }),
            PeerMessage::Hint(hint) => self.body(HINT, |out| cbor(hint, out)),
            PeerMessage::Hash(report) => self.body(HASH, |out| cbor(report, out)),
            PeerMessage::Snapshot(step) => self.push_snapshot(step),
            PeerMessage::DiskStill => self.body(DISK_STILL, |_| {}),
            PeerMessage::DiskLow => self.body(DISK_LOW, |_| {}),
            PeerMessage::Level(level) => {
                self.body(LEVEL, |out| out.extend_from_slice(&level.to_le_bytes()));
            }
            PeerMessage::Reach(reach) => self.body(REACH, |out| {
                reach.iter().for_each(|index| out.extend_from_slice(&index.to_le_bytes()));
            }),
        }
    }

    fn push_snapshot(&mut self, step: &SnapshotMessage) {
        match step {
            SnapshotMessage::Offer { shard, start, manifest, message } => self.body(OFFER, |out| {
                place(*shard, *start, out);
                out.extend_from_slice(&(manifest.len() as u32).to_le_bytes());
                out.extend_from_slice(manifest);
                message.encode(out);
            }),
            SnapshotMessage::Want { shard, start, chunk } => self.body(WANT, |out| {
                place(*shard, *start, out);
                out.extend_from_slice(&chunk.to_le_bytes());
            }),
            SnapshotMessage::Chunk { shard, start, chunk, bytes } => self.body(CHUNK, |out| {
                place(*shard, *start, out);
                out.extend_from_slice(&chunk.to_le_bytes());
                out.extend_from_slice(bytes);
            }),
            SnapshotMessage::End { shard, ok } => self.body(END, |out| {
                out.extend_from_slice(&shard.to_le_bytes());
                out.push(u8::from(*ok));
            }),
        }
    }

    fn body(&mut self, kind: u8, write: impl FnOnce(&mut Vec<u8>)) {
        self.bytes.push(kind);
        let at = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 4]);
        write(&mut self.bytes);
        let length = (self.bytes.len() - at - 4) as u32;
        self.bytes[at..at + 4].copy_from_slice(&length.to_le_bytes());
    }

    /// The frame with its header.
    pub fn finish(mut self, header: &Header) -> Bytes {
        self.bytes[0] = VERSION;
        let words = [
            header.cluster,
            header.from,
            header.from_incarnation,
            header.to,
            header.to_incarnation,
            header.wall_ms,
        ];
        for (place, word) in self.bytes[1..HEADER_BYTES].chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        Bytes::from(self.bytes)
    }
}

impl Default for Framer {
    fn default() -> Self {
        Framer::new()
    }
}

fn cbor<T: minicbor::Encode<()>>(value: &T, out: &mut Vec<u8>) {
    // Writing to a Vec cannot fail.
    let _ = minicbor::encode(value, out);
}

fn place(shard: ShardId, start: Start, out: &mut Vec<u8>) {
    out.extend_from_slice(&shard.to_le_bytes());
    out.extend_from_slice(&start.index.to_le_bytes());
    out.extend_from_slice(&start.term.to_le_bytes());
}

/// Reads a frame. A message of a kind that this version does not know is passed over (a later version may send it).
pub fn decode(frame: Bytes) -> Result<(Header, Vec<PeerMessage>), FrameError> {
    let (header, rest) = open(frame)?;
    let mut messages = Vec::with_capacity(rest.count_ahead());
    for message in rest {
        messages.push(message?);
    }
    Ok((header, messages))
}

/// Reads a frame's header; the messages follow one at a time.
pub fn open(mut frame: Bytes) -> Result<(Header, Messages), FrameError> {
    if frame.len() < HEADER_BYTES {
        return Err(FrameError::Malformed);
    }
    let version = frame.get_u8();
    if version > VERSION {
        return Err(FrameError::Version(version));
    }
    let header = Header {
        cluster: frame.get_u64_le(),
        from: frame.get_u64_le(),
        from_incarnation: frame.get_u64_le(),
        to: frame.get_u64_le(),
        to_incarnation: frame.get_u64_le(),
        wall_ms: frame.get_u64_le(),
    };
    Ok((header, Messages { rest: frame, given: 0, engine_only: false }))
}

/// The messages of a frame in order; ends after the first that cannot be read.
#[derive(Debug)]
pub struct Messages {
    rest: Bytes,
    given: usize,
    engine_only: bool,
}

impl Messages {
    /// Only those of the consensus engine; the bodies of the others are not read.
    pub fn of_engine(self) -> Messages {
        Messages { engine_only: true, ..self }
    }

    /// About how many will come, from their lengths alone.
    fn count_ahead(&self) -> usize {
        let mut rest = &self.rest[..];
        let mut count = 0;
        while count < COUNTED_MAX
            && let Some((head, body)) = rest.split_first_chunk::<5>()
        {
            count += 1;
            let length = u32::from_le_bytes([head[1], head[2], head[3], head[4]]) as usize;
            rest = body.get(length..).unwrap_or_default();
        }
        count
    }

    fn read(&mut self) -> Result<Option<PeerMessage>, FrameError> {
        if self.rest.remaining() < 5 || self.given >= MESSAGES_MAX {
            return Err(FrameError::Malformed);
        }
        let kind = self.rest.get_u8();
        let length = self.rest.get_u32_le() as usize;
        if self.rest.remaining() < length {
            return Err(FrameError::Malformed);
        }
        let body = self.rest.split_to(length);
        if !(RAFT..=REACH).contains(&kind) || (self.engine_only && kind != RAFT) {
            return Ok(None);
        }
        self.given += 1;
        message(kind, body).map(Some).ok_or(FrameError::Malformed)
    }
}

impl Iterator for Messages {
    type Item = Result<PeerMessage, FrameError>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.rest.has_remaining() {
            match self.read() {
                Ok(None) => {}
                Ok(Some(message)) => return Some(Ok(message)),
                Err(error) => {
                    self.rest.clear();
                    return Some(Err(error));
                }
            }
        }
        None
    }
}

fn message(kind: u8, mut body: Bytes) -> Option<PeerMessage> {
    Some(match kind {
        RAFT => PeerMessage::Raft(Message::decode(body).ok()?),
        ASK => {
            let leg = body.try_get_u64_le().ok()?;
            let shard = body.try_get_u16_le().ok()?;
            PeerMessage::Ask { leg, shard, ask: minicbor::decode(&body).ok()? }
        }
        TOLD => {
            let leg = body.try_get_u64_le().ok()?;
            PeerMessage::Told { leg, told: minicbor::decode(&body).ok()? }
        }
        HINT => PeerMessage::Hint(minicbor::decode(&body).ok()?),
        HASH => PeerMessage::Hash(minicbor::decode(&body).ok()?),
        OFFER | WANT | CHUNK => PeerMessage::Snapshot(snapshot(kind, body)?),
        DISK_STILL => PeerMessage::DiskStill,
        DISK_LOW => PeerMessage::DiskLow,
        LEVEL => PeerMessage::Level(body.try_get_u32_le().ok()?),
        REACH => PeerMessage::Reach(std::iter::from_fn(|| body.try_get_u64_le().ok()).collect()),
        _ => {
            let shard = body.try_get_u16_le().ok()?;
            let ok = body.try_get_u8().ok()? != 0;
            PeerMessage::Snapshot(SnapshotMessage::End { shard, ok })
        }
    })
}

fn snapshot(kind: u8, mut body: Bytes) -> Option<SnapshotMessage> {
    let shard = body.try_get_u16_le().ok()?;
    let index = body.try_get_u64_le().ok()?;
    let term = body.try_get_u64_le().ok()?;
    let start = Start { index, term };
    if kind == OFFER {
        let length = body.try_get_u32_le().ok()? as usize;
        if body.remaining() < length {
            return None;
        }
        let manifest = body.split_to(length);
        let message = Message::decode(body).ok()?;
        return Some(SnapshotMessage::Offer { shard, start, manifest, message });
    }
    let chunk = body.try_get_u32_le().ok()?;
    Some(if kind == WANT {
        SnapshotMessage::Want { shard, start, chunk }
    } else {
        SnapshotMessage::Chunk { shard, start, chunk, bytes: body }
    })
}
