//! A database that was set back: what it is known by, and what follows.
//!
//! Promises (P2): every answer is compared with what was known when its question was put, by the identity of the last entry,
//! not by its number alone; a node that misses something applies, leads and answers nothing more, remembers on disk how far it knows
//! the log, leaves a mark that stops the others, and then halts. A database that has again what was known is accepted after a restart.
//!
//! Cannot be promised: what only nodes knew that never come back, nobody misses.

use super::{Chain, Head, Known, LeaseShard, UnderWay, Work};
use crate::config::{NodeId, Start};
use crate::outbox::{Fault, Reason};
use crate::planted::{self, Bug};

/// What was known when a question was put: an answer may be older than what came in meanwhile, never older than this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) last: Start,
    chain: Chain,
    /// The same, or what disk remembers of an earlier process, if that is more.
    pub(super) floor: Known,
}

/// How far disk remembers a log, and which entry that was: bits of its chain above which stand bits of its index, since disks may
/// lose the one and keep the other; 0 is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Noted {
    pub(super) index: u64,
    pub(super) note: u64,
}

/// So many bits of the chain are noted.
const CHAIN_BITS: u32 = 40;

impl Noted {
    fn new(index: u64, chain: Chain) -> Noted {
        let bits = chain.0 & ((1 << CHAIN_BITS) - 1);
        let note = if chain == Chain::UNKNOWN { 0 } else { index << CHAIN_BITS | bits };
        Noted { index, note }
    }

    /// Whether the entry at this index is another one than was noted.
    fn differs_from(self, index: u64, chain: Chain) -> bool {
        let is_of_index = self.note >> CHAIN_BITS == Noted::new(index, Chain(1)).note >> CHAIN_BITS;
        let is_known = self.note != 0 && self.index == index && is_of_index;
        is_known && self.note != Noted::new(index, chain).note
    }
}

/// The end of this shard: its words, once the question that leaves the mark is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    ask: u64,
    what: String,
}

impl LeaseShard {
    /// What the database must have.
    pub(super) fn known(&self) -> Known {
        let epoch = self.epoch_max;
        match self.last.index >= self.before.index {
            true => Known { epoch, index: self.last.index, chain: self.chain },
            // Which entry that is will show when the log is read so far.
            false => Known { epoch, index: self.before.index, chain: Chain::UNKNOWN },
        }
    }

    /// What disk shall remember beside the index.
    pub(super) fn noted_entry(&self) -> u64 {
        let (last, before) = (self.last.index, self.before.index);
        match last < before || (last == before && self.chain == Chain::UNKNOWN) {
            true => self.before.note,
            false => Noted::new(last, self.chain).note,
        }
    }

    /// Whether the log has something else where disk remembers an entry. If so, this was the last thing that the shard did.
    pub(super) fn is_noted_otherwise(&mut self, index: u64, chain: Chain) -> bool {
        let is_other = self.before.differs_from(index, chain);
        if is_other && !planted::active(Bug::LeaseAnyEntry) {
            self.set_back(&format!("entry {index} is another one than this node's disk remembers"));
        }
        is_other && self.refusal.is_some()
    }

    pub(super) fn asked(&self) -> Asked {
        Asked { last: self.last, chain: self.chain, floor: self.known() }
    }

    /// Whether the database still has what was known. If not, this was the last thing that the shard did.
    pub(super) fn continues(&mut self, head: &Head, asked: &Asked) -> bool {
        if planted::active(Bug::LeaseSetBack) {
            return true;
        }
        if let Some((index, node)) = head.missing {
            self.told_set_back(index, node);
            return false;
        }
        let (last_index, known) = (head.last_index, asked.floor.index);
        if last_index < known {
            self.set_back(&format!("the log ends at {last_index}, but {known} was written"));
            return false;
        }
        let Start { index, term } = asked.last;
        match head.before {
            Some((epoch, chain)) => {
                let is_planted = planted::active(Bug::LeaseAnyEntry);
                if epoch != term || (asked.chain.differs_from(chain) && !is_planted) {
                    self.set_back(&format!("entry {index} of epoch {term} is another one now"));
                    return false;
                }
                if self.is_noted_otherwise(index, chain) {
                    return false;
                }
                self.learn_chain(asked, chain);
            }
            None if head.purged_index < index => {
                self.set_back(&format!("entry {index} is gone"));
                return false;
            }
            // A node of an older version purges the entry at the log's beginning too, and its chain with it.
            None if head.purged_index == index => self.learn_chain(asked, Chain::UNKNOWN),
            None => {}
        }
        true
    }

    /// The chain at the end of what we know, if that is still the same end.
    fn learn_chain(&mut self, asked: &Asked, chain: Chain) {
        if self.last == asked.last {
            self.chain = chain;
        }
    }

    /// The database was set back. The mark in it is for the others, the note on disk for the next process.
    pub(super) fn set_back(&mut self, what: &str) {
        if self.refusal.is_some() {
            return;
        }
        self.step_down(Reason::LeaseLost);
        self.under_way = UnderWay::default();
        let index = self.known().index;
        let ask = self.ask(Work::Mark { index });
        let what = format!("{what}: the database was restored to an older state");
        self.refusal = Some(Refusal { ask, what });
    }

    /// Another node misses something, and left the mark.
    fn told_set_back(&mut self, index: u64, node: NodeId) {
        self.step_down(Reason::LeaseLost);
        self.under_way = UnderWay::default();
        let what = format!(
            "node {node} knows the log up to {index} and misses some of it: the database was restored to an older state"
        );
        self.fault(what.clone());
        // No question has this number.
        self.refusal = Some(Refusal { ask: 0, what });
    }

    /// Another process takes leases as this node. The one that has seen it more often ends, so that they do not take them from each
    /// other for ever.
    pub(super) fn meets_twin(&mut self) {
        self.step_down(Reason::LeaseLost);
        self.under_way = UnderWay::default();
        let node = self.node;
        let what = format!(
            "another process runs as node {node} and takes its leases, with a copy of its data folder: stop one of them; each node needs an id and a folder of its own"
        );
        self.fault(what.clone());
        // No question has this number.
        self.refusal = Some(Refusal { ask: 0, what });
    }

    /// Whether the mark is there or not: it was tried, and now the process ends.
    pub(super) fn refusal_answered(&mut self, id: u64) {
        if let Some(refusal) = self.refusal.as_ref().filter(|refusal| refusal.ask == id) {
            let what = refusal.what.clone();
            self.fault(what);
        }
    }

    pub(super) fn fault(&mut self, what: String) {
        self.faults.push(Fault { shard: self.id, what });
    }
}
