//! Keeps the entries of one shard in memory.
//!
//! Promises: `base` is the point before the first entry; appending replaces a conflicting suffix. `snapshot` is the newest
//! durable snapshot; it lies below `base` once entries that nobody lacks were let go, and is of no use to a peer then.
//! Leaves out: durability. The disk keeps every entry since the snapshot, whatever is at hand here.

use std::cell::Cell;
use std::collections::VecDeque;

use raft::eraftpb;

use crate::conf::Conf;
use crate::config::{BOOTSTRAP, Start};
use crate::entry::engine_weight;

/// The log of one shard.
pub(crate) struct MemoryLog {
    /// The entry before the first one held.
    pub(super) base: Start,
    /// Entries from `base.index + 1` on.
    pub(super) entries: VecDeque<eraftpb::Entry>,
    /// Their weight.
    bytes: u64,
    /// What the engine starts from.
    pub(super) hard: eraftpb::HardState,
    /// Point and membership of the newest durable snapshot.
    pub(super) snapshot: (Start, Conf),
    /// The engine asked for a snapshot that does not exist yet.
    pub(super) is_snapshot_wanted: Cell<bool>,
}

impl MemoryLog {
    pub(crate) fn new(
        start: Start,
        conf: Conf,
        hard: eraftpb::HardState,
        entries: VecDeque<eraftpb::Entry>,
    ) -> Self {
        MemoryLog {
            base: start,
            bytes: entries.iter().map(engine_weight).sum(),
            entries,
            hard,
            snapshot: (start, conf),
            is_snapshot_wanted: Cell::new(false),
        }
    }

    pub(crate) fn last(&self) -> u64 {
        self.base.index + self.entries.len() as u64
    }

    /// The first entry since the older of `base` and the snapshot: what the disk still has.
    pub(crate) fn first_index_kept(&self) -> u64 {
        self.base.index.min(self.snapshot.0.index) + 1
    }

    pub(crate) fn get(&self, index: u64) -> Option<&eraftpb::Entry> {
        let offset = index.checked_sub(self.base.index + 1)?;
        self.entries.get(usize::try_from(offset).ok()?)
    }

    /// Whether a snapshot can be sent: with what follows it at hand. The bootstrap point has no data behind it.
    pub(super) fn has_snapshot(&self) -> bool {
        let index = self.snapshot.0.index;
        index > BOOTSTRAP.index && index >= self.base.index
    }

    /// Appends entries that begin at most one past the end; what stood there and after is replaced.
    pub(crate) fn append(&mut self, entries: &[eraftpb::Entry]) {
        let Some(first) = entries.first() else {
            return;
        };
        assert!(first.index > self.base.index, "append below the snapshot point");
        assert!(first.index <= self.last() + 1, "append leaves a gap");
        let kept = (first.index - self.base.index - 1) as usize;
        self.bytes -= self.entries.range(kept..).map(engine_weight).sum::<u64>();
        self.entries.truncate(kept);
        self.bytes += entries.iter().map(engine_weight).sum::<u64>();
        self.entries.extend(entries.iter().cloned());
    }

    /// Entries that an append at `from` to `to` replaces beyond `to`: the stale suffix.
    pub(crate) fn suffix_after(&self, to: u64) -> impl Iterator<Item = &eraftpb::Entry> {
        let skip = to.saturating_sub(self.base.index) as usize;
        self.entries.iter().skip(skip)
    }

    /// A leader's snapshot replaces everything.
    pub(crate) fn restart(&mut self, start: Start, conf: Conf) {
        self.base = start;
        self.entries.clear();
        self.bytes = 0;
        self.snapshot = (start, conf);
    }

    /// A snapshot at `start` is durable: drops older entries, but keeps up to `keep_bytes` of them.
    pub(crate) fn compact(&mut self, start: Start, conf: Conf, keep_bytes: u64) {
        if start.index <= self.snapshot.0.index {
            return;
        }
        assert!(start.index <= self.last(), "snapshot above the log");
        self.snapshot = (start, conf);
        self.is_snapshot_wanted.set(false);
        let covered = start.index.saturating_sub(self.base.index) as usize;
        let mut kept_bytes = 0;
        let mut dropped = covered;
        for entry in self.entries.iter().take(covered).rev() {
            kept_bytes += engine_weight(entry);
            if kept_bytes > keep_bytes {
                break;
            }
            dropped -= 1;
        }
        self.drop_first(dropped);
    }

