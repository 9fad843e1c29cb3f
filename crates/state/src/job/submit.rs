//! `SubmitJob`: accepts a job as a whole, or not at all (B4-34). Its first tasks come with the same entry.

use minicbor::{Decode, Encode};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::record::{Progress, SharedSpec};
use super::{JOB_RULES, Job, JobSpec, JobState, StageProgress};
use crate::hash::encode_into;
use crate::limits::{JOBS_BYTES_MAX, JOBS_MAX};
use crate::shard::Shard;
use crate::{JobId, Namespace, RefusalCode, Reply};

/// Submits a job.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct SubmitJob {
    /// Its id.
    #[n(0)]
    pub id: JobId,
    /// What it is to do.
    #[n(1)]
    pub spec: Box<JobSpec>,
    /// Hash of the body as its submitter sent it, where names in it were resolved since. None if none were.
    #[n(2)]
    pub asked: Option<u64>,
    /// Which rules it follows ([`JOB_RULES`](super::JOB_RULES)), as the node that takes it says; none is the first ones.
    #[n(3)]
    pub rules: Option<u32>,
}

impl SubmitJob {
    /// An order as a client gives it.
    pub fn new(id: JobId, spec: JobSpec) -> SubmitJob {
        SubmitJob { id, spec: Box::new(spec), asked: None, rules: None }
    }

    /// Has the job follow the newest rules; for nodes that know that all others know them.
    pub fn follow_newest_rules(&mut self) {
        self.rules = Some(JOB_RULES);
    }

    /// Has it known by another order, which is the same before names in it were resolved: what they stand for may have
    /// changed when it is sent again (TQ-21).
    pub fn keep_asked(&mut self, asked: &SubmitJob) {
        let known_as = asked.body_hash();
        if self.body_hash() != known_as {
            self.asked = Some(known_as);
        }
    }

    /// Has it known by its whole body, as older programs know it.
    pub fn forget_asked(&mut self) {
        self.asked = None;
    }

    /// The level that understands it.
    pub(crate) fn level(&self) -> u32 {
        let newest = self.asked.is_some() || self.rules.is_some();
        self.spec.level().max(u32::from(newest))
    }

    /// Hash of the order as the client gave it: a resend may come by way of another node.
    pub(crate) fn body_hash(&self) -> u64 {
        if let Some(asked) = self.asked {
            return asked;
        }
        let mut bytes = Vec::with_capacity(512);
        match self.rules {
            None => encode_into(self, &mut bytes),
            Some(_) => encode_into(&SubmitJob { rules: None, ..self.clone() }, &mut bytes),
        }
        xxh3_64_with_seed(&bytes, 110)
    }
}

impl Shard {
    pub(crate) fn apply_submit_job(&mut self, namespace: &Namespace, order: SubmitJob) -> Reply {
        match self.submit_job(namespace, order) {
            Ok(created) => Reply::JobSubmitted { created },
            Err(code) => Reply::refused(code),
        }
    }

    fn submit_job(&mut self, namespace: &Namespace, order: SubmitJob) -> Result<bool, RefusalCode> {
        let body_hash = order.body_hash();
        if let Some(known) = self.job(namespace, &order.id) {
            return match known.body_hash == body_hash {
                true => Ok(false),
                false => Err(RefusalCode::Conflict),
            };
        }
        order.spec.check(&order.id, &self.core.limits)?;
        let spec = SharedSpec::from(*order.spec);
        let bytes = self.index.job_bytes + spec.bytes;
        if self.core.jobs.len() >= JOBS_MAX || bytes > JOBS_BYTES_MAX {
            return Err(RefusalCode::TooManyJobs);
        }
        let queue = self.open_queue(namespace, &spec.queue)?;
        if !self.index.lines[queue as usize].has_room_for(&spec.labels) {
            return Err(RefusalCode::TooManyLabelSets);
        }
        let progress = Progress {
            state: JobState::Running,
            stages: vec![StageProgress::default(); spec.stages.len()],
            submitted_ms: self.core.time_ms,
            started_ms: 0,
            finished_ms: 0,
            reason: None,
            result: None,
            result_of: None,
            revision: 1,
        };
        let (namespace, id, rules) = (namespace.clone(), order.id, order.rules);
        self.put_job(Job { namespace, id, spec, body_hash, progress, rules });
        Ok(true)
    }
}
