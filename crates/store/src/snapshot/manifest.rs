//! The manifest: what a snapshot is, chunk by chunk. Travels to peers as it lies on disk.
//!
//! Format, little endian: magic `IKADASNP` (8), format u32, shard u16, zero u16, cluster u64, index u64, term u64, state
//! hash u64, configuration length u32, chunk count u32, configuration bytes, per chunk length u32 and BLAKE3 hash (32),
//! then the BLAKE3 hash of all that (32).

use super::SnapshotError;
use crate::codec::Reader;

const MAGIC: &[u8; 8] = b"IKADASNP";
const FORMAT: u32 = 1;

/// One chunk of a snapshot's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Length in bytes.
    pub length: u32,
    /// BLAKE3 of the bytes.
    pub hash: [u8; 32],
}

/// A snapshot's table of contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// Cluster.
    pub cluster: u64,
    /// Shard.
    pub shard: u16,
    /// Last log index that the state includes.
    pub index: u64,
    /// Its term.
    pub term: u64,
    /// Hash of the state machine at that index.
    pub state_hash: u64,
    /// Membership at that index, in the caller's encoding.
    pub conf: Vec<u8>,
    /// Chunks in order.
    pub chunks: Vec<Chunk>,
}

impl Manifest {
    pub(super) fn new(cluster: u64, shard: u16, index: u64, term: u64) -> Manifest {
        let (conf, chunks) = (Vec::new(), Vec::new());
        Manifest { cluster, shard, index, term, state_hash: 0, conf, chunks }
    }

    /// Bytes of all chunks together.
    #[must_use]
    pub fn data_bytes(&self) -> u64 {
        self.chunks.iter().map(|chunk| u64::from(chunk.length)).sum()
    }

    /// Where a chunk begins in the data file.
    pub(super) fn offset(&self, chunk: usize) -> u64 {
        self.chunks.iter().take(chunk).map(|chunk| u64::from(chunk.length)).sum()
    }

    /// Name of the files without folder and ending.
    pub(super) fn stem(&self) -> String {
        stem_of(self.shard, self.index, self.term)
    }

    /// Bytes for disk or peer.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(96 + self.conf.len() + 36 * self.chunks.len());
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&FORMAT.to_le_bytes());
        bytes.extend_from_slice(&self.shard.to_le_bytes());
        bytes.extend_from_slice(&0u16.to_le_bytes());
        for number in [self.cluster, self.index, self.term, self.state_hash] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(&(self.conf.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&(self.chunks.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&self.conf);
        for chunk in &self.chunks {
            bytes.extend_from_slice(&chunk.length.to_le_bytes());
            bytes.extend_from_slice(&chunk.hash);
        }
        let hash = blake3::hash(&bytes);
        bytes.extend_from_slice(hash.as_bytes());
        bytes
    }

    /// Reads what [`Manifest::encode`] wrote; refuses anything else.
    pub fn decode(bytes: &[u8]) -> Result<Manifest, SnapshotError> {
        let damaged = SnapshotError::Manifest;
        let body_length = bytes.len().checked_sub(32).ok_or(damaged("too short"))?;
        let (body, hash) = bytes.split_at(body_length);
        if blake3::hash(body).as_bytes() != hash {
            return Err(damaged("hash"));
        }
        let mut reader = Reader::new(body);
        if reader.bytes(8) != Some(MAGIC) || reader.u32() != Some(FORMAT) {
            return Err(damaged("unknown format"));
        }
        Manifest::decode_fields(&mut reader).ok_or(damaged("fields"))
    }

    fn decode_fields(reader: &mut Reader<'_>) -> Option<Manifest> {
        let shard = reader.u16()?;
        let _zero = reader.u16()?;
        let (cluster, index, term) = (reader.u64()?, reader.u64()?, reader.u64()?);
        let state_hash = reader.u64()?;
        let (conf_length, chunk_count) = (reader.u32()? as usize, reader.u32()? as usize);
        let conf = reader.bytes(conf_length)?.to_vec();
        if reader.remaining() != chunk_count.checked_mul(36)? {
            return None;
        }
        let mut chunks = Vec::with_capacity(chunk_count);
        for _ in 0..chunk_count {
            chunks.push(Chunk { length: reader.u32()?, hash: reader.hash()? });
        }
        Some(Manifest { cluster, shard, index, term, state_hash, conf, chunks })
    }
}

/// Name of the files of a snapshot at a position; names of one shard sort by position.
pub(super) fn stem_of(shard: u16, index: u64, term: u64) -> String {
    format!("{shard:05}-{index:020}-{term:020}")
}
