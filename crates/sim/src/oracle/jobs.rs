//! A naive model of jobs: what each was to do, and where each of its tasks stands.
//!
//! Fed with committed orders and with every change of a task's state, in log order. It counts all tasks anew whenever it is
//! asked, and shares no code with the product's own counts, windows and sweeps.

use std::collections::BTreeMap;

use ikada_state::{JobId, JobSpec, JobState, Settle, StageSource, TaskId, TaskState};

/// Ids of simulated jobs begin like this, and no other key does.
pub const PREFIX: &str = "job-";

/// Which part of a job a task is, read from its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The job.
    pub job: JobId,
    /// Name of the stage.
    pub stage: String,
    /// Place in the stage.
    pub index: u32,
    /// Whether it runs beside the task of that place.
    pub twin: bool,
}

impl Part {
    /// The part that a task's name tells of; none for a task of its own.
    pub fn of(id: &TaskId) -> Option<Part> {
        let job = id.key().filter(|key| key.starts_with(PREFIX))?;
        let mut words = id.bare_id().split('.');
        let (stage, index) = (words.next()?.to_owned(), words.next()?.parse().ok()?);
        Some(Part { job: JobId::parse(job).ok()?, stage, index, twin: words.next().is_some() })
    }

    /// The task beside which this one runs, or itself.
    pub fn first(&self) -> Option<TaskId> {
        TaskId::keyed(self.job.as_str(), &format!("{}.{}", self.stage, self.index)).ok()
    }
}

/// One job.
#[derive(Debug, Clone)]
pub struct KnownJob {
    /// What it is to do.
    pub spec: JobSpec,
    /// Somebody cancelled it while it ran.
    pub cancelled: bool,
    states: BTreeMap<(usize, u32), TaskState>,
    /// In which term the first task of a stage came.
    terms: BTreeMap<usize, u64>,
}

impl KnownJob {
    /// A job without tasks.
    pub fn new(spec: JobSpec) -> KnownJob {
        KnownJob { spec, cancelled: false, states: BTreeMap::new(), terms: BTreeMap::new() }
    }

    /// Place of a stage by its name.
    pub fn place(&self, stage: &str) -> Option<usize> {
        self.spec.stages.iter().position(|spec| spec.name.as_str() == stage)
    }

    /// How many tasks a stage is to have.
    pub fn size(&self, stage: usize) -> u32 {
        let of = |places: &[u16]| places.iter().map(|place| self.size(usize::from(*place))).sum();
        match &self.spec.stages[stage].source {
            StageSource::Inputs(inputs) => inputs.len() as u32,
            StageSource::Range { from, to, step } => (to - from).div_ceil(*step) as u32,
            StageSource::Gather { fan_in: 0, .. } => 1,
            StageSource::Gather { of: places, fan_in } => {
                let all: u32 = of(places);
                all.div_ceil(*fan_in)
            }
            StageSource::Shuffle { partitions, .. } => *partitions,
        }
    }

    /// How many tasks of a stage stand like this.
    pub fn count(&self, stage: usize, state: TaskState) -> u32 {
        let all = self.states.range((stage, 0)..=(stage, u32::MAX));
        all.filter(|(_, known)| **known == state).count() as u32
    }

    /// Tasks of a stage that came into being.
    pub fn born(&self, stage: usize) -> u32 {
        self.states.range((stage, 0)..=(stage, u32::MAX)).count() as u32
    }

    /// Where a task stands, if it came into being.
    pub fn state(&self, stage: usize, index: u32) -> Option<TaskState> {
        self.states.get(&(stage, index)).copied()
    }

    fn wanted(&self, stage: usize) -> u32 {
        match self.spec.stages[stage].settle {
            Settle::All => self.size(stage),
            Settle::Any => 1,
            Settle::Quorum(wanted) => wanted,
        }
    }

    /// Whether enough tasks of a stage are done.
    pub fn is_settled(&self, stage: usize) -> bool {
        self.count(stage, TaskState::Done) >= self.wanted(stage)
    }

    fn has_failed(&self, stage: usize) -> bool {
        let lost = self.count(stage, TaskState::Dead) + self.count(stage, TaskState::Cancelled);
        self.size(stage) - lost < self.wanted(stage)
    }

    /// How it stands.
    pub fn end(&self) -> JobState {
        let mut stages = 0..self.spec.stages.len();
        match () {
            () if self.cancelled => JobState::Cancelled,
            () if stages.clone().any(|stage| self.has_failed(stage)) => JobState::Error,
            () if stages.all(|stage| self.is_settled(stage)) => JobState::Done,
            () => JobState::Running,
        }
    }

    /// Whether nothing that tasks of a stage bring counts any more.
    pub fn is_closed(&self, stage: usize) -> bool {
        self.is_settled(stage) || self.end() != JobState::Running
    }
}

/// All jobs.
#[derive(Debug, Default)]
pub struct Jobs {
    /// By id.
    pub known: BTreeMap<JobId, KnownJob>,
    /// Those that a client was told of.
    pub acked: Vec<JobId>,
}

impl Jobs {
    /// The job of a part, and the place of its stage.
    pub fn find(&self, part: &Part) -> Option<(&KnownJob, usize)> {
        let job = self.known.get(&part.job)?;
        Some((job, job.place(&part.stage)?))
    }

    /// A task came in some term; tells whether the first of its stage came in another.
    pub fn born_in(&mut self, part: &Part, term: u64) -> bool {
        let job = self.known.get_mut(&part.job).filter(|_| !part.twin);
        let Some((job, stage)) = job.and_then(|job| job.place(&part.stage).map(|it| (job, it)))
        else {
            return false;
        };
        *job.terms.entry(stage).or_insert(term) != term
    }

    /// A task stands like this now. Who runs beside another is not counted: the two are one task.
    pub fn stands(&mut self, part: &Part, state: TaskState) {
        if let (false, Some(job)) = (part.twin, self.known.get_mut(&part.job))
            && let Some(stage) = job.place(&part.stage)
        {
            // What has ended stays so: nobody retries a job's task.
            let known = job.states.entry((stage, part.index)).or_insert(state);
            if !known.is_terminal() {
                *known = state;
            }
        }
    }

    /// Whether nothing that a task brings counts any more.
    pub fn is_closed(&self, part: &Part) -> bool {
        self.find(part).is_none_or(|(job, stage)| job.is_closed(stage))
    }
}
