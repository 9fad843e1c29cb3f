//! What the open log remembers of each shard and segment: positions and chains, never payloads.
//!
//! Invariants: a shard's slots are contiguous from `start_index + 1`; a segment's live figures count exactly the
//! slots that point into it.

use super::frame::{BaseTail, Head, Kind, Proof};
use crate::planted;
use std::collections::VecDeque;

/// Where an entry lies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub(super) term: u64,
    pub(super) chain: u64,
    pub(super) segment: u64,
    pub(super) offset: u64,
    pub(super) length: u32,
}

/// One shard's position.
#[derive(Clone, Debug, Default)]
pub(super) struct Shard {
    pub(super) id: u16,
    pub(super) term: u64,
    pub(super) vote: u64,
    pub(super) commit: u64,
    pub(super) start_index: u64,
    pub(super) start_term: u64,
    pub(super) start_chain: u64,
    pub(super) slots: VecDeque<Slot>,
    /// Lost entries reach up to here; 0 when nothing is lost.
    pub(super) floor: u64,
    /// Changed since the last mark.
    pub(super) touched: bool,
}

impl Shard {
    pub(super) fn last_index(&self) -> u64 {
        self.start_index + self.slots.len() as u64
    }

    /// Chain and term at an index between start and end.
    pub(super) fn at(&self, index: u64) -> Option<(u64, u64)> {
        if index == self.start_index {
            return Some((self.start_chain, self.start_term));
        }
        let position = index.checked_sub(self.start_index + 1)?;
        self.slots.get(usize::try_from(position).ok()?).map(|slot| (slot.chain, slot.term))
    }

    pub(super) fn proof(&self) -> Proof {
        let (chain, last_term) =
            self.slots.back().map_or((self.start_chain, self.start_term), |s| (s.chain, s.term));
        // With this defect no copy of the vote may be left anywhere but in its own record.
        let forget = planted::active(planted::Bug::VotesNotWritten);
        let (term, vote) = if forget { (0, 0) } else { (self.term, self.vote) };
        Proof { shard: self.id, last_index: self.last_index(), last_term, chain, term, vote }
    }

    pub(super) fn base(&self, batch: u64) -> (Head, BaseTail) {
        let head = Head {
            kind: Kind::Base,
            tag: 0,
            shard: self.id,
            term: self.start_term,
            index: self.start_index,
            chain: self.start_chain,
            batch,
        };
        // A base is no redundant copy: it stands in for records of deleted segments.
        let proof = Proof { term: self.term, vote: self.vote, ..self.proof() };
        (head, BaseTail { proof, commit: self.commit, floor: self.floor })
    }

    /// The floor is met once the log reaches it again.
    pub(super) fn settle_floor(&mut self) {
        if self.last_index() >= self.floor {
            self.floor = 0;
        }
    }
}

/// One segment's figures.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub(super) number: u64,
    pub(super) bytes: u64,
    pub(super) live_entries: u64,
    pub(super) live_bytes: u64,
}

/// All segments, oldest first; the last one is being written.
#[derive(Clone, Debug, Default)]
pub(super) struct Segments {
    pub(super) list: VecDeque<Segment>,
}

impl Segments {
    fn get(&mut self, number: u64) -> &mut Segment {
        // Nearly always the newest, otherwise near one of the ends.
        let position = match self.list.back() {
            Some(last) if last.number == number => self.list.len() - 1,
            _ => self.list.partition_point(|segment| segment.number < number),
        };
        let segment = &mut self.list[position];
        assert!(segment.number == number, "entry points to segment {number}, which is gone");
        segment
    }

    pub(super) fn add(&mut self, slot: &Slot) {
        let segment = self.get(slot.segment);
        segment.live_entries += 1;
        segment.live_bytes += u64::from(slot.length);
    }

    pub(super) fn remove(&mut self, slot: &Slot) {
        let segment = self.get(slot.segment);
        segment.live_entries -= 1;
        segment.live_bytes -= u64::from(slot.length);
    }
}

/// Shards by id, without hashing.
#[derive(Clone, Debug, Default)]
pub(super) struct Shards {
    by_id: Vec<Option<Box<Shard>>>,
}

impl Shards {
    pub(super) fn get(&mut self, id: u16) -> &mut Shard {
        let position = usize::from(id);
        if position >= self.by_id.len() {
            self.by_id.resize_with(position + 1, || None);
        }
        self.by_id[position].get_or_insert_with(|| Box::new(Shard { id, ..Shard::default() }))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Shard> {
        self.by_id.iter().flatten().map(|shard| &**shard)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Shard> {
        self.by_id.iter_mut().flatten().map(|shard| &mut **shard)
    }
}
