//! The shared write-ahead log: one stream of segments for all shards of a node, one sync per turn.
pub(crate) mod error;
pub(crate) mod record;

pub use error::{Fault, OpenError};
pub use record::{Record, RecoveredEntry, RecoveredShard, Recovery};

use crate::disk::Disk;
use crate::identity::Identity;

/// Settings of a log.
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// A segment is closed once the next batch would not fit into this many bytes.
    pub segment_bytes: u64,
    /// How many bytes of old entries one purge may copy forward.
    pub rewrite_bytes: u64,
}

impl Default for LogOptions {
    fn default() -> Self {
        LogOptions {
            segment_bytes: 64 << 20,
            rewrite_bytes: 4 << 20,
        }
    }
}

/// Figures about a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogStats {
    /// Bytes in all segments (without reserved space).
    pub bytes: u64,
    /// Bytes of entries that are still needed.
    pub live_bytes: u64,
    /// Entries that are still needed.
    pub live_entries: u64,
    /// Number of segments.
    pub segments: u64,
    /// Syncs of segments since open.
    pub syncs: u64,
    /// Batches since open.
    pub batches: u64,
    /// Records appended by the caller since open.
    pub appended_records: u64,
    /// Bytes appended by the caller since open, with headers.
    pub appended_bytes: u64,
    /// Entries copied forward since open.
    pub rewritten_records: u64,
    /// Segments deleted since open.
    pub deleted_segments: u64,
}

/// The log.
pub struct Log<D: Disk> {
    _disk: D,
}

impl<D: Disk> Log<D> {
    /// Opens or creates the log in `wal/` and reads everything back.
    pub fn open(
        disk: D,
        _identity: &Identity,
        _options: LogOptions,
    ) -> Result<(Log<D>, Recovery), OpenError> {
        Ok((Log { _disk: disk }, Recovery::default()))
    }
    /// Writes records as one batch, in order. Durable after the next [`Log::sync`].
    pub fn append(&mut self, _records: &[Record]) -> Result<(), Fault> {
        Err(Fault::Closed)
    }
    /// Makes everything appended so far durable.
    pub fn sync(&mut self) -> Result<(), Fault> {
        Err(Fault::Closed)
    }
    /// A durable snapshot covers the shard's log up to this point: forgets it.
    pub fn purge(&mut self, _shard: u16, _upto_index: u64, _term: u64) -> Result<(), Fault> {
        Err(Fault::Closed)
    }
    /// Figures.
    #[must_use]
    pub fn stats(&self) -> LogStats {
        LogStats::default()
    }
}
