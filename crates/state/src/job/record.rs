//! What is stored about one job: what it is to do, and how far it is.

use std::collections::BTreeSet;
use std::sync::Arc;

use minicbor::{Decode, Encode};

use super::{JobSpec, Settle};
use crate::hash::{RecordKind, digest_bytes, encode_into};
use crate::limits::{JobPace, Limits};
use crate::planted::{self, Bug};
use crate::shard::{Index, Shard};
use crate::{JobId, Namespace, SharedBytes, TaskId};

/// Full name of a job.
pub type JobKey = (Namespace, JobId);

/// How a job ended, if it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum JobState {
    /// It has not.
    #[n(0)]
    Running = 0,
    /// Every stage is settled.
    #[n(1)]
    Done = 1,
    /// A stage can no longer be settled.
    #[n(2)]
    Error = 2,
    /// Somebody cancelled it.
    #[n(3)]
    Cancelled = 3,
}

/// How far a stage is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct StageProgress {
    /// Tasks that came into being so far, from number 0 on.
    #[n(0)]
    pub expanded: u32,
    /// Tasks done.
    #[n(1)]
    pub done: u32,
    /// Tasks dead.
    #[n(2)]
    pub dead: u32,
    /// Tasks cancelled.
    #[n(3)]
    pub cancelled: u32,
    /// Tasks held by workers now.
    #[n(4)]
    pub claimed: u32,
    /// Whether enough of its tasks are done.
    #[n(5)]
    pub settled: bool,
    /// Tasks looked at since the rest is being cancelled.
    #[n(6)]
    pub swept: u32,
    /// Tasks done with a result that was remembered; none is 0.
    #[n(7)]
    pub reused: Option<u32>,
    /// Tasks that were begun a second time beside the first; none is 0.
    #[n(8)]
    pub duplicated: Option<u32>,
    /// How long the attempts of the tasks done took together; only counted where slow tasks are duplicated.
    #[n(9)]
    pub took_ms: Option<u64>,
}

impl StageProgress {
    /// Tasks that exist and have not ended.
    pub fn open(&self) -> u32 {
        self.expanded.saturating_sub(self.done + self.dead + self.cancelled)
    }
}

/// The part of a job that changes.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Progress {
    #[n(0)]
    pub(crate) state: JobState,
    #[n(1)]
    pub(crate) stages: Vec<StageProgress>,
    #[n(2)]
    pub(crate) submitted_ms: u64,
    /// Log time of the first claim; 0 before that.
    #[n(3)]
    pub(crate) started_ms: u64,
    /// 0 while it runs.
    #[n(4)]
    pub(crate) finished_ms: u64,
    /// Why it ended in error.
    #[n(5)]
    pub(crate) reason: Option<SharedBytes>,
    /// The newest result of a task of a final stage.
    #[n(6)]
    pub(crate) result: Option<SharedBytes>,
    /// The task that brought it.
    #[n(7)]
    pub(crate) result_of: Option<TaskId>,
    /// Rises with each change.
    #[n(8)]
    pub(crate) revision: u64,
}

/// One job as stored.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Job {
    #[n(0)]
    pub(crate) namespace: Namespace,
    #[n(1)]
    pub(crate) id: JobId,
    #[n(2)]
    pub(crate) spec: SharedSpec,
    /// Hash of the order as given, to tell a resend from a conflict.
    #[n(3)]
    pub(crate) body_hash: u64,
    #[n(4)]
    pub(crate) progress: Progress,
    /// Which rules it follows; none is the first ones.
    #[n(5)]
    pub(crate) rules: Option<u32>,
}

/// A specification with its hash, so that digests need not read it again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SharedSpec {
    pub(crate) spec: Arc<JobSpec>,
    hash: u64,
    /// Length of its encoding.
    pub(crate) bytes: u64,
}

impl From<JobSpec> for SharedSpec {
    fn from(spec: JobSpec) -> Self {
        let mut bytes = Vec::new();
        encode_into(&spec, &mut bytes);
        let hash = xxhash_rust::xxh3::xxh3_64(&bytes);
        SharedSpec { spec: Arc::new(spec), hash, bytes: bytes.len() as u64 }
    }
}

