//! A simulated Postgres: the tables that `store/postgres` keeps, a clock of its own, and what has happened to the server.
//!
//! Promises of the statements there, which are this file's too: each work happens whole or not at all; a lease is taken if
//! there is none, if it is the node's own, if it has expired, or if it lasts longer than any could (the clock was moved
//! back); an append checks holder, epoch and the end of the log by its chain, a taking what the taker knows. Leaves out: who carries questions (`world::database`), SQL.

#[cfg(test)]
mod database_test;

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use bytes::Bytes;
use ikada_consensus::lease::{Answer, Chain, Head, Known, Lease, Work, Written};
use ikada_consensus::{BOOTSTRAP, Entry, NodeId};
use ikada_state::ShardId;

use crate::plan::database::{DatabasePlan, Mischief};

/// A process: a node, and which of its lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Life {
    /// The node.
    pub node: NodeId,
    /// Its process.
    pub generation: u64,
}

/// A snapshot as it is stored.
#[derive(Debug, Clone)]
pub struct StoredSnapshot {
    /// The manifest's bytes.
    pub manifest: Bytes,
    /// The chunks.
    pub chunks: Vec<Bytes>,
}

/// The rows of one shard.
#[derive(Debug, Clone)]
pub struct Tables {
    /// Who took the lease last.
    pub holder: Option<Life>,
    /// The lease's epoch.
    pub epoch: u64,
    /// Until when the lease holds, by the database's clock.
    pub expires_ms: u64,
    favoured: Option<NodeId>,
    /// Everything up to here is gone from the log.
    pub purged_index: u64,
    log: Vec<Written>,
    /// The entry at the log's beginning, which a purge leaves for its chain.
    first: Option<(u64, Chain)>,
    /// How far a node knows the log that misses some of it.
    pub missing: Option<(u64, NodeId)>,
    /// By index.
    pub snapshots: BTreeMap<u64, StoredSnapshot>,
}

impl Default for Tables {
    fn default() -> Self {
        Self {
            holder: None,
            epoch: BOOTSTRAP.term,
            expires_ms: 0,
            favoured: None,
            purged_index: BOOTSTRAP.index,
            log: Vec::new(),
            first: None,
            missing: None,
            snapshots: BTreeMap::new(),
        }
    }
}

/// The server.
#[derive(Debug)]
pub struct Database {
    /// Its tables, by shard.
    pub tables: Vec<Tables>,
    /// Counts its restarts: what was under way then is lost.
    pub session: u64,
    /// It is down until then.
    pub down_until_us: u64,
    /// It does nothing until then; what reaches it waits.
    pub stalled_until_us: u64,
    /// Nodes that do not reach it, until when.
    pub cut_until_us: BTreeMap<NodeId, u64>,
    clock_start_ms: u64,
    clock_offset_ms: i64,
    mischief: Option<Mischief>,
}

impl Database {
    /// An empty one.
    pub fn new(plan: &DatabasePlan, shards: u16) -> Self {
        Self {
            tables: vec![Tables::default(); usize::from(shards)],
            session: 1,
            down_until_us: 0,
            stalled_until_us: 0,
            cut_until_us: BTreeMap::new(),
            clock_start_ms: plan.clock_start_ms,
            clock_offset_ms: 0,
            mischief: plan.mischief,
        }
    }

    /// What its clock shows.
    pub fn clock_ms(&self, now_us: u64) -> u64 {
        (self.clock_start_ms + now_us / 1_000).saturating_add_signed(self.clock_offset_ms)
    }

    /// Moves its clock.
    pub fn jump(&mut self, by_ms: i64) {
        self.clock_offset_ms += by_ms;
    }

    /// All faults are gone, and so is whatever was still on its way; its clock stays as it is.
    pub fn heal(&mut self) {
        self.session += 1;
        (self.down_until_us, self.stalled_until_us) = (0, 0);
        self.cut_until_us.clear();
    }

    /// Does a work. Tells the answer, and whether the lease was taken by it.
    pub fn carry_out(
        &mut self,
        life: Life,
        shard: ShardId,
        work: &Work,
        now_us: u64,
    ) -> (Answer, bool) {
        let (clock_ms, mischief) = (self.clock_ms(now_us), self.mischief);
        let Some(tables) = self.tables.get_mut(usize::from(shard)) else {
            return (Answer::Failed, false);
        };
        let mut is_taken = false;
        match work {
            Work::Take { ttl_ms, known } => {
                is_taken = tables.has(known) && tables.take(life, clock_ms, *ttl_ms);
                let is_first = tables.epoch == BOOTSTRAP.term + 1;
                if is_taken && !is_first && mischief == Some(Mischief::EpochKept) {
                    tables.epoch -= 1;
                }
            }
            Work::Renew { epoch, ttl_ms } if tables.is_held(life, *epoch) => {
                tables.expires_ms = clock_ms + ttl_ms;
            }
            Work::Release { epoch, to } if tables.is_held(life, *epoch) => {
                (tables.expires_ms, tables.favoured) = (clock_ms, *to);
            }
            Work::Purge { epoch, to_index, known } if tables.is_held(life, *epoch) => {
                if tables.has(known) {
                    tables.purge(*to_index);
                }
            }
            Work::Append { epoch, after, entries } => {
                return (tables.append(life, *epoch, *after, entries, mischief), false);
            }
            Work::Read { from_index, bytes_max } => {
                return (tables.tail(life, clock_ms, *from_index, *bytes_max), false);
            }
            Work::Look { from_index } => {
                return (tables.tail(life, clock_ms, *from_index, 0), false);
            }
            Work::Mark { index } => tables.missing = Some((*index, life.node)),
            Work::Renew { .. } | Work::Release { .. } | Work::Purge { .. } => {}
        }
        (Answer::Lease(tables.lease(life, clock_ms)), is_taken)
    }
}

