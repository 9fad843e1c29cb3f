//! A database as the protocol sees it: a lease row, a log, a clock of its own. Every work happens whole or not at all.

use std::hash::{Hash, Hasher};

use ikada_consensus::lease::{Answer, Chain, Head, Known, Lease, Work, Written};
use ikada_consensus::{BOOTSTRAP, Entry, NodeId};

/// FNV-1a: the same in every build, and good enough to tell histories of a test apart.
struct Fnv(u64);

impl Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

/// Whose connection a question came over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Life {
    pub node: NodeId,
    pub number: u64,
}

/// The tables of one shard.
#[derive(Clone, Debug)]
pub struct Database {
    pub clock_ms: u64,
    pub holder: Option<Life>,
    pub epoch: u64,
    pub expires_ms: u64,
    pub favoured: Option<NodeId>,
    pub purged_index: u64,
    pub log: Vec<Entry>,
    /// The chain of every entry, by index; what is purged keeps its own.
    pub chains: Vec<(u64, u64, Chain)>,
    /// The mark of a node that misses something.
    pub missing: Option<(u64, NodeId)>,
    /// Off to show what the check is for.
    pub checks_epoch: bool,
}

impl Default for Database {
    fn default() -> Self {
        Database {
            clock_ms: 1_000_000,
            holder: None,
            epoch: BOOTSTRAP.term,
            expires_ms: 0,
            favoured: None,
            purged_index: BOOTSTRAP.index,
            log: Vec::new(),
            chains: Vec::new(),
            missing: None,
            checks_epoch: true,
        }
    }
}

impl Database {
    pub fn last_index(&self) -> u64 {
        self.purged_index + self.log.len() as u64
    }

    pub fn carry_out(&mut self, life: Life, work: &Work) -> Answer {
        let is_ours = |epoch: u64, db: &Database| db.holder == Some(life) && db.epoch == epoch;
        match work {
            Work::Take { ttl_ms, known } => {
                let mine = self.holder.is_some_and(|holder| holder.node == life.node);
                let is_over =
                    self.expires_ms <= self.clock_ms || self.expires_ms > self.clock_ms + ttl_ms;
                if self.has(known) && (self.holder.is_none() || mine || is_over) {
                    self.holder = Some(life);
                    self.epoch += 1;
                    self.expires_ms = self.clock_ms + ttl_ms;
                    self.favoured = None;
                }
            }
            Work::Renew { epoch, ttl_ms } if is_ours(*epoch, self) => {
                self.expires_ms = self.clock_ms + ttl_ms;
            }
            Work::Release { epoch, to } if is_ours(*epoch, self) => {
                self.expires_ms = self.clock_ms;
                self.favoured = *to;
            }
            Work::Purge { epoch, to_index, known } if is_ours(*epoch, self) && self.has(known) => {
                let count = to_index.saturating_sub(self.purged_index) as usize;
                self.log.drain(..count.min(self.log.len()));
                self.purged_index = self.purged_index.max(*to_index);
            }
            Work::Append { epoch, after, entries } => {
                return self.append(life, is_ours(*epoch, self), *after, entries);
            }
            Work::Read { from_index, bytes_max } => {
                return self.tail(life, *from_index, *bytes_max);
            }
            Work::Look { from_index } => return self.tail(life, *from_index, 0),
            Work::Mark { index } => self.missing = Some((*index, life.node)),
            Work::Renew { .. } | Work::Release { .. } | Work::Purge { .. } => {}
        }
        Answer::Lease(self.lease(life))
    }

    /// What is there at an index: epoch and chain.
    fn at(&self, index: u64) -> Option<(u64, Chain)> {
        let found = self.chains.iter().find(|(at, ..)| *at == index && index >= self.purged_index);
        found.map(|(_, epoch, chain)| (*epoch, *chain))
    }

    /// Whether this is still the database that somebody knows.
    fn has(&self, known: &Known) -> bool {
        let chain = self.at(known.index).map_or(Chain::UNKNOWN, |(_, chain)| chain);
        let is_there = known.index < self.purged_index || !known.chain.differs_from(chain);
        self.missing.is_none()
            && self.epoch >= known.epoch
            && self.last_index() >= known.index
            && is_there
    }

    fn append(&mut self, life: Life, is_ours: bool, after: Chain, entries: &[Entry]) -> Answer {
        if !is_ours && self.checks_epoch {
            return Answer::Deposed;
        }
        let last = self.last_index();
        let end = self.at(last).map_or(Chain::UNKNOWN, |(_, chain)| chain);
        let fits = entries[0].index == last + 1 && after == end;
        if self.missing.is_some() || (self.checks_epoch && !fits) || entries[0].index != last + 1 {
            return Answer::Conflict;
        }
        let mut chain = end;
        for entry in entries {
            let mut hasher = Fnv(0xcbf2_9ce4_8422_2325);
            (chain.0, life, entry.term, entry.index, &entry.data).hash(&mut hasher);
            chain = Chain(hasher.finish() | 1);
            self.chains.push((entry.index, entry.term, chain));
        }
        self.log.extend(entries.iter().cloned());
        Answer::Appended { chain }
    }

    fn tail(&self, life: Life, from_index: u64, bytes_max: u64) -> Answer {
        let mut bytes = 0;
        let wanted = self.log.iter().filter(|entry| entry.index >= from_index);
        let entries = wanted
            .take_while(|entry| {
                let fits = bytes < bytes_max;
                bytes += entry.weight();
                fits
            })
            .filter_map(|entry| {
                let (_, chain) = self.at(entry.index)?;
                Some(Written { entry: entry.clone(), chain })
            })
            .collect();
        let head = Head {
            lease: self.lease(life),
            purged_index: self.purged_index,
            last_index: self.last_index(),
            before: self.at(from_index - 1),
            missing: self.missing,
        };
        Answer::Tail { head, entries }
    }

    pub fn lease(&self, life: Life) -> Lease {
        Lease {
            holder: self.holder.map_or(0, |holder| holder.node),
            life: self.holder.map_or(0, |holder| holder.number),
            is_ours: self.holder == Some(life),
            epoch: self.epoch,
            remaining_ms: self.expires_ms.saturating_sub(self.clock_ms),
            favoured: self.favoured,
        }
    }
}
