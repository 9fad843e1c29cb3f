//! What a job is to do: its stages, where their tasks read from, and when a stage is settled. Never changes.

use minicbor::{Decode, Encode};

use crate::limits::{
    DUPLICATE_FACTORS, JOB_INPUTS_MAX, JOB_NAME_BYTES_MAX, JOB_SPEC_BYTES_MAX, JOB_STAGES_MAX,
    JOB_TASKS_MAX, Limits, PRIORITY_MAX, SHUFFLE_TASKS_MAX, TIMEOUT_MS_MAX,
};
use crate::task::Work;
use crate::{
    Backoff, Input, JobId, JobPart, Labels, ObjectName, ProgramRef, QueueName, RefusalCode,
    StageName,
};

/// When a stage is settled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub enum Settle {
    /// All its tasks are done.
    #[n(0)]
    #[default]
    All,
    /// One task is done; the others are cancelled.
    #[n(1)]
    Any,
    /// So many tasks are done; the others are cancelled.
    #[n(2)]
    Quorum(#[n(0)] u32),
}

/// Where the tasks of a stage read from, and by it how many there are.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum StageSource {
    /// One task per input.
    #[n(0)]
    Inputs(#[n(0)] Vec<Input>),
    /// One task per part of a range of numbers; each reads its part from a file `range`.
    #[n(1)]
    Range {
        /// First number.
        #[n(0)]
        from: u64,
        /// The number after the last.
        #[n(1)]
        to: u64,
        /// Numbers per task.
        #[n(2)]
        step: u64,
    },
    /// One task per so many tasks of earlier stages; each reads all that they brought.
    #[n(2)]
    Gather {
        /// The stages, by place.
        #[n(0)]
        of: Vec<u16>,
        /// Tasks per task; 0 is all.
        #[n(1)]
        fan_in: u32,
    },
    /// One task per partition; the task of partition p reads the output `part-p` of every task of the earlier stages.
    #[n(3)]
    Shuffle {
        /// The stages, by place.
        #[n(0)]
        of: Vec<u16>,
        /// How many partitions.
        #[n(1)]
        partitions: u32,
    },
}

/// One stage.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct StageSpec {
    /// Its name.
    #[n(0)]
    pub name: StageName,
    /// What its tasks run.
    #[n(1)]
    pub program: ProgramRef,
    /// Settings for them, sorted by name.
    #[n(2)]
    pub settings: Vec<(String, String)>,
    /// Where they read from.
    #[n(3)]
    pub source: StageSource,
    /// Stages that must be settled first, besides those that it reads from; by place.
    #[n(4)]
    pub after: Vec<u16>,
    /// When it is settled.
    #[n(5)]
    pub settle: Settle,
}

impl StageSpec {
    /// Stages that it reads from, by place.
    pub fn reads(&self) -> &[u16] {
        match &self.source {
            StageSource::Gather { of, .. } | StageSource::Shuffle { of, .. } => of,
            StageSource::Inputs(_) | StageSource::Range { .. } => &[],
        }
    }

    /// How many tasks it has, given how many the stages before it have.
    fn count(&self, before: &[u32]) -> u32 {
        match &self.source {
            StageSource::Inputs(inputs) => inputs.len() as u32,
            StageSource::Range { from, to, step } => {
                let numbers = to.saturating_sub(*from);
                u32::try_from(numbers.div_ceil((*step).max(1))).unwrap_or(u32::MAX)
            }
            StageSource::Gather { fan_in: 0, .. } => 1,
            StageSource::Gather { of, fan_in } => {
                let counts = of.iter().filter_map(|stage| before.get(usize::from(*stage)));
                counts.fold(0u32, |sum, count| sum.saturating_add(*count)).div_ceil(*fan_in)
            }
            StageSource::Shuffle { partitions, .. } => *partitions,
        }
    }
}