    /// Lets go of the oldest entries up to `floor`, as long as more than `keep_bytes` are at hand.
    pub(crate) fn trim(&mut self, floor: u64, keep_bytes: u64) {
        let mut left = self.bytes;
        let mut dropped = 0;
        for entry in self.entries.iter().take_while(|entry| entry.index <= floor) {
            if left <= keep_bytes {
                break;
            }
            left -= engine_weight(entry);
            dropped += 1;
        }
        self.drop_first(dropped);
    }

    fn drop_first(&mut self, count: usize) {
        if let Some(last) = count.checked_sub(1).and_then(|at| self.entries.get(at)) {
            self.base = Start { index: last.index, term: last.term };
            self.bytes -=
                self.entries.drain(..count).map(|entry| engine_weight(&entry)).sum::<u64>();
        }
    }

    /// Whether the engine missed a snapshot since the last call.
    pub(crate) fn take_snapshot_wanted(&self) -> bool {
        self.is_snapshot_wanted.take()
    }
}

#[cfg(test)]
mod tests {
    use raft::Storage;

    use super::*;

    fn entry(index: u64, term: u64) -> eraftpb::Entry {
        eraftpb::Entry { index, term, data: vec![0; 76].into(), ..Default::default() }
    }

    fn log(entries: &[(u64, u64)]) -> MemoryLog {
        let entries = entries.iter().map(|(index, term)| entry(*index, *term)).collect();
        MemoryLog::new(BOOTSTRAP, Conf::of_voters([1]), eraftpb::HardState::default(), entries)
    }

    #[test]
    fn an_append_replaces_the_conflicting_suffix() {
        let mut log = log(&[(2, 1), (3, 1), (4, 1)]);
        log.append(&[entry(3, 2)]);
        assert_eq!(log.last(), 3);
        assert_eq!(log.get(3).map(|entry| entry.term), Some(2));
        assert!(log.get(4).is_none() && log.get(1).is_none() && log.get(0).is_none());
    }

    #[test]
    fn compaction_keeps_some_bytes_below_the_snapshot() {
        let mut log = log(&[(2, 1), (3, 1), (4, 2), (5, 2)]);
        log.compact(Start { index: 4, term: 2 }, Conf::of_voters([1]), 250);
        assert_eq!(log.base, Start { index: 2, term: 1 });
        assert_eq!(log.last(), 5);
        log.compact(Start { index: 5, term: 2 }, Conf::of_voters([1]), 0);
        assert_eq!(log.base, Start { index: 5, term: 2 });
        assert_eq!(log.last(), 5);
        assert!(log.has_snapshot());
    }

    #[test]
    fn entries_that_nobody_lacks_go_and_the_snapshot_is_of_no_use_then() {
        let mut log = log(&[(2, 1), (3, 1), (4, 2), (5, 2)]);
        log.compact(Start { index: 2, term: 1 }, Conf::of_voters([1, 2]), 1_000);
        assert!(log.snapshot(2, 2).is_ok());
        log.trim(4, 250);
        assert_eq!((log.base, log.last()), (Start { index: 3, term: 1 }, 5), "250 bytes are kept");
        assert!(log.snapshot(2, 2).is_err() && log.take_snapshot_wanted());
        log.trim(4, 0);
        assert_eq!((log.base, log.last()), (Start { index: 4, term: 2 }, 5), "5 is lacked");
        log.compact(Start { index: 3, term: 1 }, Conf::of_voters([1, 2]), 0);
        assert_eq!(log.base.index, 4, "a snapshot that was begun before");
        assert!(log.snapshot(2, 2).is_err());
        log.append(&[entry(5, 3), entry(6, 3)]);
        log.compact(Start { index: 6, term: 3 }, Conf::of_voters([1, 2]), 0);
        assert!(log.snapshot(2, 2).is_ok() && log.entries.is_empty() && log.bytes == 0);
    }

    #[test]
    fn an_older_snapshot_changes_nothing() {
        let mut log = log(&[(2, 1), (3, 1)]);
        log.compact(Start { index: 3, term: 1 }, Conf::of_voters([1]), 0);
        log.compact(Start { index: 2, term: 1 }, Conf::of_voters([1, 2]), 0);
        assert_eq!(log.snapshot.1, Conf::of_voters([1]));
    }

    #[test]
    fn a_peer_that_joined_after_the_snapshot_is_not_offered_it() {
        let mut log = log(&[(2, 1), (3, 1)]);
        log.compact(Start { index: 3, term: 1 }, Conf::of_voters([1, 2]), 0);
        assert!(log.snapshot(3, 2).is_ok() && !log.is_snapshot_wanted.get());
        assert!(log.snapshot(3, 4).is_err());
        assert!(log.is_snapshot_wanted.get(), "a fresh one, which names it, is asked for");
    }
}