impl std::ops::Deref for SharedSpec {
    type Target = JobSpec;
    fn deref(&self) -> &JobSpec {
        &self.spec
    }
}

impl<C> Encode<C> for SharedSpec {
    fn encode<W: minicbor::encode::Write>(
        &self,
        encoder: &mut minicbor::Encoder<W>,
        context: &mut C,
    ) -> Result<(), minicbor::encode::Error<W::Error>> {
        self.spec.as_ref().encode(encoder, context)
    }
}

impl<'b, C> Decode<'b, C> for SharedSpec {
    fn decode(
        decoder: &mut minicbor::Decoder<'b>,
        context: &mut C,
    ) -> Result<Self, minicbor::decode::Error> {
        Ok(SharedSpec::from(JobSpec::decode(decoder, context)?))
    }
}

impl Job {
    /// Its name.
    pub(crate) fn key(&self) -> JobKey {
        (self.namespace.clone(), self.id.clone())
    }

    /// Its share of the state hash.
    pub(crate) fn digest(&self) -> u64 {
        let mut bytes = Vec::with_capacity(256);
        bytes.extend_from_slice(&self.spec.hash.to_le_bytes());
        bytes.extend_from_slice(&self.body_hash.to_le_bytes());
        encode_into(&self.namespace, &mut bytes);
        encode_into(&self.id, &mut bytes);
        encode_into(&self.progress, &mut bytes);
        if let Some(rules) = self.rules {
            bytes.extend_from_slice(&rules.to_le_bytes());
        }
        digest_bytes(RecordKind::Job, &bytes)
    }

    /// Log time at which it goes with all its outputs; none while it runs.
    pub(crate) fn kept_until_ms(&self) -> Option<u64> {
        let ended = self.progress.state != JobState::Running;
        ended.then(|| self.progress.finished_ms.saturating_add(self.spec.retention_ms))
    }

    /// Whether all that a stage reads from or waits for is settled.
    pub(crate) fn may_begin(&self, stage: usize) -> bool {
        let spec = &self.spec.stages[stage];
        let mut needs = spec.reads().iter().chain(&spec.after);
        if planted::active(Bug::StageBeginsEarly) {
            return true;
        }
        needs.all(|place| {
            self.progress.stages.get(usize::from(*place)).is_some_and(|stage| stage.settled)
        })
    }

    /// Whether nothing that tasks of a stage bring counts any more.
    pub(crate) fn is_closed(&self, stage: usize) -> bool {
        self.progress.state != JobState::Running
            || self.progress.stages.get(stage).is_none_or(|stage| stage.settled)
    }

    /// Whether a stage has room for a chunk of new tasks.
    pub(crate) fn may_expand(&self, stage: usize, pace: JobPace) -> bool {
        let progress = &self.progress.stages[stage];
        let pace = self.pace_of(stage, pace);
        let left = self.spec.count(stage).saturating_sub(progress.expanded);
        let chunk = left.min(pace.chunk);
        left > 0
            && !self.is_closed(stage)
            && progress.open() + chunk <= pace.window
            && self.may_begin(stage)
    }

    /// Whether tasks of a stage are to be cancelled.
    pub(crate) fn must_sweep(&self, stage: usize) -> bool {
        let progress = &self.progress.stages[stage];
        self.is_closed(stage) && progress.open() > 0 && progress.swept < progress.expanded
    }

    /// Whether there is work to do on the job itself.
    pub(crate) fn is_busy(&self, pace: JobPace) -> bool {
        let mut stages = 0..self.spec.stages.len();
        stages.any(|stage| self.may_expand(stage, pace) || self.must_sweep(stage))
    }