/// A whole job.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct JobSpec {
    /// A name for people; need not be unique.
    #[n(0)]
    pub name: String,
    /// The queue of its tasks.
    #[n(1)]
    pub queue: QueueName,
    /// Its stages; each reads only from stages before it.
    #[n(2)]
    pub stages: Vec<StageSpec>,
    /// Priority of its tasks.
    #[n(3)]
    pub priority: Option<u8>,
    /// Most attempts of a task.
    #[n(4)]
    pub max_attempts: Option<u16>,
    /// Claim lifetime of its tasks.
    #[n(5)]
    pub ttl_ms: Option<u32>,
    /// Longest time for an attempt.
    #[n(6)]
    pub timeout_ms: Option<u32>,
    /// Delay between attempts.
    #[n(7)]
    pub backoff: Option<Backoff>,
    /// What the workers must have.
    #[n(8)]
    pub labels: Labels,
    /// How long the finished job and its outputs are kept.
    #[n(9)]
    pub retention_ms: u64,
    /// Whether results of the same work may be used instead of running it; none is no.
    #[n(10)]
    pub reuse: Option<bool>,
    /// A task that runs this many times as long as its finished brothers did on average is begun a second time beside
    /// the first; none is never.
    #[n(11)]
    pub duplicate_after: Option<u16>,
    /// An address below which workers bring what the last stages make; none for objects of the cluster.
    #[n(12)]
    pub output_url: Option<String>,
}

impl JobSpec {
    /// How many tasks a stage has.
    pub fn count(&self, stage: usize) -> u32 {
        let Some(spec) = self.stages.get(stage) else {
            return 0;
        };
        match &spec.source {
            StageSource::Gather { fan_in: 1.., .. } => {
                // From the first stage on: by recursion, stages that each read from all before would double the work.
                let mut before = Vec::with_capacity(stage);
                for spec in &self.stages[..stage] {
                    before.push(spec.count(&before));
                }
                spec.count(&before)
            }
            _ => spec.count(&[]),
        }
    }

    /// How many tasks some earlier stages have together.
    pub(crate) fn read_count(&self, of: &[u16]) -> u32 {
        let counts = of.iter().map(|stage| self.count(usize::from(*stage)));
        counts.fold(0, u32::saturating_add)
    }

    /// How many earlier tasks each task of a stage reads from.
    pub(crate) fn reads_each(&self, stage: usize) -> u32 {
        match self.stages.get(stage).map(|spec| &spec.source) {
            Some(StageSource::Gather { fan_in: each @ 1.., .. }) => *each,
            Some(StageSource::Gather { of, .. } | StageSource::Shuffle { of, .. }) => {
                self.read_count(of)
            }
            _ => 0,
        }
    }

    /// Whether no other stage reads from a stage or waits for it: what it brings is the job's result.
    pub fn is_final(&self, stage: usize) -> bool {
        let named = |other: &StageSpec| {
            other.reads().iter().chain(&other.after).any(|place| usize::from(*place) == stage)
        };
        !self.stages.iter().any(named)
    }

    /// What task number `index` of a stage runs, but for its inputs.
    pub(crate) fn work(&self, job: &JobId, stage: usize, index: u32, inputs: Vec<Input>) -> Work {
        let spec = &self.stages[stage];
        Work {
            program: spec.program.clone(),
            settings: spec.settings.clone(),
            inputs,
            job: Some(JobPart { job: job.clone(), stage: spec.name.clone(), index, twin: None }),
            reuse: self.reuse,
            // What other stages read stays in the cluster.
            output_url: self.output_url.clone().filter(|_| self.is_final(stage)),
        }
    }

    /// The level that understands it.
    pub(crate) fn level(&self) -> u32 {
        let inputs = self.stages.iter().filter_map(|stage| match &stage.source {
            StageSource::Inputs(inputs) => inputs.iter().map(Input::level).max(),
            _ => None,
        });
        let own = [self.reuse.is_some(), self.duplicate_after.is_some(), self.output_url.is_some()];
        inputs.max().unwrap_or(0).max(u32::from(own.contains(&true)))
    }

