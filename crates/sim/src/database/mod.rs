//! A simulated Postgres: the tables that `store/postgres` keeps, a clock of its own, and what has happened to the server.
//!
//! Promises of the statements there, which are this file's too: each work happens whole or not at all; a lease is taken if
//! there is none, if it is the node's own, if it has expired, or if it lasts longer than any could (the clock was moved
//! back); an append checks holder, epoch and the end of the log. Leaves out: who carries questions (`world::database`), SQL.

#[cfg(test)]
mod database_test;

use std::collections::BTreeMap;

use bytes::Bytes;
use ikada_consensus::lease::{Answer, Lease, Work};
use ikada_consensus::{BOOTSTRAP, Entry, NodeId};
use ikada_state::ShardId;

use crate::plan::database::{DatabasePlan, Mischief};

/// A process: a node, and which of its lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    log: Vec<Entry>,
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
            Work::Take { ttl_ms } => {
                is_taken = tables.take(life, clock_ms, *ttl_ms);
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
            Work::Purge { epoch, to_index } if tables.is_held(life, *epoch) => {
                tables.purge(*to_index);
            }
            Work::Append { epoch, entries } => {
                return (tables.append(life, *epoch, entries, mischief), false);
            }
            Work::Read { from_index, bytes_max } => {
                return (tables.tail(life, clock_ms, *from_index, *bytes_max), false);
            }
            Work::Renew { .. } | Work::Release { .. } | Work::Purge { .. } | Work::Look => {}
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
        self.log.last().map(|entry| entry.term)
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
            _ => first == self.last_index() + 1,
        };
        if !fits {
            return Answer::Conflict;
        }
        self.log.extend(entries.iter().cloned());
        Answer::Appended
    }

    fn purge(&mut self, to_index: u64) {
        if to_index <= self.purged_index {
            return;
        }
        let count = (to_index - self.purged_index) as usize;
        self.log.drain(..count.min(self.log.len()));
        self.purged_index = to_index;
        self.snapshots.retain(|index, _| *index >= to_index);
    }

    fn tail(&self, life: Life, clock_ms: u64, from_index: u64, bytes_max: u64) -> Answer {
        let mut bytes = 0;
        let wanted = self.log.iter().filter(|entry| entry.index >= from_index);
        let fitting = wanted.take_while(|entry| {
            let fits = bytes < bytes_max;
            bytes += entry.weight();
            fits
        });
        Answer::Tail {
            lease: self.lease(life, clock_ms),
            purged_index: self.purged_index,
            last_index: self.last_index(),
            entries: fitting.cloned().collect(),
        }
    }

    fn lease(&self, life: Life, clock_ms: u64) -> Lease {
        Lease {
            holder: self.holder.map_or(0, |holder| holder.node),
            is_ours: self.holder == Some(life),
            epoch: self.epoch,
            remaining_ms: self.expires_ms.saturating_sub(clock_ms),
            favoured: self.favoured,
        }
    }
}
