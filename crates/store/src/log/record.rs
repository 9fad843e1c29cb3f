//! What goes into the log and what comes back out of it.

use bytes::Bytes;
use std::collections::BTreeMap;

/// One thing to remember.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// A log entry. `index` is the shard's last index plus one, or lower (but above the start): then this
    /// entry replaces the one there and everything after it.
    Entry {
        /// Shard.
        shard: u16,
        /// Term in which a leader made the entry.
        term: u64,
        /// Position.
        index: u64,
        /// The caller's kind; not interpreted here.
        kind: u8,
        /// Payload.
        data: Bytes,
        /// Second payload (configuration changes).
        context: Bytes,
    },
    /// Term, vote and commit index. Must precede entries of a new term in the same batch.
    Hard {
        /// Shard.
        shard: u16,
        /// Current term.
        term: u64,
        /// Whom this node voted for in that term; 0 is nobody.
        vote: u64,
        /// Commit index.
        commit: u64,
    },
    /// The log begins after this point, because a snapshot covers the rest. If the log holds an entry with
    /// this index and term, the entries after it stay; otherwise the log is empty from here. A point before the
    /// current one means that an older snapshot took the place of a lost one: what the log had is then owed (`floor`).
    Start {
        /// Shard.
        shard: u16,
        /// Last covered index.
        index: u64,
        /// Its term.
        term: u64,
    },
}

/// An entry as it was read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecoveredEntry {
    /// Term.
    pub term: u64,
    /// Position.
    pub index: u64,
    /// The caller's kind.
    pub kind: u8,
    /// Payload.
    pub data: Bytes,
    /// Second payload.
    pub context: Bytes,
}

/// What one shard remembers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecoveredShard {
    /// Current term.
    pub term: u64,
    /// Vote in that term; 0 is nobody.
    pub vote: u64,
    /// Commit index, never above the last entry that is left.
    pub commit: u64,
    /// The log begins after this index.
    pub start_index: u64,
    /// Term at `start_index`.
    pub start_term: u64,
    /// All entries from `start_index + 1`, without a gap.
    pub entries: Vec<RecoveredEntry>,
    /// Highest index this node is known to have written durably.
    pub floor: u64,
    /// Entries up to `floor` were lost: the shard must neither vote nor lead until it has them again.
    pub damaged: bool,
}

impl RecoveredShard {
    /// Index of the last entry that is left, or the start.
    #[must_use]
    pub fn last_index(&self) -> u64 {
        self.start_index + self.entries.len() as u64
    }
}

/// What an opened log found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Every shard that ever wrote something.
    pub shards: BTreeMap<u16, RecoveredShard>,
    /// Each shard's highest commit index ever noted, also above its last entry: how far entries were seen that live
    /// elsewhere.
    pub noted: BTreeMap<u16, u64>,
    /// Bytes at the end of the last segment that were cut because they were never acknowledged.
    pub torn_bytes: u64,
    /// Files moved to `quarantine/`.
    pub quarantined: Vec<String>,
    /// What was found wrong, one line each, for the operator.
    pub findings: Vec<String>,
}
