//! Handing leadership to a chosen node, or to the most caught-up one (MQ-29).

use ikada_consensus::{NodeId, TransferError};
use ikada_state::ShardId;

use crate::gate::Decision;
use crate::peer::Told;
use crate::replica::Replica;

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

    /// The connected voter whose log is furthest, lowest id first among equals.
    pub(crate) fn best_successor(&self, shard: ShardId) -> Option<NodeId> {
        let conf = self.consensus.conf(shard);
        self.consensus
            .progress(shard)
            .into_iter()
            .filter(|progress| progress.node != self.config.node)
            .filter(|progress| conf.voters.contains(&progress.node))
            .filter(|progress| self.peers.get(&progress.node).is_some_and(|peer| peer.up))
            .max_by_key(|progress| (progress.matched, std::cmp::Reverse(progress.node)))
            .map(|progress| progress.node)
    }
}
