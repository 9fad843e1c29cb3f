//! `Complete`: settles a task as done, once. Accepted only from the worker and fence of the live
//! claim (Q4, TQ-18); a resend with the same fence is answered as the first time, also when the task
//! was removed meanwhile (`dedup/settled.rs`). Follow-ups come into being in the same step
//! (`then.rs`), and so do its outputs (`publish.rs`).

use std::sync::Arc;

use minicbor::{Decode, Encode};

use super::claim::start_attempt;
use super::then::then_level;
use super::{Attempt, AttemptOutcome, Output, TaskState};
use crate::object::Object;
use crate::planted::{self, Bug};
use crate::reuse::Stored;
use crate::shard::{Batch, Shard};
use crate::{Enqueue, Fence, Namespace, RefusalCode, Reply, SharedBytes, TaskId, WorkerId};

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
    /// Whether the attempt records a digest of the outputs; none is no. Set where it enters the cluster.
    #[n(6)]
    pub keeps_digest: Option<bool>,
}

impl Complete {
    /// Has a digest of the outputs recorded, if there are any.
    pub fn keep_digest(&mut self) {
        if !self.outputs.is_empty() {
            self.keeps_digest = Some(true);
        }
    }

    /// The level that understands it.
    pub(crate) fn level(&self) -> u32 {
        let is_placed = self.outputs.iter().any(|output| output.address.is_some());
        let is_newer = is_placed || self.keeps_digest.is_some();
        then_level(self.then.as_ref()).max(u32::from(is_newer))
    }
}

/// What a completion brings, checked.
pub(crate) struct Brought {
    pub(crate) result: Option<SharedBytes>,
    pub(crate) objects: Vec<Object>,
    pub(crate) follow_ups: Vec<Enqueue>,
    /// Whether a digest of the objects is recorded.
    pub(crate) keeps_digest: bool,
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
        let Some(slot) = self.find_task(namespace, &order.id) else {
            return match self.has_settled(namespace, &order) {
                true => Ok(()),
                false => Err(RefusalCode::TaskNotFound),
            };
        };
        if self.past_outcome(slot, order.fence, &order.worker)? == Some(AttemptOutcome::Completed) {
            self.double_follow_ups(batch, namespace, slot);
            return Ok(());
        }
        if let Err(code) = self.check_claim(slot, order.fence, Some(&order.worker))
            && !self.is_planted_completion(slot)
        {
            if planted::active(Bug::StaleOutputsPublished)
                && let Ok(objects) =
                    self.prepare_outputs(slot, order.outputs, Some((&order.id, order.fence)))
            {
                self.publish(objects);
            }
            return Err(code);
        }
        self.check_job_open(slot)?;
        if let Some(first) = self.outran(slot)? {
            return self.complete_twin(batch, namespace, slot, first, order);
        }
        let reuse_key = self.core.tasks.get(slot).and_then(|task| task.reuse_key());
        // What a completion hands on besides is not of the work alone, so it is not remembered.
        let reuse_key = reuse_key.filter(|_| order.then.is_none());
        let stored = reuse_key.map(|key| {
            (key, Stored { result: order.result.clone(), outputs: order.outputs.clone() })
        });
        let objects = self.prepare_outputs(slot, order.outputs, Some((&order.id, order.fence)))?;
        let follow_ups = self.follow_ups(namespace, slot, order.then.as_ref())?;
        let keeps_digest = order.keeps_digest == Some(true);
        let brought = Brought { result: order.result, objects, follow_ups, keeps_digest };
        self.settle_done(batch, namespace, slot, brought, None);
        if let Some((key, stored)) = stored {
            self.remember_result(batch, namespace, key, stored);
        }
        Ok(())
    }

    /// Settles a checked task as done: by the attempt that runs, or by one that begins and ends here.
    pub(crate) fn settle_done(
        &mut self,
        batch: &mut Batch,
        namespace: &Namespace,
        slot: u32,
        brought: Brought,
        attempt: Option<Attempt>,
    ) {
        let Brought { result, objects, follow_ups, keeps_digest } = brought;
        let extras = self.core.tasks.get(slot).and_then(|task| task.extras.as_ref());
        let key_limit = extras.map_or(0, |extras| extras.key_limit);
        if let Some(task) = self.core.tasks.get(slot).filter(|task| task.has_checkpoint()).cloned()
        {
            self.withdraw_checkpoint(&task);
        }
        // Before the task changes: it may go at once, and takes its outputs along.
        let outputs = objects.len() as u16;
        let task = self.core.tasks.get(slot).filter(|_| keeps_digest);
        let outputs_digest = task.and_then(|task| task.outputs_digest(&objects)).map(Box::new);
        self.publish(objects);
        let (sequence, now_ms) = (self.next_sequence(), self.core.time_ms);
        let kept_max = self.core.limits.attempts_kept_max as usize;
        self.change_task(batch, slot, |task| {
            if let Some(attempt) = attempt {
                begin_other(task, attempt, kept_max, now_ms);
            }
            task.state = TaskState::Done;
            task.sequence = sequence;
            task.moment_ms = now_ms;
            if let Some(history) = &mut task.history {
                let history = Arc::make_mut(history);
                history.newest.outcome = AttemptOutcome::Completed;
                history.newest.ended_ms = now_ms;
                history.result = result;
                history.outputs = outputs;
                history.outputs_digest = outputs_digest;
                history.checkpoint = None;
            }
        });
        self.enqueue_follow_ups(batch, namespace, key_limit, follow_ups);
    }

    /// A task that ran beside another was done first: the other one is done, with what this one brought. Both end here.
    fn complete_twin(
        &mut self,
        batch: &mut Batch,
        namespace: &Namespace,
        twin: u32,
        first: u32,
        order: Complete,
    ) -> Result<(), RefusalCode> {
        let history = self.core.tasks.get(twin).and_then(|task| task.history.as_ref());
        let mut attempt = history.ok_or(RefusalCode::StaleFence)?.newest.clone();
        attempt.outcome = AttemptOutcome::Running;
        // The other one may have been claimed again since: fences of a task only rise (Q3).
        attempt.fence = self.next_fence().ok_or(RefusalCode::FenceExhausted)?;
        // The twin wrote under its own name and fence.
        let objects = self.prepare_outputs(first, order.outputs, Some((&order.id, order.fence)))?;
        let follow_ups = self.follow_ups(namespace, first, order.then.as_ref())?;
        let keeps_digest = order.keeps_digest == Some(true);
        let nothing = Brought {
            result: None,
            objects: Vec::new(),
            follow_ups: Vec::new(),
            keeps_digest: false,
        };
        // The twin first: the end of the other would cancel it, and a resend must find it done.
        self.settle_done(batch, namespace, twin, nothing, None);
        let brought = Brought { result: order.result, objects, follow_ups, keeps_digest };
        self.settle_done(batch, namespace, first, brought, Some(attempt));
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

/// Begins an attempt that is over at once. One that still runs was outrun by it, and does not count.
fn begin_other(task: &mut super::Task, attempt: Attempt, kept_max: usize, now_ms: u64) {
    let running = task.state == TaskState::Claimed;
    if let (true, Some(history)) = (running, &mut task.history) {
        let history = Arc::make_mut(history);
        history.newest.outcome = AttemptOutcome::Outrun;
        history.newest.ended_ms = now_ms;
        task.attempt = task.attempt.saturating_sub(1);
    }
    start_attempt(task, attempt, kept_max);
}
