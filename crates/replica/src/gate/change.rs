//! Membership changes: one at a time, decided by the engine's rules. A new voter must have caught up first, or the
//! majority would wait for it.

use ikada_consensus::{Change, ChangeError, NodeId, PeerState};
use ikada_state::ShardId;

use crate::gate::Decision;
use crate::peer::Told;
use crate::replica::Replica;

/// A learner this many entries behind may become a voter: it will be level in a moment.
const PROMOTE_LAG_MAX: u64 = 1_000;

impl Replica {
    pub(crate) fn decide_change(
        &mut self,
        shard: ShardId,
        add_voters: &[NodeId],
        add_learners: &[NodeId],
        remove: &[NodeId],
    ) -> Decision<'static> {
        if let Some(node) = add_voters.iter().find(|node| !self.is_level(shard, **node)) {
            return Decision::Reply(Told::Refused {
                code: "node_lagging".into(),
                detail: format!(
                    "node {node} has not caught up in shard {shard}; it is asked again"
                ),
            });
        }
        let change = Change {
            add_voters: add_voters.to_vec(),
            add_learners: add_learners.to_vec(),
            remove: remove.to_vec(),
        };
        let told = match self.consensus.change(shard, change) {
            Ok(_) => Told::Accepted,
            Err(ChangeError::NotLeader(not)) => Told::NotLeader { leader: not.leader },
            Err(error) => {
                if let ChangeError::RemovesLeader(_) = error {
                    // A node may lead without knowing that it leaves: if it was out of shard 0 before it heard of that,
                    // it never will. Whoever leads next is asked again.
                    self.give_lead_away(shard);
                }
                Told::Refused { code: "change_refused".into(), detail: error.to_string() }
            }
        };
        Decision::Reply(told)
    }

    /// Whether a learner has nearly all of the log.
    fn is_level(&self, shard: ShardId, node: NodeId) -> bool {
        let last = self.consensus.last_index(shard);
        let progress = self.consensus.progress(shard);
        progress.iter().find(|peer| peer.node == node).is_some_and(|peer| {
            peer.state == PeerState::Replicate && peer.matched + PROMOTE_LAG_MAX >= last
        })
    }
}
