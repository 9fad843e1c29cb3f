//! A job follows its tasks: every change of a task's state is counted once, and may settle a stage or end the job.
//! Nothing else happens here: what follows for other tasks is done in bounded steps (`tend.rs`).

use std::sync::Arc;

use super::{Job, JobState};
use crate::limits::JOB_REASON_BYTES_MAX;
use crate::planted::{self, Bug};
use crate::reuse::REUSED_WORKER;
use crate::shard::Shard;
use crate::task::{History, Task, TaskState};
use crate::{JobPart, RefusalCode, SharedBytes};

/// What a job needs to know of a change.
pub(crate) struct JobMove {
    part: JobPart,
    from: Option<TaskState>,
    to: TaskState,
    /// Result of a task that is done, words of one that is not.
    said: Option<SharedBytes>,
    /// How long its newest attempt took, once it is over.
    took_ms: u64,
    /// Whether it is done with what was remembered of the same work.
    reused: bool,
    id: crate::TaskId,
    queue: u32,
}

impl JobMove {
    /// Where it has a twin, if it has: its part, if it has ended.
    pub(crate) fn ended_part(&self) -> Option<&JobPart> {
        self.to.is_terminal().then_some(&self.part)
    }
}

impl JobMove {
    /// The change of a task of a job; none for every other task.
    pub(crate) fn of(task: &Task, from: Option<TaskState>) -> Option<JobMove> {
        // Who runs beside another is not counted: the two are one task.
        let part = task.job_part().filter(|part| !part.is_twin())?;
        if from == Some(task.state) {
            return None;
        }
        let history = task.history.as_ref();
        let said = match task.state {
            TaskState::Done => history.and_then(|history| history.result.clone()),
            TaskState::Dead => {
                let why = task.dead_reason.map_or("dead", |reason| reason.as_str());
                let error = history.and_then(|history| history.newest.error.as_deref());
                let error = String::from_utf8_lossy(error.unwrap_or_default()).into_owned();
                Some(format!("task {} is dead ({why}): {error}", task.id).into_bytes().into())
            }
            _ => None,
        };
        let reused = task.state == TaskState::Done
            && history.is_some_and(|history| history.newest.worker.as_str() == REUSED_WORKER);
        let (to, id, queue) = (task.state, task.id.clone(), task.queue);
        let took = |history: &Arc<History>| {
            history.newest.ended_ms.saturating_sub(history.newest.started_ms)
        };
        let took_ms = history.map_or(0, took);
        Some(JobMove { part: part.clone(), from, to, said, took_ms, reused, id, queue })
    }
}

impl Shard {
    /// Counts a change of a job's task.
    pub(crate) fn track_job(&mut self, change: &JobMove) {
        let namespace = self.core.queues[change.queue as usize].namespace.clone();
        let key = (namespace, change.part.job.clone());
        let now_ms = self.core.time_ms;
        self.change_job(&key, |job| job.count(change, now_ms));
    }

    /// Refuses what a task brings once its stage or job is closed.
    pub(crate) fn check_job_open(&self, slot: u32) -> Result<(), RefusalCode> {
        let Some(task) = self.core.tasks.get(slot) else {
            return Err(RefusalCode::TaskNotFound);
        };
        let part = task.extras.as_ref().and_then(|extras| extras.work.as_ref()?.job.as_ref());
        let Some(part) = part else {
            return Ok(());
        };
        let namespace = &self.core.queues[task.queue as usize].namespace;
        let open = self.job(namespace, &part.job).is_some_and(|job| {
            let stage = job.spec.stages.iter().position(|stage| stage.name == part.stage);
            stage.is_some_and(|stage| !job.is_closed(stage))
        });
        let open = open || planted::active(Bug::ClosedStageTakes);
        if open { Ok(()) } else { Err(RefusalCode::TaskFinished) }
    }
}

impl Job {
    fn count(&mut self, change: &JobMove, now_ms: u64) {
        let named = |stage: &super::StageSpec| stage.name == change.part.stage;
        let Some(stage) = self.spec.stages.iter().position(named) else {
            return;
        };
        let progress = &mut self.progress.stages[stage];
        match change.from {
            None => progress.expanded = progress.expanded.max(change.part.index + 1),
            Some(TaskState::Claimed) => progress.claimed = progress.claimed.saturating_sub(1),
            Some(_) => {}
        }
        match change.to {
            TaskState::Claimed => progress.claimed += 1,
            TaskState::Done => progress.done += 1,
            TaskState::Dead => progress.dead += 1,
            TaskState::Cancelled if planted::active(Bug::SweptNotCounted) => {}
            TaskState::Cancelled => progress.cancelled += 1,
            TaskState::Scheduled | TaskState::Ready => {}
        }
        if change.to == TaskState::Done {
            // By the first rules, whatever ended without being claimed; but what its twin did may have waited to be claimed again.
            let unclaimed = change.from != Some(TaskState::Claimed);
            let reused = unclaimed && (change.reused || !self.follows(1));
            let progress = &mut self.progress.stages[stage];
            if reused {
                progress.reused = Some(progress.reused.unwrap_or(0) + 1);
            } else if self.spec.duplicate_after.is_some() {
                let took_ms = progress.took_ms.unwrap_or(0).saturating_add(change.took_ms);
                progress.took_ms = Some(took_ms);
            }
        }
        if change.to == TaskState::Claimed && self.progress.started_ms == 0 {
            self.progress.started_ms = now_ms;
        }
        if self.is_closed(stage) {
            return;
        }
        if change.to == TaskState::Done && self.spec.is_final(stage) {
            self.progress.result = change.said.clone();
            self.progress.result_of = Some(change.id.clone());
        }
        match self.judge(stage) {
            Some(true) => self.settle(stage, now_ms),
            Some(false) => {
                let cancelled = format!("task {} was cancelled", change.id);
                self.fail(change.said.as_deref().unwrap_or(cancelled.as_bytes()), now_ms);
            }
            None => {}
        }
    }

    fn settle(&mut self, stage: usize, now_ms: u64) {
        self.progress.stages[stage].settled = true;
        if self.progress.stages.iter().all(|stage| stage.settled) {
            self.progress.state = JobState::Done;
            self.progress.finished_ms = now_ms;
        }
    }

    /// Ends the job in error.
    pub(crate) fn fail(&mut self, reason: &[u8], now_ms: u64) {
        let cut = reason.len().min(JOB_REASON_BYTES_MAX);
        self.progress.state = JobState::Error;
        self.progress.finished_ms = now_ms;
        self.progress.reason = Some(SharedBytes::from(&reason[..cut]));
    }
}
