//! Reading jobs: where one stands, a page of them, and its tasks.

use std::ops::Bound;
use std::sync::Arc;

use super::tend::task_id;
use super::{Job, JobKey, JobSpec, JobState, StageProgress};
use crate::shard::Shard;
use crate::{JobId, Namespace, SharedBytes, StageName, TaskId, TaskView};

/// Where a job stands (B4-6, B4-7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum JobStatus {
    /// No task was ever claimed.
    NotStarted,
    /// A worker holds a task.
    InProgress,
    /// Tasks are open, and no worker holds one.
    Halted,
    /// It is done.
    Done,
    /// It failed.
    Error,
    /// It was cancelled.
    Cancelled,
}

impl JobStatus {
    /// The status as public text.
    pub fn as_str(self) -> &'static str {
        match self {
            JobStatus::NotStarted => "not_started",
            JobStatus::InProgress => "in_progress",
            JobStatus::Halted => "halted",
            JobStatus::Done => "done",
            JobStatus::Error => "error",
            JobStatus::Cancelled => "cancelled",
        }
    }
}

/// A page of jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobPage {
    /// The jobs, by id.
    pub jobs: Vec<Arc<Job>>,
    /// Where the next page begins; none at the end.
    pub next: Option<JobId>,
}

/// One task of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobTask {
    /// Its stage.
    pub stage: StageName,
    /// Its place in the stage.
    pub index: u32,
    /// Its handle.
    pub id: TaskId,
    /// The task; none if it is still to come, or its record is gone.
    pub task: Option<Box<TaskView>>,
    /// Whether it came into being.
    pub expanded: bool,
}

impl Job {
    /// Its id.
    pub fn id(&self) -> &JobId {
        &self.id
    }

    /// Its owner.
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// What it is to do.
    pub fn spec(&self) -> &JobSpec {
        &self.spec
    }

    /// How it ended, if it has.
    pub fn state(&self) -> JobState {
        self.progress.state
    }

    /// How far its stages are, in the order of the specification.
    pub fn stages(&self) -> &[StageProgress] {
        &self.progress.stages
    }

    /// Log time of submission.
    pub fn submitted_ms(&self) -> u64 {
        self.progress.submitted_ms
    }

    /// Log time of the first claim.
    pub fn started_ms(&self) -> Option<u64> {
        Some(self.progress.started_ms).filter(|started_ms| *started_ms > 0)
    }

    /// Log time of its end.
    pub fn finished_ms(&self) -> Option<u64> {
        (self.progress.state != JobState::Running).then_some(self.progress.finished_ms)
    }

    /// Why it ended in error.
    pub fn reason(&self) -> Option<&SharedBytes> {
        self.progress.reason.as_ref()
    }

    /// The newest result of a task of a final stage, and the task that brought it.
    pub fn result(&self) -> Option<(&TaskId, &SharedBytes)> {
        Some((self.progress.result_of.as_ref()?, self.progress.result.as_ref()?))
    }

    /// Rises with each change.
    pub fn revision(&self) -> u64 {
        self.progress.revision
    }

    /// Where it stands.
    pub fn status(&self) -> JobStatus {
        let claimed = self.progress.stages.iter().any(|stage| stage.claimed > 0);
        match self.progress.state {
            JobState::Done => JobStatus::Done,
            JobState::Error => JobStatus::Error,
            JobState::Cancelled => JobStatus::Cancelled,
            JobState::Running if claimed => JobStatus::InProgress,
            JobState::Running if self.progress.started_ms == 0 => JobStatus::NotStarted,
            JobState::Running => JobStatus::Halted,
        }
    }
}

impl Shard {
    /// A namespace's jobs in this shard, after an id.
    pub fn jobs(&self, namespace: &Namespace, after: Option<&JobId>, limit: usize) -> JobPage {
        let start: Bound<JobKey> = match after {
            Some(after) => Bound::Excluded((namespace.clone(), after.clone())),
            None => Bound::Unbounded,
        };
        let all = self.core.jobs.range((start, Bound::Unbounded));
        let mut own = all
            .skip_while(|(key, _)| key.0 < *namespace)
            .take_while(|(key, _)| key.0 == *namespace)
            .map(|(_, job)| job);
        let jobs: Vec<Arc<Job>> = own.by_ref().take(limit).cloned().collect();
        let next = own.next().and_then(|_| jobs.last().map(|job| job.id.clone()));
        JobPage { jobs, next }
    }

    /// Tasks of a stage from a number on, in order.
    pub fn job_tasks(&self, key: &JobKey, stage: usize, from: u32, limit: u32) -> Vec<JobTask> {
        let Some(job) = self.core.jobs.get(key) else {
            return Vec::new();
        };
        let (Some(spec), Some(progress)) =
            (job.spec.stages.get(stage), job.progress.stages.get(stage))
        else {
            return Vec::new();
        };
        let end = from.saturating_add(limit).min(job.spec.count(stage));
        let tasks = (from..end).filter_map(|index| {
            let id = task_id(&job.id, spec.name.as_str(), index)?;
            let task = self.task(&job.namespace, &id).map(Box::new);
            let expanded = index < progress.expanded;
            Some(JobTask { stage: spec.name.clone(), index, id, task, expanded })
        });
        tasks.collect()
    }
}
