//! The bounded work on jobs that ends every entry: new tasks within the window, cancelled tasks of what is closed, and
//! the end of what was kept long enough. What is left is done with the next entries; a leader proposes them.

use std::sync::Arc;

use crate::limits::{JOB_STEPS_PER_ENTRY_MAX, WORK_BYTES_MAX};
use crate::object::BUCKET_JOBS;
use crate::shard::{Batch, Shard};
use crate::{JobId, Namespace, TaskId};

use super::{Job, JobKey};

impl Shard {
    pub(crate) fn tend_jobs(&mut self, batch: &mut Batch) {
        if self.core.jobs.is_empty() {
            return;
        }
        let mut left = JOB_STEPS_PER_ENTRY_MAX;
        let mut after: Option<JobKey> = None;
        // Every busy job gets a chunk, so that a large one does not hold up the others.
        while left > 0 {
            let next = match &after {
                None => self.index.busy_jobs.first().cloned(),
                Some(key) => {
                    let rest = (std::ops::Bound::Excluded(key), std::ops::Bound::Unbounded);
                    self.index.busy_jobs.range(rest).next().cloned()
                }
            };
            let Some(key) = next else {
                break;
            };
            left = left.saturating_sub(self.tend_job(batch, &key).max(1));
            after = Some(key);
        }
        self.let_jobs_go(left);
    }

    /// Does one chunk for each stage of a job; tells how many steps that took.
    fn tend_job(&mut self, batch: &mut Batch, key: &JobKey) -> u32 {
        let mut steps = 0;
        let stages = self.core.jobs.get(key).map_or(0, |job| job.spec.stages.len());
        for stage in 0..stages {
            let Some(job) = self.core.jobs.get(key).cloned() else {
                break;
            };
            // The stages after it have their turn once this one has all, or waits.
            if job.follows(1) && steps >= JOB_STEPS_PER_ENTRY_MAX {
                break;
            }
            if job.may_expand(stage, self.index.job_pace) {
                steps += self.expand(batch, &job, stage);
            } else if job.must_sweep(stage) {
                steps += self.sweep_stage(batch, key, stage);
            }
        }
        steps
    }

    /// Cancels a chunk of a closed stage's tasks.
    fn sweep_stage(&mut self, batch: &mut Batch, key: &JobKey, stage: usize) -> u32 {
        let Some(job) = self.core.jobs.get(key).cloned() else {
            return 0;
        };
        let progress = job.progress.stages[stage];
        let end = progress.swept.saturating_add(self.index.job_pace.chunk).min(progress.expanded);
        for index in progress.swept..end {
            let slot = task_id(&job.id, job.spec.stages[stage].name.as_str(), index)
                .and_then(|id| self.find_task(&job.namespace, &id));
            let open = |task: &crate::task::Task| !task.state.is_terminal();
            if let Some(slot) = slot.filter(|slot| self.core.tasks.get(*slot).is_some_and(open)) {
                self.cancel_slot(batch, slot);
            }
        }
        self.change_job(key, |job| job.progress.stages[stage].swept = end);
        end - progress.swept
    }

    /// Removes what was kept long enough: first the outputs, a chunk at a time, then the record.
    fn let_jobs_go(&mut self, steps: u32) {
        let mut left = steps as usize;
        while left > 0
            && let Some((until_ms, key)) = self.index.job_ends.first().cloned()
            && until_ms <= self.core.time_ms
        {
            // A task that is not swept yet still belongs to somebody.
            if self.index.busy_jobs.contains(&key) {
                return;
            }
            let removed = self.remove_objects(&key.0, BUCKET_JOBS, &format!("{}/", key.1), left);
            left -= removed;
            if left > 0 {
                self.remove_job(&key);
                left -= 1;
            }
        }
    }

    /// Log time at which jobs want an entry; none if they can wait for whatever comes.
    pub(crate) fn next_job_ms(&self) -> Option<u64> {
        let ends = self.index.job_ends.first().map(|(until_ms, _)| *until_ms);
        // Without room nothing can be done, and whatever makes room brings an entry.
        let has_room = self.check_room(WORK_BYTES_MAX as u64).is_ok();
        let busy = has_room && self.index.busy_jobs.iter().any(|key| self.may_go_on(key));
        busy.then_some(0).or(ends)
    }

    /// Whether a job may bring one more task into a namespace, however much that reads.
    pub(super) fn has_job_room(&self, namespace: &Namespace) -> bool {
        let bytes = WORK_BYTES_MAX as u64;
        self.check_room(bytes).is_ok() && self.check_quota(namespace, bytes).is_ok()
    }

    /// Whether an entry would bring a busy job on: its namespace has room, or it has tasks to cancel.
    fn may_go_on(&self, key: &JobKey) -> bool {
        if self.check_quota(&key.0, WORK_BYTES_MAX as u64).is_ok() {
            return true;
        }
        let must_sweep =
            |job: &Arc<Job>| (0..job.spec.stages.len()).any(|stage| job.must_sweep(stage));
        self.core.jobs.get(key).is_some_and(must_sweep)
    }
}

/// The handle of a job's task.
pub(crate) fn task_id(job: &JobId, stage: &str, index: u32) -> Option<TaskId> {
    TaskId::keyed(job.as_str(), &format!("{stage}.{index}")).ok()
}
