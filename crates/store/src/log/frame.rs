//! Bytes of the log: segment headers and frames. Encoding and total decoding, nothing else.
//!
//! All numbers little endian. A segment header has 64 bytes:
//!
//! | at | what |
//! |---|---|
//! | 0 | magic `IKADAWAL` |
//! | 8 | format u32, zero u32 |
//! | 16 | cluster u64, node u64, incarnation u64 |
//! | 40 | segment number u64, first batch u64 |
//! | 56 | crc32c u32 of bytes 0..56, zero u32 |
//!
//! A frame has a header of 64 bytes, a payload, and zeros up to a multiple of 8:
//!
//! | at | what |
//! |---|---|
//! | 0 | crc32c u32, see below |
//! | 4 | payload length u32 |
//! | 8 | magic u16, shard u16, kind u8, tag u8, zero u16 |
//! | 16 | cluster u64 |
//! | 24 | term u64, index u64, chain u64: meaning depends on the kind |
//! | 48 | batch u64: the batch it was written in |
//! | 56 | context length u32 (the payload's last part), zero u32 |
//!
//! The checksum covers node, incarnation, segment number and offset first, then bytes 4.. to the end of
//! the padding: a frame is valid only at the very place it was written to, so a misdirected write, a copied
//! file and a frame hidden in a payload all fail it.

use crate::codec::Reader;
use crate::identity::Identity;
use xxhash_rust::xxh3::xxh3_64;

pub(super) const FORMAT: u32 = 1;
pub(super) const HEADER_BYTES: usize = 64;
pub(super) const SEGMENT_HEADER_BYTES: usize = 64;
const SEGMENT_MAGIC: &[u8; 8] = b"IKADAWAL";
const FRAME_MAGIC: u16 = 0xD15C;

/// Tag of a [`Kind::Start`] that lies before the one before it.
pub(super) const TAG_BACK: u8 = 2;

/// What a frame is. The numbers are on disk: never reuse one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    /// Head of a batch. term: frames after it; index: bytes with it; chain: batch known durable by then.
    Batch = 1,
    /// A log entry. tag: the caller's kind; chain: over the shard's whole log up to here.
    Entry = 2,
    /// A live entry copied forward from an old segment; same fields.
    Copy = 3,
    /// term; index: commit; chain: vote.
    Hard = 4,
    /// The shard's log begins after (index, term), with this chain. tag 1: the entries after it stay; tag 2: the log
    /// goes back to an older beginning, and owes what it had.
    Start = 5,
    /// A shard's whole position, at the head of each segment. (index, term, chain): the start.
    Base = 6,
    /// index: batch that a sync has covered. Payload: [`Proof`]s of the shards touched since the last one.
    Mark = 7,
    /// Segments below `index` are not needed. tag 1: they were damaged and belong into quarantine.
    Trim = 8,
}

impl Kind {
    fn from_byte(byte: u8) -> Option<Kind> {
        use Kind::{Base, Batch, Copy, Entry, Hard, Mark, Start, Trim};
        [Batch, Entry, Copy, Hard, Start, Base, Mark, Trim].into_iter().find(|k| *k as u8 == byte)
    }
}

/// The numbers of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) kind: Kind,
    pub(super) tag: u8,
    pub(super) shard: u16,
    pub(super) term: u64,
    pub(super) index: u64,
    pub(super) chain: u64,
    pub(super) batch: u64,
}

/// A decoded frame; the payload's place is relative to the bytes it was decoded from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) head: Head,
    pub(super) context_length: usize,
    pub(super) payload_at: usize,
    pub(super) payload_length: usize,
    /// Length with header and padding.
    pub(super) length: usize,
}

/// Where frames live: turns a place into a checksum seed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) cluster: u64,
    seed: u32,
}

impl Place {
    pub(super) fn new(identity: &Identity, segment: u64) -> Place {
        let mut seed = 0;
        for number in [identity.node, identity.incarnation, segment] {
            seed = crc32c::crc32c_append(seed, &number.to_le_bytes());
        }
        Place { cluster: identity.cluster, seed }
    }

