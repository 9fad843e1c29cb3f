//! Renewals: answered from the leader's memory (Q4: only the claim's own fence and worker are accepted).

use ikada_state::{Fence, Namespace, RefusalCode, ShardId, TaskId, TaskState, WorkerId};

use crate::gate::Decision;
use crate::output::Now;
use crate::peer::{RenewTold, Told};
use crate::replica::Replica;

impl Replica {
    pub(crate) fn decide_renew(
        &mut self,
        shard: ShardId,
        namespace: &Namespace,
        worker: &WorkerId,
        claims: &[(TaskId, Fence)],
        now: Now,
    ) -> Decision<'static> {
        let told = claims
            .iter()
            .map(|(id, fence)| self.renew_one(shard, namespace, worker, id, *fence, now))
            .collect();
        Decision::Reply(Told::Renewed(told))
    }

    fn renew_one(
        &mut self,
        shard: ShardId,
        namespace: &Namespace,
        worker: &WorkerId,
        id: &TaskId,
        fence: Fence,
        now: Now,
    ) -> RenewTold {
        let seat = &mut self.seats[usize::from(shard)];
        if seat.state.is_away(namespace, id) {
            return RenewTold::Refused(RefusalCode::SlotMoved);
        }
        let Some(claim) = seat.state.claim_of(namespace, id) else {
            let code = match seat.state.task_state(namespace, id) {
                None => RefusalCode::TaskNotFound,
                Some(TaskState::Done | TaskState::Dead | TaskState::Cancelled) => {
                    RefusalCode::TaskFinished
                }
                Some(_) => RefusalCode::StaleFence,
            };
            return RenewTold::Refused(code);
        };
        if claim.fence != fence {
            return RenewTold::Refused(RefusalCode::StaleFence);
        }
        if claim.worker != *worker {
            return RenewTold::Refused(RefusalCode::NotOwner);
        }
        match seat.liveness.renew(claim.slot, fence, now.mono_ms) {
            Some(ttl_ms) => RenewTold::Renewed(ttl_ms),
            None => RenewTold::Refused(RefusalCode::StaleFence),
        }
    }
}
