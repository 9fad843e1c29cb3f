//! `CancelJob`: ends a job. From this entry on nothing that its tasks bring counts; the tasks themselves are cancelled
//! in bounded steps.

use minicbor::{Decode, Encode};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::JobState;
use crate::shard::Shard;
use crate::{JobId, Namespace, RefusalCode, Reply};

/// Cancels a job.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct CancelJob {
    /// The job.
    #[n(0)]
    pub id: JobId,
}

impl CancelJob {
    /// Hash of the order as given.
    pub(crate) fn body_hash(&self) -> u64 {
        xxh3_64_with_seed(self.id.as_str().as_bytes(), 111)
    }
}

impl Shard {
    pub(crate) fn apply_cancel_job(&mut self, namespace: &Namespace, order: &CancelJob) -> Reply {
        let Some(job) = self.job(namespace, &order.id) else {
            return Reply::refused(RefusalCode::JobNotFound);
        };
        match job.progress.state {
            JobState::Running => {}
            JobState::Cancelled => return Reply::JobCancelled,
            JobState::Done | JobState::Error => return Reply::refused(RefusalCode::JobFinished),
        }
        let (key, now_ms) = (job.key(), self.core.time_ms);
        self.change_job(&key, |job| {
            job.progress.state = JobState::Cancelled;
            job.progress.finished_ms = now_ms;
        });
        Reply::JobCancelled
    }
}
