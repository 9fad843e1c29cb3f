//! What was committed, once and for ever, and the state that follows from it.
//!
//! Every entry that any node writes is remembered by (index, term). The first node to report an index as committed
//! fixes its content; the ledger then applies the entry to a reference state that never restarts, snapshots or
//! restores, and keeps the state hash of every index. The results of that one application feed the task checks.
//!
//! Invariant: `committed` has no gaps and never changes.

use std::collections::BTreeMap;

use bytes::Bytes;
use ikada_consensus::{BOOTSTRAP, EntryKind};
use ikada_state::{Applied, Lsn, Shard};

use super::batch::{self, Batch};
use super::mirror::EntryMark;

/// One committed entry and what applying it gave.
#[derive(Debug)]
pub struct Committed {
    /// Position.
    pub lsn: Lsn,
    /// Log time and orders.
    pub batch: Batch,
    /// Replies and effects.
    pub applied: Applied,
    /// The bytes.
    pub data: Bytes,
}

#[derive(Debug)]
struct Written {
    kind: EntryKind,
    data: Bytes,
}

/// The ledger of one shard.
#[derive(Debug)]
pub struct ShardLedger {
    written: BTreeMap<(u64, u64), Written>,
    committed: Vec<(EntryMark, u64)>,
    states: Vec<(u64, u64)>,
    reference: Option<Shard>,
}

impl ShardLedger {
    /// Begins with the first state of a shard.
    pub fn new(genesis: Shard) -> Self {
        Self {
            states: vec![(BOOTSTRAP.term, genesis.hash())],
            reference: Some(genesis),
            ..Self::empty()
        }
    }

    fn empty() -> Self {
        Self {
            written: BTreeMap::new(),
            committed: Vec::new(),
            states: Vec::new(),
            reference: None,
        }
    }

    /// A ledger that keeps no state, for tests of checks.
    #[cfg(test)]
    pub fn without_state() -> Self {
        Self { states: vec![(BOOTSTRAP.term, 0)], ..Self::empty() }
    }

    /// A node wrote an entry.
    pub fn wrote(&mut self, mark: &EntryMark, kind: EntryKind, data: &Bytes) {
        if mark.index > self.committed_index() {
            // R2 sees to it that a second writing is the same, unless the first was forgotten by all.
            let written = Written { kind, data: data.clone() };
            self.written.insert((mark.index, mark.term), written);
        }
    }

    /// The highest committed index.
    pub fn committed_index(&self) -> u64 {
        BOOTSTRAP.index + self.committed.len() as u64
    }

    /// The entry committed at an index.
    pub fn committed(&self, index: u64) -> Option<EntryMark> {
        let offset = index.checked_sub(BOOTSTRAP.index + 1)?;
        self.committed.get(offset as usize).map(|(mark, _)| *mark)
    }

    /// The term committed at an index, also at the beginning.
    pub fn term_at(&self, index: u64) -> Option<u64> {
        if index == BOOTSTRAP.index {
            return Some(BOOTSTRAP.term);
        }
        self.committed(index).map(|mark| mark.term)
    }

    /// The last entry that was committed in a term before this one.
    pub fn last_committed_before_term(&self, term: u64) -> Option<EntryMark> {
        self.committed.iter().rev().find(|(_, in_term)| *in_term < term).map(|(mark, _)| *mark)
    }

    /// Term and state hash at an index.
    pub fn state_at(&self, index: u64) -> Option<(u64, u64)> {
        let offset = index.checked_sub(BOOTSTRAP.index)?;
        self.states.get(offset as usize).copied()
    }

    /// The reference state.
    pub fn reference(&self) -> Option<&Shard> {
        self.reference.as_ref()
    }

    /// Fixes the next committed entry without a state, for tests of checks.
    #[cfg(test)]
    pub fn note_committed(&mut self, mark: EntryMark, in_term: u64) {
        self.committed.push((mark, in_term));
        self.states.push((mark.term, 0));
    }

    /// Fixes the next committed entry, reported by a node in `in_term`, and applies it. `None` when nobody is known
    /// to have written it.
    pub fn commit(&mut self, mark: EntryMark, in_term: u64) -> Option<Committed> {
        assert_eq!(mark.index, self.committed_index() + 1, "committed entries come in order");
        let written = self.written.remove(&(mark.index, mark.term))?;
        let reference = self.reference.as_mut()?;
        let lsn = Lsn { term: mark.term, index: mark.index };
        let data = match written.kind {
            EntryKind::Normal => written.data,
            EntryKind::Change => Bytes::new(),
        };
        let applied = reference.apply(lsn, &data);
        self.states.push((mark.term, reference.hash()));
        self.committed.push((mark, in_term));
        self.written.retain(|(index, _), _| *index > mark.index);
        Some(Committed { lsn, batch: batch::read(&data), applied, data })
    }
}