    fn checksum(&self, offset: u64, covered: &[u8]) -> u32 {
        let seed = crc32c::crc32c_append(self.seed, &offset.to_le_bytes());
        crc32c::crc32c_append(seed, covered)
    }
}

/// Bytes of a frame with this much payload.
pub(super) fn frame_bytes(payload_length: usize) -> usize {
    HEADER_BYTES + payload_length.next_multiple_of(8)
}

/// The next link of a shard's chain: it stands for the entry and all before it.
pub(super) fn link(previous: u64, head: &Head, context_length: usize, payload: &[u8]) -> u64 {
    let facts = [previous, head.term, head.index, u64::from(head.tag), context_length as u64];
    let mut bytes = [0; 48];
    for (slot, fact) in bytes.chunks_exact_mut(8).zip(facts) {
        slot.copy_from_slice(&fact.to_le_bytes());
    }
    bytes[40..].copy_from_slice(&xxh3_64(payload).to_le_bytes());
    xxh3_64(&bytes)
}

/// Appends a frame to a buffer that will be written at `base` of the segment. For an [`Kind::Entry`] whose
/// `previous` chain is given, the chain is computed on the way; the frame's chain is returned.
pub(super) fn encode(
    buffer: &mut Vec<u8>,
    place: &Place,
    base: u64,
    head: &Head,
    payload: [&[u8]; 2],
    previous: Option<u64>,
) -> u64 {
    let from = buffer.len();
    let payload_length = payload[0].len() + payload[1].len();
    let mut header = [0; HEADER_BYTES];
    header[4..8].copy_from_slice(&(payload_length as u32).to_le_bytes());
    header[8..10].copy_from_slice(&FRAME_MAGIC.to_le_bytes());
    header[10..12].copy_from_slice(&head.shard.to_le_bytes());
    header[12] = head.kind as u8;
    header[13] = head.tag;
    header[16..24].copy_from_slice(&place.cluster.to_le_bytes());
    header[24..32].copy_from_slice(&head.term.to_le_bytes());
    header[32..40].copy_from_slice(&head.index.to_le_bytes());
    header[48..56].copy_from_slice(&head.batch.to_le_bytes());
    header[56..60].copy_from_slice(&(payload[1].len() as u32).to_le_bytes());
    buffer.extend_from_slice(&header);
    buffer.extend_from_slice(payload[0]);
    buffer.extend_from_slice(payload[1]);
    let chain = previous.map_or(head.chain, |previous| {
        link(previous, head, payload[1].len(), &buffer[from + HEADER_BYTES..])
    });
    buffer.resize(from + frame_bytes(payload_length), 0);
    buffer[from + 40..from + 48].copy_from_slice(&chain.to_le_bytes());
    let crc = place.checksum(base + from as u64, &buffer[from + 4..]);
    buffer[from..from + 4].copy_from_slice(&crc.to_le_bytes());
    chain
}

/// Decodes the frame at `at`, if there is a valid one. `offset` is where `bytes` begin in the segment.
pub(super) fn decode(bytes: &[u8], at: usize, offset: u64, place: &Place) -> Option<Frame> {
    let frame = decode_trusted(bytes, at)?;
    let covered = &bytes[at + 4..at + frame.length];
    let stored = u32::from_le_bytes(bytes[at..at + 4].try_into().ok()?);
    let cluster = u64::from_le_bytes(bytes[at + 16..at + 24].try_into().ok()?);
    let good = cluster == place.cluster && stored == place.checksum(offset + at as u64, covered);
    good.then_some(frame)
}

/// Decodes without checking the checksum; lengths are checked, so the frame lies within the bytes.
pub(super) fn decode_trusted(bytes: &[u8], at: usize) -> Option<Frame> {
    let header = bytes.get(at..at.checked_add(HEADER_BYTES)?)?;
    // The magic first: a search for the next frame comes here for every aligned offset.
    if header[8..10] != FRAME_MAGIC.to_le_bytes() {
        return None;
    }
    let mut reader = Reader::new(&header[4..]);
    let payload_length = reader.u32()? as usize;
    let _magic = reader.u16()?;
    let shard = reader.u16()?;
    let (kind, tag) = (Kind::from_byte(header[12])?, header[13]);
    let mut reader = Reader::new(&header[24..]);
    let (term, index, chain) = (reader.u64()?, reader.u64()?, reader.u64()?);
    let (batch, context_length) = (reader.u64()?, reader.u32()? as usize);
    let length = frame_bytes(payload_length);
    if context_length > payload_length || length > bytes.len() - at {
        return None;
    }
    let head = Head { kind, tag, shard, term, index, chain, batch };
    let payload_at = at + HEADER_BYTES;
    Some(Frame { head, context_length, payload_at, payload_length, length })
}