    /// Whether a stage has enough tasks done, or can no longer have.
    pub(crate) fn judge(&self, stage: usize) -> Option<bool> {
        let progress = &self.progress.stages[stage];
        let (count, lost) = (self.spec.count(stage), progress.dead + progress.cancelled);
        let wanted = match self.spec.stages[stage].settle {
            Settle::All => count,
            Settle::Any => 1,
            Settle::Quorum(wanted) => wanted,
        };
        match progress.done >= wanted {
            true => Some(true),
            false => (count.saturating_sub(lost) < wanted).then_some(false),
        }
    }

    /// Whether a decoded record obeys the rules that the verbs rely on.
    pub(crate) fn is_valid(&self, limits: &Limits) -> bool {
        let fits = |(stage, progress): (usize, &StageProgress)| {
            let ended = u64::from(progress.done)
                + u64::from(progress.dead)
                + u64::from(progress.cancelled)
                + u64::from(progress.claimed);
            progress.expanded <= self.spec.count(stage)
                && ended <= u64::from(progress.expanded)
                && progress.swept <= progress.expanded
        };
        self.spec.check(&self.id, limits).is_ok()
            && self.progress.stages.len() == self.spec.stages.len()
            && self.progress.stages.iter().enumerate().all(fits)
            && (self.progress.state == JobState::Error) == self.progress.reason.is_some()
    }
}

impl Shard {
    /// One job.
    pub fn job(&self, namespace: &Namespace, id: &JobId) -> Option<&Arc<Job>> {
        self.core.jobs.get(&(namespace.clone(), id.clone()))
    }

    /// Stores a job that is new here.
    pub(crate) fn put_job(&mut self, job: Job) {
        let key = job.key();
        self.remove_job(&key);
        self.core.hash.add(job.digest());
        self.index.job_bytes += job.spec.bytes;
        self.index.link_job(&key, &job);
        self.core.jobs.insert(key, Arc::new(job));
    }

    /// Removes a job's record.
    pub(crate) fn remove_job(&mut self, key: &JobKey) -> Option<Arc<Job>> {
        let job = self.core.jobs.remove(key)?;
        let digest = self.index.changed_jobs.remove(key).unwrap_or_else(|| job.digest());
        self.core.hash.remove(digest);
        self.index.job_bytes -= job.spec.bytes;
        self.index.busy_jobs.remove(key);
        self.index.watched_jobs.remove(key);
        if let Some(until_ms) = job.kept_until_ms() {
            self.index.job_ends.remove(&(until_ms, key.clone()));
        }
        Some(job)
    }

    /// Changes a job; its revision rises.
    pub(crate) fn change_job(&mut self, key: &JobKey, change: impl FnOnce(&mut Job)) {
        let Some(job) = self.core.jobs.get_mut(key) else {
            return;
        };
        if !self.index.changed_jobs.contains_key(key) {
            self.index.changed_jobs.insert(key.clone(), job.digest());
        }
        let job = Arc::make_mut(job);
        change(job);
        job.progress.revision += 1;
        self.index.link_job(key, job);
    }

    /// Brings the share of changed jobs in the state hash up to date.
    pub(crate) fn flush_jobs(&mut self) {
        for (key, before) in std::mem::take(&mut self.index.changed_jobs) {
            self.core.hash.remove(before);
            if let Some(job) = self.core.jobs.get(&key) {
                self.core.hash.add(job.digest());
            }
        }
    }
}

/// Puts a job into a set, or takes it out.
fn note(jobs: &mut BTreeSet<JobKey>, key: &JobKey, is_one: bool) {
    match (is_one, jobs.contains(key)) {
        (true, false) => drop(jobs.insert(key.clone())),
        (false, true) => drop(jobs.remove(key)),
        _ => {}
    }
}

impl Index {
    /// Notes what a job asks for.
    pub(crate) fn link_job(&mut self, key: &JobKey, job: &Job) {
        note(&mut self.watched_jobs, key, job.is_watched());
        note(&mut self.busy_jobs, key, job.is_busy(self.job_pace));
        if let Some(until_ms) = job.kept_until_ms() {
            self.job_ends.insert((until_ms, key.clone()));
        }
    }
}
