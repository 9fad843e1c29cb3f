//! `Duplicate`: begins a slow task of a job a second time, beside the first. Whoever is done first, the task is done with what that
//! one brought; the other is cancelled in the same entry.
//!
//! Promise: each of the two has a claim and a fence of its own, so all that holds for claims holds for both; only one publishes. A
//! twin is not counted as a task of its job. It is offered after all other work, and never to the worker that holds the first.
//!
//! Left out: when to do so. The leader measures (`replica/stragglers.rs`) with [`Shard::stragglers`]; this only checks that it may.

use minicbor::{Decode, Encode};

use super::{Job, JobKey, JobState};
use crate::ids::task_hash;
use crate::limits::{
    DUPLICATE_AFTER_MS_MIN, DUPLICATE_BROTHERS_MIN, DUPLICATES_PER_STAGE_MAX, WORK_BYTES_MAX,
};
use crate::shard::{Batch, Shard};
use crate::task::{BodyHashes, Enqueue, SharedWork, Task, TaskOptions, TaskState};
use crate::{
    Fence, JobPart, Labels, Namespace, QueueName, RefusalCode, Reply, SharedBytes, TaskId, WorkerId,
};

/// Begins a task a second time.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Duplicate {
    /// The task.
    #[n(0)]
    pub id: TaskId,
    /// Token of the claim that is slow.
    #[n(1)]
    pub fence: Fence,
}

/// The handle of what runs beside a job's task. No stage has a dot in its name.
fn twin_id(part: &JobPart) -> Option<TaskId> {
    let name = format!("{}.{}.twin", part.stage, part.index);
    TaskId::keyed(part.job.as_str(), &name).ok()
}

impl Job {
    /// Whether somebody should look for slow tasks.
    pub(crate) fn is_watched(&self) -> bool {
        self.progress.state == JobState::Running && self.spec.duplicate_after.is_some()
    }

    /// How long a task of a stage may run before it is slow; none while nobody can tell, or others wait to be run.
    fn patience_ms(&self, stage: usize) -> Option<u64> {
        let factor = u64::from(self.spec.duplicate_after?);
        let progress = self.progress.stages.get(stage)?;
        let all_run = progress.expanded == self.spec.count(stage)
            && progress.open() == progress.claimed
            && !self.is_closed(stage);
        let ran = progress.done.saturating_sub(progress.reused.unwrap_or(0));
        if !all_run
            || ran < DUPLICATE_BROTHERS_MIN
            || progress.duplicated.unwrap_or(0) >= DUPLICATES_PER_STAGE_MAX
        {
            return None;
        }
        let mean_ms = progress.took_ms.unwrap_or(0) / u64::from(ran);
        Some(mean_ms.saturating_mul(factor).max(DUPLICATE_AFTER_MS_MIN))
    }
}

impl Shard {
    /// Whether a job here wants its slow tasks duplicated.
    pub fn watches_jobs(&self) -> bool {
        !self.index.watched_jobs.is_empty()
    }

    /// Claims of jobs' tasks that are slow at a log time and have nobody beside them, up to a number.
    pub fn stragglers(&self, now_ms: u64, count_max: usize) -> Vec<(Namespace, Duplicate)> {
        if !self.watches_jobs() {
            return Vec::new();
        }
        let slow = self.index.claimed.iter().filter_map(|slot| {
            let task = self.core.tasks.get(slot)?;
            let part = task.job_part().filter(|part| !part.is_twin())?;
            let namespace = &self.core.queues[task.queue as usize].namespace;
            let job = self.job(namespace, &part.job)?;
            let stage = job.spec.stages.iter().position(|stage| stage.name == part.stage)?;
            let patience_ms = job.patience_ms(stage)?;
            let started_ms = task.history.as_ref()?.newest.started_ms;
            let is_slow = now_ms.saturating_sub(started_ms) > patience_ms;
            let alone = twin_id(part).is_some_and(|id| self.find_task(namespace, &id).is_none());
            let duplicate = Duplicate { id: task.id.clone(), fence: task.fence };
            (is_slow && alone).then(|| (namespace.clone(), duplicate))
        });
        slow.take(count_max).collect()
    }

    pub(crate) fn apply_duplicate(
        &mut self,
        batch: &mut Batch,
        namespace: &Namespace,
        order: &Duplicate,
    ) -> Reply {
        match self.duplicate(batch, namespace, order) {
            Ok(id) => Reply::Enqueued { id, created: true },
            Err(code) => Reply::refused(code),
        }
    }