/// A segment's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentHeader {
    pub(super) format: u32,
    pub(super) cluster: u64,
    pub(super) node: u64,
    pub(super) incarnation: u64,
    pub(super) number: u64,
    pub(super) first_batch: u64,
}

impl SegmentHeader {
    pub(super) fn encode(&self, buffer: &mut Vec<u8>) {
        let from = buffer.len();
        buffer.extend_from_slice(SEGMENT_MAGIC);
        buffer.extend_from_slice(&self.format.to_le_bytes());
        buffer.extend_from_slice(&[0; 4]);
        let numbers = [self.cluster, self.node, self.incarnation, self.number, self.first_batch];
        for number in numbers {
            buffer.extend_from_slice(&number.to_le_bytes());
        }
        let crc = crc32c::crc32c(&buffer[from..]);
        buffer.extend_from_slice(&crc.to_le_bytes());
        buffer.extend_from_slice(&[0; 4]);
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<SegmentHeader> {
        let header = bytes.get(..SEGMENT_HEADER_BYTES)?;
        let mut reader = Reader::new(header);
        if reader.bytes(8)? != SEGMENT_MAGIC
            || header[56..60] != crc32c::crc32c(&header[..56]).to_le_bytes()
        {
            return None;
        }
        let format = reader.u32()?;
        let _zero = reader.u32()?;
        let (cluster, node, incarnation) = (reader.u64()?, reader.u64()?, reader.u64()?);
        let (number, first_batch) = (reader.u64()?, reader.u64()?);
        Some(SegmentHeader { format, cluster, node, incarnation, number, first_batch })
    }
}

/// A shard's position at a moment when everything was durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Proof {
    pub(super) shard: u16,
    pub(super) last_index: u64,
    pub(super) last_term: u64,
    pub(super) chain: u64,
    pub(super) term: u64,
    pub(super) vote: u64,
}

pub(super) const PROOF_BYTES: usize = 48;

impl Proof {
    pub(super) fn encode(&self, buffer: &mut Vec<u8>) {
        buffer.extend_from_slice(&u64::from(self.shard).to_le_bytes());
        for number in [self.last_index, self.last_term, self.chain, self.term, self.vote] {
            buffer.extend_from_slice(&number.to_le_bytes());
        }
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Option<Proof> {
        Some(Proof {
            shard: u16::try_from(reader.u64()?).ok()?,
            last_index: reader.u64()?,
            last_term: reader.u64()?,
            chain: reader.u64()?,
            term: reader.u64()?,
            vote: reader.u64()?,
        })
    }

    /// All proofs in a payload; stops at the first malformed one.
    pub(super) fn decode_all(payload: &[u8]) -> Vec<Proof> {
        let mut reader = Reader::new(payload);
        std::iter::from_fn(|| Proof::decode(&mut reader)).collect()
    }
}

/// The payload of a [`Kind::Base`]: the shard's end, hard state and floor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BaseTail {
    pub(super) proof: Proof,
    pub(super) commit: u64,
    pub(super) floor: u64,
}

pub(super) const BASE_TAIL_BYTES: usize = PROOF_BYTES + 16;

impl BaseTail {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(BASE_TAIL_BYTES);
        self.proof.encode(&mut bytes);
        bytes.extend_from_slice(&self.commit.to_le_bytes());
        bytes.extend_from_slice(&self.floor.to_le_bytes());
        bytes
    }

    pub(super) fn decode(payload: &[u8]) -> Option<BaseTail> {
        let mut reader = Reader::new(payload);
        let proof = Proof::decode(&mut reader)?;
        Some(BaseTail { proof, commit: reader.u64()?, floor: reader.u64()? })
    }
}
