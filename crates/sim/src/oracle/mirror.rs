//! What the world knows about each node's log: everything written, and the part of it that a sync has covered.
//!
//! Built from the batches that a node hands to its disk, not from what the node says about itself. `durable` moves
//! only when the simulated disk confirms that a sync took place, so that a check can ask for evidence (R6, R8).
//!
//! Invariant: `durable` is what a machine without damage finds again after a power loss, give or take un-synced work.

use std::collections::{BTreeMap, VecDeque};

use ikada_consensus::{EntryKind, IoRecord, ShardId, Start};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// An entry without its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryMark {
    /// Position.
    pub index: u64,
    /// Term.
    pub term: u64,
    /// Hash of kind, data and context.
    pub hash: u64,
    /// Whether it changes the membership.
    pub change: bool,
}

impl EntryMark {
    /// Marks an entry.
    pub fn new(index: u64, term: u64, kind: EntryKind, data: &[u8], context: &[u8]) -> Self {
        let hash = xxh3_64_with_seed(data, xxh3_64(context) ^ u64::from(kind.number()));
        Self { index, term, hash, change: kind == EntryKind::Change }
    }
}

/// One record as the mirror keeps it.
#[derive(Debug, Clone)]
pub enum MarkRecord {
    /// Term, vote and commit index.
    Hard {
        /// Term.
        term: u64,
        /// Vote.
        vote: u64,
    },
    /// Entries.
    Append(Vec<EntryMark>),
    /// A new beginning.
    Restart(Start),
}

impl MarkRecord {
    /// Marks a record.
    pub fn of(record: &IoRecord) -> (ShardId, MarkRecord) {
        match record {
            IoRecord::Hard { shard, term, vote, .. } => {
                (*shard, MarkRecord::Hard { term: *term, vote: *vote })
            }
            IoRecord::Append { shard, entries } => {
                let mark = |e: &ikada_consensus::Entry| {
                    EntryMark::new(e.index, e.term, e.kind, &e.data, &e.context)
                };
                (*shard, MarkRecord::Append(entries.iter().map(mark).collect()))
            }
            IoRecord::Restart { shard, start } => (*shard, MarkRecord::Restart(*start)),
        }
    }
}

/// The log of one shard on one node.
#[derive(Debug, Clone, Default)]
pub struct ShardMirror {
    /// The log begins after this point.
    pub start: Start,
    /// Durable or written term.
    pub term: u64,
    /// Vote in that term; 0 is nobody.
    pub vote: u64,
    entries: VecDeque<EntryMark>,
}

impl ShardMirror {
    /// A mirror of what a node found on its disk.
    pub fn found(start: Start, term: u64, vote: u64, entries: Vec<EntryMark>) -> Self {
        Self { start, term, vote, entries: entries.into() }
    }

    /// The last index.
    pub fn last_index(&self) -> u64 {
        self.start.index + self.entries.len() as u64
    }

    /// The term of the last entry, or of the beginning when there is none.
    pub fn last_term(&self) -> u64 {
        self.entries.back().map_or(self.start.term, |entry| entry.term)
    }

    /// The entry at an index, if the log still holds it.
    pub fn get(&self, index: u64) -> Option<EntryMark> {
        let offset = index.checked_sub(self.start.index + 1)?;
        self.entries.get(offset as usize).copied()
    }

    /// The term at an index, also at the beginning.
    pub fn term_at(&self, index: u64) -> Option<u64> {
        if index == self.start.index {
            return Some(self.start.term);
        }
        self.get(index).map(|entry| entry.term)
    }

    /// Whether this log holds that entry, or a snapshot that covers it.
    pub fn covers(&self, mark: &EntryMark) -> bool {
        mark.index <= self.start.index
            || self.get(mark.index).is_some_and(|e| e.term == mark.term && e.hash == mark.hash)
    }

    /// All entries.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &EntryMark> {
        self.entries.iter()
    }

    /// Follows one record; returns how many entries it dropped in favour of others.
    pub fn follow(&mut self, record: &MarkRecord) -> u64 {
        match record {
            MarkRecord::Hard { term, vote } => {
                (self.term, self.vote) = (*term, *vote);
                0
            }
            MarkRecord::Append(entries) => self.append(entries),
            MarkRecord::Restart(start) => {
                self.restart(*start);
                0
            }
        }
    }

    fn append(&mut self, entries: &[EntryMark]) -> u64 {
        // What a snapshot covers by now is not kept.
        let covered = entries.partition_point(|entry| entry.index <= self.start.index);
        let entries = &entries[covered..];
        let Some(first) = entries.first() else {
            return 0;
        };
        let kept = (first.index - self.start.index - 1) as usize;
        let dropped = self.entries.len().saturating_sub(kept);
        self.entries.truncate(kept);
        self.entries.extend(entries.iter().copied());
        dropped as u64
    }

    fn restart(&mut self, start: Start) {
        if self.term_at(start.index) == Some(start.term) {
            while self.start.index < start.index && self.entries.pop_front().is_some() {
                self.start.index += 1;
            }
        } else {
            self.entries.clear();
        }
        self.start = start;
    }
}

/// Marks of one batch on its way to the disk.
pub type MarkBatch = Vec<(ShardId, MarkRecord)>;

/// All shards of one node: what its process has in memory, what it wrote, what is durable.
#[derive(Debug, Clone, Default)]
pub struct NodeMirror {
    /// The log as the process has it, written or not.
    pub memory: BTreeMap<ShardId, ShardMirror>,
    /// Everything that a sync has covered.
    pub durable: BTreeMap<ShardId, ShardMirror>,
    /// What was durable before damage took some of it: still evidence for what was acknowledged then.
    pub past: BTreeMap<ShardId, ShardMirror>,
    pending: MarkBatch,
    /// Shards whose received snapshot is in use before the log's new beginning is durable: how far the log reached.
    received: BTreeMap<ShardId, u64>,
}

