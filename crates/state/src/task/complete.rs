//! `Complete`: settles a task as done, once. Accepted only from the worker and fence of the live
//! claim (Q4, TQ-18); a resend with the same fence is answered as the first time. Follow-ups come
//! into being in the same step (`then.rs`), and so do its outputs (`publish.rs`).

use std::sync::Arc;

use minicbor::{Decode, Encode};

use super::{AttemptOutcome, Output, TaskState};
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
    /// Follow-ups beyond those that came with the task, as `encode_then` writes them.
    #[n(4)]
    pub then: Option<SharedBytes>,
    /// Files that it brings; they become objects in the same step.
    #[n(5)]
    #[cbor(default)]
    pub outputs: Vec<Output>,
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
        let slot = self.find_task(namespace, &order.id).ok_or(RefusalCode::TaskNotFound)?;
        if self.past_outcome(slot, order.fence, &order.worker)? == Some(AttemptOutcome::Completed) {
            self.double_follow_ups(batch, namespace, slot);
            return Ok(());
        }
        if let Err(code) = self.check_claim(slot, order.fence, Some(&order.worker))
            && !self.is_planted_completion(slot)
        {
            return Err(code);
        }
        self.check_job_open(slot)?;
        let objects = self.prepare_outputs(slot, order.outputs)?;
        let follow_ups = self.follow_ups(namespace, slot, order.then.as_ref())?;
        let extras = self.core.tasks.get(slot).and_then(|task| task.extras.as_ref());
        let key_limit = extras.map_or(0, |extras| extras.key_limit);
        // Before the task changes: it may go at once, and takes its outputs along.
        let outputs = objects.len() as u16;
        self.publish(objects);
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
                history.outputs = outputs;
            }
        });
        self.enqueue_follow_ups(batch, namespace, key_limit, follow_ups);
        Ok(())
    }

    /// Whether a planted defect wrongly accepts this completion.
    fn is_planted_completion(&self, slot: u32) -> bool {
        match self.core.tasks.get(slot).map(|task| task.state) {
            Some(TaskState::Claimed) => planted::active(Bug::CompleteStaleFence),
            Some(TaskState::Cancelled) => planted::active(Bug::CancelLosesToCompletion),
            _ => false,
        }
    }

    /// How the attempt of a fence ended, if it has ended and is kept. Refused if the attempt was
    /// another worker's.
    pub(crate) fn past_outcome(
        &self,
        slot: u32,
        fence: Fence,
        worker: &WorkerId,
    ) -> Result<Option<AttemptOutcome>, RefusalCode> {
        let task = self.core.tasks.get(slot).ok_or(RefusalCode::TaskNotFound)?;
        let attempt = task.history.as_ref().and_then(|history| history.attempt(fence));
        let Some(attempt) = attempt else {
            return Ok(None);
        };
        if attempt.worker != *worker {
            return Err(RefusalCode::NotOwner);
        }
        let ended = attempt.outcome != AttemptOutcome::Running;
        Ok(ended.then_some(attempt.outcome))
    }

    /// The slot of a task whose live claim has this fence.
    pub(crate) fn live_claim(
        &self,
        namespace: &Namespace,
        id: &TaskId,
        fence: Fence,
    ) -> Result<u32, RefusalCode> {
        let slot = self.find_task(namespace, id).ok_or(RefusalCode::TaskNotFound)?;
        self.check_claim(slot, fence, None).map(|()| slot)
    }

    /// Refuses unless the task's live claim has this fence (and worker, if one is named).
    pub(crate) fn check_claim(
        &self,
        slot: u32,
        fence: Fence,
        worker: Option<&WorkerId>,
    ) -> Result<(), RefusalCode> {
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
            _ => Ok(()),
        }
    }
}
