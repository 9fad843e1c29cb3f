//! Window: one shard's log while it is being read back, possibly with holes.
//!
//! Entries are placed by index; whether they fit together is judged once, at the end, by walking the chain from
//! the start. `epoch` counts the holes that may have swallowed something of this shard: an entry
//! placed or proven after the last hole (same epoch) vouches for everything before it, because its chain
//! covers it; an older one might have been overwritten inside the hole and is believed only if it was
//! committed before.

use super::frame::{Frame, Proof, link};
use super::record::{RecoveredEntry, RecoveredShard};
use super::shard::{Shard, Slot};
use crate::planted::{self, Bug};
use bytes::Bytes;
use std::collections::BTreeMap;

/// An entry as found.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) frame: Frame,
    pub(super) payload: Bytes,
    pub(super) segment: u64,
    pub(super) offset: u64,
    epoch: u32,
}

/// One shard being read back.
#[derive(Clone, Debug, Default)]
pub(super) struct Window {
    term: u64,
    vote: u64,
    commit: u64,
    /// The log itself spoke of this shard.
    seen: bool,
    /// Something was lost that could have held a newer term or vote.
    pub(super) hard_unsure: bool,
    start_index: u64,
    start_term: u64,
    start_chain: u64,
    last_index: u64,
    entries: BTreeMap<u64, Held>,
    floor: u64,
    epoch: u32,
    /// Committed and certain before any hole.
    safe: u64,
    /// How many entries holes may have swallowed without any later word about this shard.
    unaccounted: u64,
}

impl Window {
    /// Something was lost that could have been anything, up to this many records.
    pub(super) fn hole(&mut self, records_max: u64) {
        self.epoch += 1;
        self.hard_unsure = true;
        self.unaccounted += records_max.max(1);
    }

    pub(super) fn is_seen(&self) -> bool {
        self.seen
    }

    pub(super) fn start_index(&self) -> u64 {
        self.start_index
    }

    pub(super) fn hard(&mut self, term: u64, vote: u64, commit: u64) {
        self.seen = true;
        if term >= self.term {
            (self.term, self.vote) = (term, vote);
        }
        self.hard_unsure = false;
        self.note_commit(commit);
    }

    /// Takes a term and vote from a copy: never goes back.
    pub(super) fn raise(&mut self, term: u64, vote: u64) {
        if term > self.term || (term == self.term && self.vote == 0) {
            (self.term, self.vote) = (term, vote);
        }
    }

    fn note_commit(&mut self, commit: u64) {
        self.commit = self.commit.max(commit);
        // After a hole an entry may sit on a predecessor that was replaced inside it.
        if self.epoch == 0 && self.entries.contains_key(&commit) {
            self.safe = self.safe.max(commit);
        }
    }

    pub(super) fn entry(&mut self, frame: Frame, payload: Bytes, segment: u64, offset: u64) {
        let index = frame.head.index;
        self.seen = true;
        if index <= self.start_index {
            return;
        }
        if index <= self.last_index {
            self.entries.split_off(&index);
        }
        let epoch = self.epoch;
        self.entries.insert(index, Held { frame, payload, segment, offset, epoch });
        self.last_index = index;
        self.unaccounted = 0;
        self.settle_floor();
    }

    /// A live entry that was moved; the original may be gone with its segment. False if it contradicts.
    pub(super) fn copy(&mut self, frame: Frame, payload: Bytes, segment: u64, offset: u64) -> bool {
        let index = frame.head.index;
        if index <= self.start_index || index > self.last_index {
            return index <= self.start_index;
        }
        let known = self.entries.get(&index).map(|held| held.frame.head.chain);
        let agrees = known.is_none_or(|chain| chain == frame.head.chain);
        if !agrees {
            self.epoch += 1;
        }
        let epoch = self.epoch;
        self.entries.insert(index, Held { frame, payload, segment, offset, epoch });
        agrees
    }

    pub(super) fn start(&mut self, index: u64, term: u64, chain: u64, kept: bool) {
        self.seen = true;
        if index < self.start_index {
            return;
        }
        (self.start_index, self.start_term, self.start_chain) = (index, term, chain);
        self.entries = if kept { self.entries.split_off(&(index + 1)) } else { BTreeMap::new() };
        self.last_index = if kept { self.last_index.max(index) } else { index };
        self.settle_floor();
    }

