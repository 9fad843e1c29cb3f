//! Lets the engine read the log.
//!
//! Promises: no error but those that the engine treats as ordinary (compacted, snapshot not yet there).

use raft::eraftpb;
use raft::{Error, GetEntriesContext, RaftState, Result, Storage, StorageError};

use super::MemoryLog;
use crate::entry::engine_weight;

impl Storage for MemoryLog {
    fn initial_state(&self) -> Result<RaftState> {
        Ok(RaftState::new(self.hard.clone(), self.snapshot.1.to_engine()))
    }

    fn entries(
        &self,
        low: u64,
        high: u64,
        max_size: impl Into<Option<u64>>,
        _context: GetEntriesContext,
    ) -> Result<Vec<eraftpb::Entry>> {
        if low <= self.base.index {
            return Err(Error::Store(StorageError::Compacted));
        }
        assert!(high <= self.last() + 1, "the engine reads past the log");
        let limit = max_size.into().unwrap_or(u64::MAX);
        let from = (low - self.base.index - 1) as usize;
        let mut taken = Vec::new();
        let mut bytes = 0u64;
        for entry in self.entries.range(from..(high - self.base.index - 1) as usize) {
            bytes = bytes.saturating_add(engine_weight(entry));
            // At least one entry, whatever its size, or replication would stop.
            if bytes > limit && !taken.is_empty() {
                break;
            }
            taken.push(entry.clone());
        }
        Ok(taken)
    }

    fn term(&self, index: u64) -> Result<u64> {
        if index == self.base.index {
            return Ok(self.base.term);
        }
        match self.get(index) {
            Some(entry) => Ok(entry.term),
            None if index < self.base.index => Err(Error::Store(StorageError::Compacted)),
            None => Err(Error::Store(StorageError::Unavailable)),
        }
    }

    fn first_index(&self) -> Result<u64> {
        Ok(self.base.index + 1)
    }

    fn last_index(&self) -> Result<u64> {
        Ok(self.last())
    }

    fn snapshot(&self, request_index: u64, to: u64) -> Result<eraftpb::Snapshot> {
        let (start, conf) = &self.snapshot;
        // The engine of a peer that joined after the snapshot refuses it for ever: it is not in its membership.
        let is_useless = start.index < request_index || !conf.is_member(to);
        if !self.has_snapshot() || is_useless {
            self.is_snapshot_wanted.set(true);
            return Err(Error::Store(StorageError::SnapshotTemporarilyUnavailable));
        }
        let mut snapshot = eraftpb::Snapshot::default();
        let meta = snapshot.mut_metadata();
        meta.index = start.index;
        meta.term = start.term;
        meta.set_conf_state(conf.to_engine());
        Ok(snapshot)
    }
}