impl NodeMirror {
    /// The process hands over a batch; returns its marks and the entries dropped in favour of others.
    pub fn hand_over(&mut self, records: &[IoRecord]) -> (MarkBatch, u64) {
        let mut dropped = 0;
        let mut marks = Vec::with_capacity(records.len());
        for record in records {
            let (shard, mark) = MarkRecord::of(record);
            dropped += self.memory.entry(shard).or_default().follow(&mark);
            marks.push((shard, mark));
        }
        (marks, dropped)
    }

    /// A batch was written.
    pub fn wrote(&mut self, marks: MarkBatch) {
        self.pending.extend(marks);
    }

    /// A sync took place: everything written is durable. Tells whether a new vote was among it.
    pub fn synced(&mut self) -> bool {
        let mut voted = false;
        for (shard, mark) in std::mem::take(&mut self.pending) {
            if matches!(mark, MarkRecord::Restart(_)) {
                self.received.remove(&shard);
            }
            let log = self.durable.entry(shard).or_default();
            let before = (log.term, log.vote);
            log.follow(&mark);
            voted |= log.vote != 0 && (log.term, log.vote) != before;
        }
        voted
    }

    /// A snapshot was made durable and the log before it given up.
    pub fn compacted(&mut self, shard: ShardId, start: Start) {
        let last = self.durable.get(&shard).map_or(0, ShardMirror::last_index);
        if last < start.index {
            self.received.entry(shard).or_insert(last);
        }
        for logs in [&mut self.memory, &mut self.durable] {
            let log = logs.entry(shard).or_default();
            if log.start.index < start.index {
                log.restart(start);
            }
        }
    }

    /// The highest index up to which no un-synced append of this shard reaches back.
    pub fn settled_index(&self, shard: ShardId) -> u64 {
        let durable = self.durable.get(&shard).map_or(0, ShardMirror::last_index);
        let reach = |(of, mark): &(ShardId, MarkRecord)| match mark {
            MarkRecord::Append(entries) if *of == shard => entries.first().map(|e| e.index - 1),
            _ => None,
        };
        self.pending.iter().filter_map(reach).min().unwrap_or(durable).min(durable)
    }

    /// The highest index that the node may have told others to hold: of a received snapshot it says nothing before the
    /// log's new beginning is durable as well.
    pub fn told_index(&self, shard: ShardId) -> u64 {
        let settled = self.settled_index(shard);
        self.received.get(&shard).map_or(settled, |before| settled.min(*before))
    }

    /// Whether anything written waits for a sync.
    pub fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Whether the node's disk holds an entry, or held it before it was damaged.
    pub fn holds(&self, shard: ShardId, mark: &EntryMark) -> bool {
        let covers = |logs: &BTreeMap<ShardId, ShardMirror>| {
            logs.get(&shard).is_some_and(|log| log.covers(mark))
        };
        covers(&self.durable) || covers(&self.past)
    }

    /// The node started again and found this.
    pub fn found(&mut self, shards: BTreeMap<ShardId, ShardMirror>, damaged: bool) {
        self.pending.clear();
        self.received.clear();
        let before = std::mem::replace(&mut self.durable, shards.clone());
        if damaged && self.past.is_empty() {
            self.past = before;
        }
        self.memory = shards;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use ikada_consensus::Entry;

    fn append(first: u64, terms: &[u64]) -> IoRecord {
        let entry = |(offset, term): (usize, &u64)| Entry {
            term: *term,
            index: first + offset as u64,
            kind: EntryKind::Normal,
            data: Bytes::from(format!("{term}")),
            context: Bytes::new(),
        };
        IoRecord::Append { shard: 0, entries: terms.iter().enumerate().map(entry).collect() }
    }

    #[test]
    fn durable_follows_only_after_a_sync() {
        let mut mirror = NodeMirror::default();
        mirror.compacted(0, Start { index: 1, term: 1 });
        let (marks, dropped) = mirror.hand_over(&[append(2, &[1, 1, 1])]);
        assert_eq!(dropped, 0);
        assert_eq!(mirror.memory[&0].last_index(), 4);
        mirror.synced();
        assert_eq!(mirror.durable[&0].last_index(), 1, "not written yet");
        mirror.wrote(marks);
        mirror.synced();
        assert_eq!(mirror.durable[&0].last_index(), 4);
        let (marks, dropped) = mirror.hand_over(&[append(3, &[2])]);
        mirror.wrote(marks);
        assert_eq!(dropped, 2);
        assert_eq!(mirror.settled_index(0), 2);
        assert_eq!(mirror.durable[&0].term_at(3), Some(1));
        assert_eq!(mirror.memory[&0].term_at(3), Some(2));
    }

    #[test]
    fn a_new_beginning_keeps_what_agrees_with_it() {
        let mut mirror = NodeMirror::default();
        let (marks, _) = mirror.hand_over(&[append(1, &[1, 1, 2, 2])]);
        mirror.wrote(marks);
        mirror.synced();
        mirror.compacted(0, Start { index: 3, term: 2 });
        assert_eq!(mirror.durable[&0].last_index(), 4);
        mirror.compacted(0, Start { index: 9, term: 5 });
        assert_eq!(mirror.durable[&0].last_index(), 9);
        assert_eq!(mirror.durable[&0].iter().count(), 0);
    }
}
