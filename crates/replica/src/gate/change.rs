//! Membership changes: one at a time, decided by the engine's rules.

use ikada_consensus::{Change, ChangeError, NodeId};
use ikada_state::ShardId;

use crate::gate::Decision;
use crate::peer::Told;
use crate::replica::Replica;

impl Replica {
    pub(crate) fn decide_change(
        &mut self,
        shard: ShardId,
        add_voters: &[NodeId],
        add_learners: &[NodeId],
        remove: &[NodeId],
    ) -> Decision<'static> {
        let change = Change {
            add_voters: add_voters.to_vec(),
            add_learners: add_learners.to_vec(),
            remove: remove.to_vec(),
        };
        let told = match self.consensus.change(shard, change) {
            Ok(_) => Told::Accepted,
            Err(ChangeError::NotLeader(not)) => Told::NotLeader { leader: not.leader },
            Err(error) => {
                Told::Refused { code: "change_refused".into(), detail: error.to_string() }
            }
        };
        Decision::Reply(told)
    }
}
