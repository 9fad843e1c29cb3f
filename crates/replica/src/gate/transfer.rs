//! Handing leadership to a chosen node, or to the most caught-up one (MQ-29).

use ikada_consensus::{NodeId, PeerState, TransferError};
use ikada_state::ShardId;

use crate::gate::Decision;
use crate::peer::Told;
use crate::replica::Replica;

/// A node this many entries behind catches up within an election timeout.
const TRANSFER_LAG_MAX: u64 = 10_000;

impl Replica {
    pub(crate) fn decide_transfer(
        &mut self,
        shard: ShardId,
        to: Option<NodeId>,
    ) -> Decision<'static> {
        let Some(to) = to.or_else(|| self.best_successor(shard)) else {
            return Decision::Reply(Told::Refused {
                code: "no_successor".into(),
                detail: format!("shard {shard} has no other voter that could lead"),
            });
        };
        if let Some(why) = self.lags_too_far(shard, to) {
            return Decision::Reply(Told::Refused { code: "node_lagging".into(), detail: why });
        }
        let told = match self.consensus.transfer(shard, to) {
            Ok(()) => Told::Accepted,
            Err(TransferError::NotLeader(not)) => Told::NotLeader { leader: not.leader },
            Err(error @ TransferError::ToSelf(_)) => {
                Told::Refused { code: "already_leader".into(), detail: error.to_string() }
            }
            Err(error @ TransferError::Unknown(_)) => {
                Told::Refused { code: "node_not_found".into(), detail: error.to_string() }
            }
            Err(error @ TransferError::NotVoter(_)) => {
                Told::Refused { code: "not_a_voter".into(), detail: error.to_string() }
            }
        };
        Decision::Reply(told)
    }

    /// Why a voter cannot take over now: writes would stand still until it has caught up.
    pub(crate) fn lags_too_far(&self, shard: ShardId, to: NodeId) -> Option<String> {
        let known = self.consensus.conf(shard).is_member(to) && to != self.config.node;
        if known && !self.is_up(to) {
            return Some(format!("node {to} is not connected to the leader of shard {shard}"));
        }
        if known && self.has_still_disk(to) {
            return Some(format!("the disk of node {to} stands still"));
        }
        let (matched, is_loading) = match self.is_leased() {
            true => (self.reached(shard, to)?, false),
            false => {
                let peer = self.consensus.progress(shard).into_iter().find(|it| it.node == to)?;
                (peer.matched, peer.state == PeerState::Snapshot)
            }
        };
        let behind = self.consensus.last_index(shard).saturating_sub(matched);
        let lags = behind > TRANSFER_LAG_MAX || is_loading;
        lags.then(|| {
            format!(
                "node {to} is {behind} entries behind in shard {shard}; wait until it has caught up"
            )
        })
    }

    /// The connected voter that may lead, whose disk moves and whose log is furthest; lowest id first among equals.
    pub(crate) fn best_successor(&self, shard: ShardId) -> Option<NodeId> {
        if self.is_leased() {
            return self.next_holder(shard);
        }
        let conf = self.consensus.conf(shard);
        self.consensus
            .progress(shard)
            .into_iter()
            .filter(|progress| progress.node != self.config.node)
            .filter(|progress| conf.voters.contains(&progress.node))
            .filter(|progress| self.is_up(progress.node))
            .max_by_key(|progress| {
                let willing = !self.is_shunned(progress.node);
                let writing = !self.has_still_disk(progress.node);
                (willing, writing, progress.matched, std::cmp::Reverse(progress.node))
            })
            .map(|progress| progress.node)
    }
}