    fn duplicate(
        &mut self,
        batch: &mut Batch,
        namespace: &Namespace,
        order: &Duplicate,
    ) -> Result<TaskId, RefusalCode> {
        let slot = self.live_claim(namespace, &order.id, order.fence)?;
        self.check_job_open(slot)?;
        let task = self.core.tasks.get(slot).ok_or(RefusalCode::TaskNotFound)?;
        let work = task.extras.as_ref().and_then(|extras| extras.work.clone());
        let part = task.job_part().filter(|part| !part.is_twin()).cloned();
        let (Some(work), Some(part)) = (work, part) else {
            return Err(RefusalCode::BadValue);
        };
        let key: JobKey = (namespace.clone(), part.job.clone());
        if !self.core.jobs.get(&key).is_some_and(|job| job.is_watched()) {
            return Err(RefusalCode::BadValue);
        }
        let id = twin_id(&part).ok_or(RefusalCode::BadValue)?;
        let name_hash = task_hash(namespace.as_str(), id.as_str());
        if self.find_task_hashed(namespace, &id, name_hash).is_some() {
            return Err(RefusalCode::Conflict);
        }
        let name = self.core.queues[task.queue as usize].name.clone();
        let order = twin_of(task, (id.clone(), name), &work, &part);
        let queue = task.queue;
        self.check_room(order.weight() as u64)?;
        self.check_quota(namespace, WORK_BYTES_MAX as u64)?;
        let hashes = BodyHashes::of(&order);
        self.bear(batch, order, hashes, queue, name_hash, None);
        self.change_job(&key, |job| {
            let named = |stage: &super::StageSpec| stage.name == part.stage;
            if let Some(stage) = job.spec.stages.iter().position(named) {
                let progress = &mut job.progress.stages[stage];
                progress.duplicated = Some(progress.duplicated.unwrap_or(0) + 1);
            }
        });
        Ok(id)
    }

    /// The task beside which another runs, if it is one that does; refused once that has ended.
    pub(crate) fn outran(&self, slot: u32) -> Result<Option<u32>, RefusalCode> {
        let Some(part) = self.core.tasks.get(slot).and_then(|task| task.job_part()) else {
            return Ok(None);
        };
        if !part.is_twin() {
            return Ok(None);
        }
        let first = self.beside(slot).ok_or(RefusalCode::TaskFinished)?;
        match self.core.tasks.get(first).is_some_and(|task| task.state.is_terminal()) {
            true => Err(RefusalCode::TaskFinished),
            false => Ok(Some(first)),
        }
    }

    /// The slot of the task beside which another runs.
    fn beside(&self, slot: u32) -> Option<u32> {
        let task = self.core.tasks.get(slot)?;
        let part = task.job_part()?;
        let namespace = &self.core.queues[task.queue as usize].namespace;
        let id = super::tend::task_id(&part.job, part.stage.as_str(), part.index)?;
        self.find_task(namespace, &id)
    }

    /// A job's task has ended: whoever runs beside it need not go on. Noted only, since whoever ends tasks may have the other one
    /// in its own list.
    pub(crate) fn note_ended(&self, batch: &mut Batch, queue: u32, part: &JobPart) {
        let namespace = self.core.queues[queue as usize].namespace.clone();
        let job = self.core.jobs.get(&(namespace, part.job.clone()));
        if job.is_some_and(|job| job.spec.duplicate_after.is_some()) {
            batch.ended.push((queue, part.clone()));
        }
    }

    /// Cancels, at the end of the entry, what ran beside tasks that have ended in it.
    pub(crate) fn end_twins(&mut self, batch: &mut Batch) {
        for (queue, part) in std::mem::take(&mut batch.ended) {
            let namespace = &self.core.queues[queue as usize].namespace;
            let twin = twin_id(&part).and_then(|id| self.find_task(namespace, &id));
            let open = |task: &Task| !task.state.is_terminal();
            if let Some(slot) = twin.filter(|slot| self.core.tasks.get(*slot).is_some_and(open)) {
                self.cancel_slot(batch, slot);
            }
        }
    }

    /// The task of a queue that a worker is handed next. Who runs beside another comes last, and not to the holder of that one.
    pub(crate) fn next_for(
        &self,
        queue: u32,
        labels: &Labels,
        worker: Option<&WorkerId>,
    ) -> Option<u32> {
        let line = &self.index.lines[queue as usize];
        line.first_ready(labels).or_else(|| {
            line.twins().find(|slot| {
                let wanted = |task: &Task| {
                    task.extras.as_ref().is_none_or(|extras| labels.satisfy(&extras.labels))
                };
                let holder = self.beside(*slot).and_then(|first| self.holder(first));
                self.core.tasks.get(*slot).is_some_and(wanted)
                    && (holder.is_none() || worker != holder)
            })
        })
    }

    fn holder(&self, slot: u32) -> Option<&WorkerId> {
        let task = self.core.tasks.get(slot).filter(|task| task.state == TaskState::Claimed)?;
        task.history.as_ref().map(|history| &history.newest.worker)
    }
}

/// What runs beside a task: the same work, once, whatever became of it.
fn twin_of(
    task: &Task,
    (id, queue): (TaskId, QueueName),
    work: &SharedWork,
    part: &JobPart,
) -> Enqueue {
    let mut work = (**work).clone();
    work.job = Some(JobPart { twin: Some(true), ..part.clone() });
    work.reuse = None;
    let options = TaskOptions {
        key_limit: Some(0),
        labels: task.extras.as_ref().map(|extras| extras.labels.clone()).unwrap_or_default(),
        timeout_ms: Some(task.timeout_ms()),
        work: Some(SharedWork::from(work)),
        deadline_in_ms: Some(0),
        ..TaskOptions::default()
    };
    Enqueue {
        priority: Some(task.priority),
        max_attempts: Some(1),
        ttl_ms: Some(task.ttl_ms),
        backoff: Some(task.backoff),
        options: Some(Box::new(options)),
        ..Enqueue::new(id, queue, SharedBytes::from(&b""[..]))
    }
}
