//! `Complete`: settles a task as done, once. Accepted only from the worker and fence of the live claim
//! (Q4, TQ-18); a resend with the same fence is answered as the first time.

use std::sync::Arc;

use minicbor::{Decode, Encode};

use super::{AttemptOutcome, TaskState};
use crate::planted::{self, Bug};
use crate::shard::{Batch, Shard};
use crate::{Fence, Namespace, RefusalCode, Reply, SharedBytes, TaskId, WorkerId};

/// Reports success.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Complete {
    /// The task.
    #[n(0)]
    pub id: TaskId,
    /// Token of the claim.
    #[n(1)]
    pub fence: Fence,
    /// Who ran it.
    #[n(2)]
    pub worker: WorkerId,
    /// Small result; opaque.
    #[n(3)]
    pub result: Option<SharedBytes>,
}

impl Shard {
    pub(crate) fn apply_complete(
        &mut self,
        batch: &mut Batch,
        namespace: &Namespace,
        order: Complete,
    ) -> Reply {
        match self.complete(batch, namespace, order) {
            Ok(()) => Reply::Completed,
            Err(code) => Reply::refused(code),
        }
    }

    fn complete(
        &mut self,
        batch: &mut Batch,
        namespace: &Namespace,
        order: Complete,
    ) -> Result<(), RefusalCode> {
        let result_bytes = order.result.as_ref().map_or(0, |result| result.len());
        if result_bytes > self.core.limits.result_bytes_max as usize {
            return Err(RefusalCode::TooLarge);
        }
        let first = self.past_outcome(namespace, &order.id, order.fence, &order.worker)?;
        if first == Some(AttemptOutcome::Completed) {
            return Ok(());
        }
        let slot = self.live_claim(namespace, &order.id, order.fence, Some(&order.worker));
        let slot = match slot {
            Err(code) => self.planted_completion(namespace, &order.id).ok_or(code)?,
            Ok(slot) => slot,
        };
        let (sequence, now_ms) = (self.next_sequence(), self.core.time_ms);
        self.change_task(batch, slot, |task| {
            task.state = TaskState::Done;
            task.sequence = sequence;
            task.moment_ms = now_ms;
            if let Some(history) = &mut task.history {
                let history = Arc::make_mut(history);
                history.newest.outcome = AttemptOutcome::Completed;
                history.newest.ended_ms = now_ms;
                history.result = order.result;
            }
        });
        Ok(())
    }

    /// With a defect planted, the slot whose completion is wrongly accepted.
    fn planted_completion(&self, namespace: &Namespace, id: &TaskId) -> Option<u32> {
        let slot = self.find_task(namespace, id)?;
        let state = self.core.tasks.get(slot)?.state;
        let wrong = match state {
            TaskState::Claimed => planted::active(Bug::CompleteStaleFence),
            TaskState::Cancelled => planted::active(Bug::CancelLosesToCompletion),
            _ => false,
        };
        wrong.then_some(slot)
    }

    /// How the attempt of a fence ended, if it has ended and is kept. Refused if the task is unknown or
    /// the attempt was another worker's.
    pub(crate) fn past_outcome(
        &self,
        namespace: &Namespace,
        id: &TaskId,
        fence: Fence,
        worker: &WorkerId,
    ) -> Result<Option<AttemptOutcome>, RefusalCode> {
        let slot = self
            .find_task(namespace, id)
            .ok_or(RefusalCode::TaskNotFound)?;
        let task = self.core.tasks.get(slot).ok_or(RefusalCode::TaskNotFound)?;
        let attempt = task
            .history
            .as_ref()
            .and_then(|history| history.attempt(fence));
        let Some(attempt) = attempt else {
            return Ok(None);
        };
        if attempt.worker != *worker {
            return Err(RefusalCode::NotOwner);
        }
        let ended = attempt.outcome != AttemptOutcome::Running;
        Ok(ended.then_some(attempt.outcome))
    }

    /// The slot of a task whose live claim has this fence (and worker, if one is named).
    pub(crate) fn live_claim(
        &self,
        namespace: &Namespace,
        id: &TaskId,
        fence: Fence,
        worker: Option<&WorkerId>,
    ) -> Result<u32, RefusalCode> {
        let slot = self
            .find_task(namespace, id)
            .ok_or(RefusalCode::TaskNotFound)?;
        let task = self.core.tasks.get(slot).ok_or(RefusalCode::TaskNotFound)?;
        if task.fence != fence {
            return Err(RefusalCode::StaleFence);
        }
        if task.state.is_terminal() {
            return Err(RefusalCode::TaskFinished);
        }
        if task.state != TaskState::Claimed {
            return Err(RefusalCode::StaleFence);
        }
        let holder = task.history.as_ref().map(|history| &history.newest.worker);
        match worker {
            Some(worker) if holder != Some(worker) => Err(RefusalCode::NotOwner),
            _ => Ok(slot),
        }
    }
}