    /// Checks every bound.
    pub(crate) fn check(&self, job: &JobId, limits: &Limits) -> Result<(), RefusalCode> {
        if self.stages.len() > JOB_STAGES_MAX || self.name.len() > JOB_NAME_BYTES_MAX {
            return Err(RefusalCode::TooLarge);
        }
        let lifetimes = limits.ttl_ms_min..=limits.ttl_ms_max;
        let attempts = 1..=limits.attempts_max;
        let fits = !self.stages.is_empty()
            && self.priority.is_none_or(|priority| priority <= PRIORITY_MAX)
            && self.max_attempts.is_none_or(|count| attempts.contains(&count))
            && self.ttl_ms.is_none_or(|ttl_ms| lifetimes.contains(&ttl_ms))
            && self.timeout_ms.is_none_or(|timeout_ms| timeout_ms <= TIMEOUT_MS_MAX)
            && self.backoff.is_none_or(|backoff| backoff.base_ms <= backoff.cap_ms)
            && self.retention_ms <= limits.delay_ms_max
            && self.duplicate_after.is_none_or(|factor| DUPLICATE_FACTORS.contains(&factor))
            && self.labels.len() <= crate::limits::LABELS_WANTED_MAX;
        if !fits {
            return Err(RefusalCode::BadValue);
        }
        let (mut tasks, mut bytes) = (0u64, 0);
        for stage in 0..self.stages.len() {
            bytes += self.check_stage(job, stage)?;
            tasks += u64::from(self.count(stage));
        }
        match tasks > u64::from(JOB_TASKS_MAX) || bytes > JOB_SPEC_BYTES_MAX {
            true => Err(RefusalCode::TooLarge),
            false => Ok(()),
        }
    }

    /// Checks one stage; tells its size in bytes.
    fn check_stage(&self, job: &JobId, stage: usize) -> Result<usize, RefusalCode> {
        let spec = &self.stages[stage];
        let doubled = self.stages[..stage].iter().any(|before| before.name == spec.name);
        let mut named = spec.reads().iter().chain(&spec.after);
        let earlier = named.all(|place| usize::from(*place) < stage);
        let count = self.count(stage);
        let settles = match spec.settle {
            Settle::All | Settle::Any => true,
            Settle::Quorum(wanted) => (1..=count).contains(&wanted),
        };
        if doubled || !earlier || count == 0 || !settles {
            return Err(RefusalCode::BadValue);
        }
        self.work(job, stage, 0, Vec::new()).check()?;
        match &spec.source {
            StageSource::Inputs(inputs) if inputs.len() > JOB_INPUTS_MAX => {
                Err(RefusalCode::TooLarge)
            }
            StageSource::Inputs(inputs) => {
                let sizes = inputs.iter().map(|input| {
                    let work = self.work(job, stage, 0, vec![input.clone()]);
                    work.check().map(|()| input.weight())
                });
                sizes.sum::<Result<usize, RefusalCode>>()
            }
            StageSource::Gather { of, .. } | StageSource::Shuffle { of, .. } if of.is_empty() => {
                Err(RefusalCode::BadValue)
            }
            StageSource::Gather { of, fan_in } => {
                let each = if *fan_in == 0 { self.read_count(of) } else { *fan_in };
                if each > SHUFFLE_TASKS_MAX { Err(RefusalCode::TooLarge) } else { Ok(0) }
            }
            StageSource::Shuffle { of, partitions } => {
                let large = self.read_count(of) > SHUFFLE_TASKS_MAX || *partitions > JOB_TASKS_MAX;
                if large { Err(RefusalCode::TooLarge) } else { Ok(0) }
            }
            StageSource::Range { .. } => Ok(0),
        }
    }

    /// The output that the task of a partition reads of each task before it.
    pub(crate) fn partition_name(partition: u32) -> Option<ObjectName> {
        ObjectName::parse(&format!("part-{partition}")).ok()
    }
}
