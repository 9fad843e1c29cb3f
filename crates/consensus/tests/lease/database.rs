//! A database as the protocol sees it: a lease row, a log, a clock of its own. Every work happens whole or not at all.

use ikada_consensus::lease::{Answer, Lease, Work};
use ikada_consensus::{BOOTSTRAP, Entry, NodeId};

/// Whose connection a question came over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
            Work::Take { ttl_ms } => {
                let mine = self.holder.is_some_and(|holder| holder.node == life.node);
                let is_over =
                    self.expires_ms <= self.clock_ms || self.expires_ms > self.clock_ms + ttl_ms;
                if self.holder.is_none() || mine || is_over {
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
            Work::Purge { epoch, to_index } if is_ours(*epoch, self) => {
                let count = to_index.saturating_sub(self.purged_index) as usize;
                self.log.drain(..count.min(self.log.len()));
                self.purged_index = self.purged_index.max(*to_index);
            }
            Work::Append { epoch, entries } => return self.append(is_ours(*epoch, self), entries),
            Work::Read { from_index, bytes_max } => {
                return self.tail(life, *from_index, *bytes_max);
            }
            Work::Renew { .. } | Work::Release { .. } | Work::Purge { .. } | Work::Look => {}
        }
        Answer::Lease(self.lease(life))
    }

    fn append(&mut self, is_ours: bool, entries: &[Entry]) -> Answer {
        if !is_ours && self.checks_epoch {
            return Answer::Deposed;
        }
        if entries[0].index != self.last_index() + 1 {
            return Answer::Conflict;
        }
        self.log.extend(entries.iter().cloned());
        Answer::Appended
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
            .cloned()
            .collect();
        let (purged_index, last_index) = (self.purged_index, self.last_index());
        Answer::Tail { lease: self.lease(life), purged_index, last_index, entries }
    }

    pub fn lease(&self, life: Life) -> Lease {
        Lease {
            holder: self.holder.map_or(0, |holder| holder.node),
            is_ours: self.holder == Some(life),
            epoch: self.epoch,
            remaining_ms: self.expires_ms.saturating_sub(self.clock_ms),
            favoured: self.favoured,
        }
    }
}
