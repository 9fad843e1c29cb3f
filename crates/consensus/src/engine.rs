//! What decides for one shard: Raft, or a lease in a database. Routes each call to whichever it is.

use bytes::Bytes;

use crate::conf::{Change, Conf};
use crate::config::{Config, NodeId, Recovered, ShardId, Start};
use crate::entry::Entry;
use crate::errors::{ChangeError, NotLeader, OpenError, TransferError};
use crate::lease::LeaseShard;
use crate::message::Message;
use crate::outbox::{Io, Outbox, Role};
use crate::shard::{PeerProgress, Shard, Standing};

/// One shard of this node, however its log is kept.
pub(crate) enum Engine {
    Raft(Box<Shard>),
    Lease(Box<LeaseShard>),
}

/// The same call on either.
macro_rules! either {
    ($engine:expr, $shard:ident => $call:expr) => {
        match $engine {
            Engine::Raft($shard) => $call,
            Engine::Lease($shard) => $call,
        }
    };
}

impl Engine {
    pub(crate) fn open(
        config: &Config,
        shard: ShardId,
        recovered: Recovered,
        now_ms: u64,
    ) -> Result<Self, OpenError> {
        if let Some(lease) = config.lease {
            let opened = LeaseShard::open(config, lease, shard, recovered, now_ms);
            return Ok(Engine::Lease(Box::new(opened)));
        }
        let opened = Shard::open(config, shard, recovered, now_ms)?;
        Ok(Engine::Raft(Box::new(opened)))
    }

    /// The Raft shard, where it is one.
    pub(crate) fn raft(&self) -> Option<&Shard> {
        match self {
            Engine::Raft(shard) => Some(shard),
            Engine::Lease(_) => None,
        }
    }

    pub(crate) fn raft_mut(&mut self) -> Option<&mut Shard> {
        match self {
            Engine::Raft(shard) => Some(shard),
            Engine::Lease(_) => None,
        }
    }

    /// The leased shard, where it is one.
    pub(crate) fn lease_mut(&mut self) -> Option<&mut LeaseShard> {
        match self {
            Engine::Raft(_) => None,
            Engine::Lease(shard) => Some(shard),
        }
    }

    pub(crate) fn tick(&mut self, ticks: u64, now_ms: u64) {
        if let Engine::Raft(shard) = self {
            for _ in 0..ticks {
                shard.tick();
            }
        }
        either!(self, shard => shard.fire_timers(now_ms));
    }

    pub(crate) fn timer_ms(&self) -> Option<u64> {
        either!(self, shard => shard.timer_ms())
    }

    pub(crate) fn propose(&mut self, payload: Bytes) -> Result<(u64, u64), NotLeader> {
        either!(self, shard => shard.propose(payload))
    }

    pub(crate) fn read(&mut self, id: u64) -> Result<(), NotLeader> {
        either!(self, shard => shard.read(id))
    }

    pub(crate) fn transfer(&mut self, to: NodeId) -> Result<(), TransferError> {
        either!(self, shard => shard.transfer(to))
    }

    pub(crate) fn change(&mut self, change: Change) -> Result<(u64, u64), ChangeError> {
        match self {
            Engine::Raft(shard) => shard.change(change),
            Engine::Lease(shard) => shard.change(&change),
        }
    }

    pub(crate) fn set_priority(&mut self, priority: i64) {
        either!(self, shard => shard.set_priority(priority));
    }

    pub(crate) fn applied(&mut self, index: u64) {
        either!(self, shard => shard.applied(index));
    }

    pub(crate) fn compact(&mut self, start: Start, conf: Conf) {
        either!(self, shard => shard.compact(start, conf));
    }

    pub(crate) fn snapshot_offered(&mut self, from: NodeId, message: Message) -> bool {
        self.raft_mut().is_some_and(|shard| shard.snapshot_offered(from, message))
    }

    pub(crate) fn snapshot_installed(&mut self, start: Start, conf: Conf) {
        either!(self, shard => shard.snapshot_installed(start, conf));
    }

    pub(crate) fn drain(&mut self, io: &mut Io, out: &mut Outbox) {
        either!(self, shard => shard.drain(io, out));
    }

    pub(crate) fn role(&self) -> Role {
        either!(self, shard => shard.role())
    }

    pub(crate) fn term(&self) -> u64 {
        either!(self, shard => shard.term())
    }

    pub(crate) fn leader(&self) -> Option<NodeId> {
        either!(self, shard => shard.leader())
    }

    pub(crate) fn vote(&self) -> Option<NodeId> {
        self.raft().and_then(Shard::vote)
    }

    pub(crate) fn commit(&self) -> u64 {
        either!(self, shard => shard.commit())
    }

    pub(crate) fn standing(&self) -> Standing {
        Standing {
            role: self.role(),
            term: self.term(),
            vote: self.vote(),
            leader: self.leader(),
            commit: self.commit(),
            last_index: self.last_index(),
            is_repairing: self.is_repairing(),
        }
    }

    pub(crate) fn last_index(&self) -> u64 {
        either!(self, shard => shard.last_index())
    }

    pub(crate) fn first_index(&self) -> u64 {
        either!(self, shard => shard.first_index())
    }

    pub(crate) fn conf(&self) -> Conf {
        either!(self, shard => shard.conf())
    }

    pub(crate) fn conf_applied(&self) -> &Conf {
        either!(self, shard => shard.conf_applied())
    }

    pub(crate) fn conf_at(&self, index: u64) -> Option<Conf> {
        match self {
            Engine::Raft(shard) => shard.conf_at(index),
            Engine::Lease(shard) => Some(shard.conf()),
        }
    }

    pub(crate) fn progress(&self) -> Vec<PeerProgress> {
        self.raft().map_or_else(Vec::new, Shard::progress)
    }

    pub(crate) fn transferring(&self) -> Option<NodeId> {
        either!(self, shard => shard.transferring())
    }

    pub(crate) fn is_repairing(&self) -> bool {
        self.raft().is_some_and(Shard::is_repairing)
    }

    pub(crate) fn is_settled(&self) -> bool {
        either!(self, shard => shard.is_settled())
    }

    pub(crate) fn term_at(&self, index: u64) -> Option<u64> {
        either!(self, shard => shard.term_at(index))
    }

    /// Entries that are in memory; a leased shard keeps none that it has handed out.
    pub(crate) fn entries(&self, low: u64, high: u64) -> Vec<Entry> {
        self.raft().map_or_else(Vec::new, |shard| shard.entries(low, high))
    }
}
