//! A leader whose disk stands still gives the lead away (F-10).
//!
//! Promises: heartbeats do not wait for the disk, so that nobody else would ever replace such a leader, although it
//! applies nothing and answers nothing. It yields once entries that a majority made durable have waited an election
//! timeout for its own disk, without any of them getting there. So disks that are all slow move no leader, a slow one
//! that gets on keeps its leader, and there is always a voter that is ahead.

use super::Shard;
use super::roles::Cause;

/// How long the own disk has been behind the majority's.
#[derive(Default)]
pub(super) struct Stall {
    /// Last durable index when it was last looked at.
    persisted: u64,
    /// Ticks since then in which it did not move, although more was committed.
    ticks: usize,
}

impl Shard {
    /// Looks at the disk once per tick of a leader.
    pub(super) fn hand_over_when_stalled(&mut self) {
        let log = &self.raw.raft.raft_log;
        let (persisted, committed) = (log.persisted, log.committed);
        if persisted >= committed || persisted != self.stall.persisted {
            self.stall = Stall { persisted, ticks: 0 };
            return;
        }
        self.stall.ticks += 1;
        if !self.is_stalled() || self.transferring().is_some() {
            return;
        }
        let conf = self.conf();
        let ahead = self.progress().into_iter().filter(|peer| {
            conf.voters.contains(&peer.node) && peer.matched > persisted && peer.is_active
        });
        if let Some(best) = ahead.max_by_key(|peer| peer.matched) {
            self.raw.transfer_leader(best.node);
            self.settle(Cause::Other);
        }
    }

    /// Whether the disk has stood still for too long.
    pub(super) fn is_stalled(&self) -> bool {
        self.stall.ticks >= self.raw.raft.election_timeout()
    }

    /// Others' disks are no business of a node that does not lead.
    pub(super) fn forget_stall(&mut self) {
        self.stall = Stall::default();
    }
}