impl Tables {
    /// The end of the log.
    pub fn last_index(&self) -> u64 {
        self.purged_index + self.log.len() as u64
    }

    /// The epoch of the last entry that is still there.
    pub fn last_epoch(&self) -> Option<u64> {
        self.log.last().map(|written| written.entry.term)
    }

    /// Epoch and chain of the entry at an index, if it is there.
    pub fn at(&self, index: u64) -> Option<(u64, Chain)> {
        if index == self.purged_index {
            return self.first;
        }
        let place = index.checked_sub(self.purged_index + 1)?;
        self.log.get(place as usize).map(|written| (written.entry.term, written.chain))
    }

    fn end(&self) -> Chain {
        self.at(self.last_index()).map_or(Chain::UNKNOWN, |(_, chain)| chain)
    }

    /// Whether this is still the database that somebody knows.
    pub fn has(&self, known: &Known) -> bool {
        let chain = self.at(known.index).map_or(Chain::UNKNOWN, |(_, chain)| chain);
        let is_there = known.index < self.purged_index || !known.chain.differs_from(chain);
        let is_long = self.last_index() >= known.index && self.epoch >= known.epoch;
        self.missing.is_none() && is_long && is_there
    }

    /// Who took the lease last, and until when it holds.
    pub fn term_of_lease(&self) -> (Option<Life>, u64) {
        (self.holder, self.expires_ms)
    }

    fn is_held(&self, life: Life, epoch: u64) -> bool {
        self.holder == Some(life) && self.epoch == epoch
    }

    fn take(&mut self, life: Life, clock_ms: u64, ttl_ms: u64) -> bool {
        let is_own = self.holder.is_none_or(|holder| holder.node == life.node);
        let is_over = self.expires_ms <= clock_ms || self.expires_ms > clock_ms + ttl_ms;
        if !is_own && !is_over {
            return false;
        }
        (self.holder, self.favoured) = (Some(life), None);
        self.epoch += 1;
        self.expires_ms = clock_ms + ttl_ms;
        true
    }

    fn append(
        &mut self,
        life: Life,
        epoch: u64,
        after: Chain,
        entries: &[Entry],
        mischief: Option<Mischief>,
    ) -> Answer {
        if !self.is_held(life, epoch) && mischief != Some(Mischief::AppendUnchecked) {
            return Answer::Deposed;
        }
        let first = entries.first().map_or(0, |entry| entry.index);
        // The primary key is there in any case.
        let fits = match mischief {
            Some(Mischief::EndUnchecked) => first > self.last_index(),
            Some(Mischief::AppendUnchecked) => first == self.last_index() + 1,
            _ => first == self.last_index() + 1 && after == self.end() && self.missing.is_none(),
        };
        if !fits {
            return Answer::Conflict;
        }
        let mut chain = after;
        for entry in entries {
            let mut hasher = DefaultHasher::new();
            (chain.0, life, epoch, entry.index, &entry.data).hash(&mut hasher);
            // The highest bit keeps it from being no chain.
            chain = Chain(hasher.finish() | 1 << 63);
            self.log.push(Written { entry: entry.clone(), chain });
        }
        Answer::Appended { chain }
    }

    fn purge(&mut self, to_index: u64) {
        if to_index <= self.purged_index {
            return;
        }
        self.first = self.at(to_index);
        let count = (to_index - self.purged_index) as usize;
        self.log.drain(..count.min(self.log.len()));
        self.purged_index = to_index;
        self.snapshots.retain(|index, _| *index >= to_index);
    }

    fn tail(&self, life: Life, clock_ms: u64, from_index: u64, bytes_max: u64) -> Answer {
        let mut bytes = 0;
        let wanted = self.log.iter().filter(|written| written.entry.index >= from_index);
        let fitting = wanted.take_while(|written| {
            let fits = bytes < bytes_max;
            bytes += written.entry.weight();
            fits
        });
        let head = Head {
            lease: self.lease(life, clock_ms),
            purged_index: self.purged_index,
            last_index: self.last_index(),
            before: self.at(from_index - 1),
            missing: self.missing,
        };
        Answer::Tail { head, entries: fitting.cloned().collect() }
    }

    fn lease(&self, life: Life, clock_ms: u64) -> Lease {
        Lease {
            holder: self.holder.map_or(0, |holder| holder.node),
            life: self.holder.map_or(0, |holder| holder.generation),
            is_ours: self.holder == Some(life),
            epoch: self.epoch,
            remaining_ms: self.expires_ms.saturating_sub(clock_ms),
            favoured: self.favoured,
        }
    }
}
