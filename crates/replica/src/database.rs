//! Logs in a database: what it says goes to the lease protocol, what that wants goes out.
//!
//! Promise: everything above the log is the same as with Raft; only who may write, and where entries come from, is decided there.

use ikada_consensus::NodeId;
use ikada_state::ShardId;

use crate::output::{DatabaseTold, Now};
use crate::replica::Replica;

/// How much later each further node tries to take a free lease, so that all nodes lead some shards.
const TURN_MS: u64 = 300;
/// The longest such wait.
const TURN_MS_MAX: u64 = 1_500;

impl Replica {
    /// Whether logs live in a database.
    pub(crate) fn is_leased(&self) -> bool {
        self.config.consensus.lease.is_some()
    }

    pub(crate) fn database_told(&mut self, told: DatabaseTold, now: Now) {
        match told {
            DatabaseTold::Answered { shard, id, answer } => {
                self.consensus.database_answered(shard, id, answer, now.mono_ms);
            }
            DatabaseTold::Changed(shard) => self.consensus.database_changed(shard, now.mono_ms),
            DatabaseTold::Fetched { shard, found } => {
                let Some(seat) = self.seats.get(usize::from(shard)) else {
                    return;
                };
                let applied = seat.state.applied();
                match found.filter(|(start, _)| start.index > applied.index) {
                    Some((start, conf)) => self.snapshot_accepted(shard, start, conf),
                    None => {
                        // Nothing newer than what is here: the protocol looks again.
                        let here =
                            ikada_consensus::Start { index: applied.index, term: applied.term };
                        let conf = self.consensus.conf(shard);
                        self.consensus.snapshot_installed(shard, here, conf);
                    }
                }
            }
        }
    }

    /// Spreads the shards over the nodes: each node is the first to try for its own share.
    pub(crate) fn take_turns(&mut self) {
        for shard in 0..self.seats.len() as ShardId {
            let voters = self.consensus.conf(shard).voters;
            let place = voters.iter().position(|node| *node == self.config.node);
            let Some(place) = place else { continue };
            let turn = (place + voters.len() - usize::from(shard) % voters.len()) % voters.len();
            self.consensus.set_turn(shard, (turn as u64 * TURN_MS).min(TURN_MS_MAX));
        }
    }

    /// Gives every lease back, to a node that is up if there is one.
    pub(crate) fn release_leases(&mut self) {
        for shard in 0..self.seats.len() as ShardId {
            let seat = &self.seats[usize::from(shard)];
            if seat.leads() && self.consensus.transferring(shard).is_none() {
                let to = self.best_successor(shard).unwrap_or(0);
                // A refusal (the node just lost the lease) leaves nothing to do.
                let _ = self.consensus.transfer(shard, to);
            }
        }
    }

    /// The next node after this one that is up and may lead; rather one that knows the log.
    pub(crate) fn next_holder(&self, shard: ShardId) -> Option<NodeId> {
        let voters = self.consensus.conf(shard).voters;
        let may_lead = |node: &&NodeId| self.is_up(**node) && !self.is_shunned(**node);
        let after = voters.iter().filter(|node| **node > self.config.node);
        let before = voters.iter().filter(|node| **node < self.config.node);
        let lags = |node: &&NodeId| self.lags_too_far(shard, **node).is_some();
        after.chain(before).filter(may_lead).min_by_key(lags).copied()
    }
}