    /// The log went back to an older beginning: what it had reached is owed.
    pub(super) fn start_back(&mut self, index: u64, term: u64) {
        self.seen = true;
        self.floor = self.floor.max(self.last_index);
        (self.start_index, self.start_term, self.start_chain) = (index, term, 0);
        self.entries = BTreeMap::new();
        self.last_index = index;
        (self.commit, self.safe) = (self.commit.min(index), self.safe.min(index));
        self.settle_floor();
    }

    pub(super) fn set_base(&mut self, proof: &Proof, commit: u64, floor: u64) -> bool {
        let agrees = self.prove(proof);
        self.note_commit(commit);
        self.floor = floor;
        self.settle_floor();
        agrees
    }

    /// Sets the end without judging it: the first word about a shard.
    pub(super) fn set_end(&mut self, last_index: u64) {
        self.last_index = last_index.max(self.start_index);
    }

    /// Takes a proof of where the shard stood. False if it contradicts what was read.
    pub(super) fn prove(&mut self, proof: &Proof) -> bool {
        self.raise(proof.term, proof.vote);
        self.seen = true;
        self.hard_unsure = false;
        self.unaccounted = 0;
        let index = proof.last_index;
        if index < self.start_index {
            return true;
        }
        let known = match index == self.start_index {
            true => Some(self.start_chain),
            false => self.entries.get(&index).map(|held| held.frame.head.chain),
        };
        let same_chain = known.is_none_or(|chain| chain == proof.chain);
        let agrees = same_chain && index == self.last_index;
        if !agrees {
            self.epoch += 1;
            self.entries.split_off(&(if same_chain { index + 1 } else { index }));
            self.last_index = index;
        }
        let epoch = self.epoch;
        if let Some(held) = self.entries.get_mut(&index) {
            held.epoch = epoch;
        }
        agrees
    }

    fn settle_floor(&mut self) {
        if self.last_index >= self.floor {
            self.floor = 0;
        }
    }

    /// The last index up to which the log is whole, linked and believed.
    fn usable(&self) -> u64 {
        let mut previous = self.start_chain;
        let (mut usable, mut believed) = (self.start_index, self.safe.max(self.start_index));
        for (index, held) in &self.entries {
            let linked = link(previous, &held.frame.head, held.frame.context_length, &held.payload);
            let good = linked == held.frame.head.chain || planted::active(Bug::TornTailKept);
            if *index != usable + 1 || !good {
                break;
            }
            previous = held.frame.head.chain;
            usable = *index;
            if held.epoch == self.epoch {
                believed = believed.max(*index);
            }
        }
        usable.min(believed)
    }

    /// Judges the window: what is left for the caller, and for the open log. The held entries stay for copying.
    pub(super) fn settle(mut self, id: u16) -> Settled {
        let usable = self.usable();
        let broken = usable < self.last_index || self.unaccounted > 0;
        let floor = self.floor.max(self.last_index + self.unaccounted);
        self.entries.split_off(&(usable + 1));
        let slot = |held: &Held| Slot {
            term: held.frame.head.term,
            chain: held.frame.head.chain,
            segment: held.segment,
            offset: held.offset,
            length: held.frame.length as u32,
        };
        let entry = |held: &Held| {
            // Copied out, so that one small entry does not keep a whole segment in memory.
            let cut = held.payload.len() - held.frame.context_length;
            let head = held.frame.head;
            RecoveredEntry {
                term: head.term,
                index: head.index,
                kind: head.tag,
                data: Bytes::copy_from_slice(&held.payload[..cut]),
                context: Bytes::copy_from_slice(&held.payload[cut..]),
            }
        };
        let damaged = floor > usable;
        let commit = self.commit.clamp(self.start_index, usable);
        let shard = Shard {
            id,
            term: self.term,
            vote: self.vote,
            commit,
            start_index: self.start_index,
            start_term: self.start_term,
            start_chain: self.start_chain,
            slots: self.entries.values().map(slot).collect(),
            floor: if damaged { floor } else { 0 },
            touched: true,
        };
        let recovered = RecoveredShard {
            term: self.term,
            vote: self.vote,
            commit,
            start_index: self.start_index,
            start_term: self.start_term,
            entries: self.entries.values().map(entry).collect(),
            floor,
            damaged,
        };
        let held = self.entries.into_values().collect();
        Settled { recovered, shard, noted: self.commit, held, broken }
    }
}

/// A judged window.
pub(super) struct Settled {
    /// Highest commit index ever noted.
    pub(super) noted: u64,
    pub(super) recovered: RecoveredShard,
    pub(super) shard: Shard,
    pub(super) held: Vec<Held>,
    /// Something was lost since the last open.
    pub(super) broken: bool,
}
