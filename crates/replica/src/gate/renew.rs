//! Renewals: answered from the leader's memory (Q4: only the claim's own fence and worker are accepted).
//!
//! A refusal ends a worker's task, so that it is told only once a quorum has confirmed that this node leads: one that was
//! replaced without hearing of it knows nothing of the claims that its successor granted.

use ikada_state::{Fence, Namespace, Progress, RefusalCode, ShardId, TaskId, TaskState, WorkerId};

use crate::gate::Decision;
use crate::output::Now;
use crate::peer::{RenewTold, Told};
use crate::planted::{self, Bug};
use crate::replica::Replica;

/// What is renewed may be told at once: if this node leads no more, its successor gives a whole ttl to all.
pub(super) fn decision(told: Vec<RenewTold>) -> Decision<'static> {
    let refuses = told.iter().any(|told| matches!(told, RenewTold::Refused(_)));
    if refuses && !planted::active(Bug::RefusedFromMemory) {
        Decision::Confirm(Some(Told::Renewed(told)))
    } else {
        Decision::Reply(Told::Renewed(told))
    }
}

impl Replica {
    pub(crate) fn decide_renew(
        &mut self,
        shard: ShardId,
        namespace: &Namespace,
        worker: &WorkerId,
        claims: &[(TaskId, Fence)],
        progress: &[(u32, Progress)],
        now: Now,
    ) -> Decision<'static> {
        let told: Vec<RenewTold> = claims
            .iter()
            .map(|(id, fence)| self.renew_one(shard, namespace, worker, id, *fence, now))
            .collect();
        let seat = &mut self.seats[usize::from(shard)];
        for (position, progress) in progress {
            let renewed = matches!(told.get(*position as usize), Some(RenewTold::Renewed(_)));
            if let (true, Some((id, fence))) = (renewed, claims.get(*position as usize))
                && let Some(claim) = seat.state.claim_of(namespace, id)
            {
                // What came from another node was cut there; nobody's word is taken for it.
                let progress = Progress::new(progress.permille, &progress.note);
                seat.liveness.note_progress(claim.slot, *fence, progress);
            }
        }
        decision(told)
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
