//! The shared write-ahead log: one stream of segments for all shards of a node, one sync per turn.
//!
//! Shape
//! - `wal/<number, 20 digits>.log`: segments, preallocated. Each begins with a header and a *checkpoint*, a batch
//!   with every shard's whole position, so old segments can go without taking anyone's vote along.
//! - One [`Log::append`] is one *batch*: one contiguous write, led by its number, count, length and the number
//!   of the last batch known durable. The batch numbers rise by one over all segments.
//! - After a successful sync a *mark* is written at once, un-synced: the batch that is durable, and the end of
//!   every shard touched since the last mark. `votes.*` hold the same facts in other files (`votes.rs`).
//! - `spare`: the next segment's room, taken beforehand (`spare.rs`).
//! - `frame.rs` gives the bytes.
//!
//! Recovery (`scan.rs`, `replay.rs`, `open.rs`)
//! - *Proven* is the highest batch that any mark, batch head, segment header or votes file calls durable. An
//!   incomplete batch above it was never acknowledged: the log is cut before it. Everything else
//!   that does not read back is damage.
//! - Damage: the scan goes on behind it; an entry is used only if its shard's log is whole up to it and its chain
//!   matches, and nothing that the hole may have overwritten is believed without a later proof. What was proven
//!   written but cannot be used is the shard's *floor*. Survivors are written to a fresh segment, all old ones move to
//!   `quarantine/`.
//! - Honest limit: a batch whose sync succeeded just before a power cut may lose its un-synced mark; damage to exactly
//!   that batch then looks like a torn write.
//!
//! Callers (one disk thread per node): append, append, sync, acknowledge. Any [`Fault`] ends the process, but for a full
//! disk that says it can be retried.
//! Left out: reading entries back (the engine keeps its tail in memory), threads, when to snapshot.

mod append;
mod error;
mod frame;
mod open;
mod purge;
mod record;
mod replay;
mod scan;
mod shard;
mod spare;
mod sync;
mod votes;
mod window;

pub use error::{Fault, OpenError};
pub use record::{Record, RecoveredEntry, RecoveredShard, Recovery};

use crate::disk::{self, Disk};
use crate::identity::Identity;
use frame::{Place, Proof};
use shard::{Segments, Shards};
use std::io;

pub(crate) const FOLDER: &str = "wal";

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
        // Large enough that closing a segment (three syncs) is rare, small enough to be read back at once.
        LogOptions { segment_bytes: 64 << 20, rewrite_bytes: 4 << 20 }
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
#[derive(Debug)]
pub struct Log<D: Disk> {
    disk: D,
    identity: Identity,
    options: LogOptions,
    file: D::File,
    place: Place,
    /// Where the next frame goes in the current segment.
    tail: u64,
    /// End of the current segment's checkpoint and first mark: a batch too large for any segment still goes
    /// into one that holds nothing else.
    checkpoint_end: u64,
    segments: Segments,
    shards: Shards,
    /// Last batch written.
    batch: u64,
    /// Last batch synced.
    durable: u64,
    /// Last batch that something synced says is durable.
    proven: u64,
    /// A record changed a term or vote since the votes file was written.
    votes_stale: bool,
    votes: votes::VoteFiles<D::File>,
    /// Segments below this one are not needed, and a record says so.
    low: u64,
    /// The batch of that record.
    low_batch: u64,
    closed: bool,
    /// The next segment's file; absent while the disk has no room for it.
    spare: Option<D::File>,
    buffer: Vec<u8>,
    proofs: Vec<Proof>,
    stats: LogStats,
}

impl<D: Disk> Log<D> {
    /// Opens or creates the log in `wal/` and reads everything back.
    pub fn open(
        disk: D,
        identity: &Identity,
        options: LogOptions,
    ) -> Result<(Log<D>, Recovery), OpenError> {
        open::open(disk, identity, options)
    }

    /// Figures.
    #[must_use]
    pub fn stats(&self) -> LogStats {
        let list = &self.segments.list;
        LogStats {
            bytes: list.iter().map(|segment| segment.bytes).sum(),
            live_bytes: list.iter().map(|segment| segment.live_bytes).sum(),
            live_entries: list.iter().map(|segment| segment.live_entries).sum(),
            segments: list.len() as u64,
            ..self.stats
        }
    }

    fn check_open(&self) -> Result<(), Fault> {
        if self.closed { Err(Fault::Closed) } else { Ok(()) }
    }

    /// Closes the handle for good and says why.
    fn fail(&mut self, doing: &'static str, source: io::Error) -> Fault {
        self.closed = true;
        if disk::is_full(&source) {
            return Fault::DiskFull { doing, retryable: false, source };
        }
        Fault::Io { doing, source }
    }

    /// The number of the segment being written.
    fn current(&self) -> u64 {
        self.segments.list.back().map_or(0, |segment| segment.number)
    }

    /// Notes that the current segment grew to the tail.
    fn note_tail(&mut self) {
        if let Some(segment) = self.segments.list.back_mut() {
            segment.bytes = self.tail;
        }
    }
}

/// A segment's file.
fn segment_name(number: u64) -> String {
    format!("{FOLDER}/{number:020}.log")
}
