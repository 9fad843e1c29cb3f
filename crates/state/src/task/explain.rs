//! Why a task is not running. Every reason that holds is named, the one that lasts longest first;
//! a task that may be claimed at once is next in line.
//!
//! What only a leader knows, such as whether any worker asks for the queue, is added there.

use minicbor::{Decode, Encode};

use super::{AttemptOutcome, DeadReason, Progress, Task, TaskState};
use crate::shard::Shard;
use crate::{Labels, Namespace, QueueName, TaskId, WorkerId};

/// Tasks ahead that are counted; beyond it the answer is "at least".
pub const AHEAD_MAX: u64 = 10_000;

/// One reason. Numbers are stable: nodes tell each other. A new obstacle to a claim gets a reason
/// here, a sentence in the public words, and its place in `Shard::explain`.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum WaitReason {
    /// It has ended.
    #[n(0)]
    Finished {
        /// Log time of its end.
        #[n(0)]
        at_ms: u64,
        /// Why it is dead, if it is.
        #[n(1)]
        dead: Option<DeadReason>,
    },
    /// A worker holds it.
    #[n(1)]
    Claimed {
        /// Who.
        #[n(0)]
        worker: WorkerId,
        /// Log time of the claim.
        #[n(1)]
        since_ms: u64,
    },
    /// Its queue is paused.
    #[n(2)]
    QueuePaused,
    /// Its submitter wanted it later.
    #[n(3)]
    Delayed {
        /// Log time in ms.
        #[n(0)]
        until_ms: u64,
    },
    /// It waits between two attempts.
    #[n(4)]
    BackingOff {
        /// Log time in ms.
        #[n(0)]
        until_ms: u64,
        /// Attempts that count so far.
        #[n(1)]
        attempt: u16,
    },
    /// Others of its queue come first, by priority or place in line.
    #[n(5)]
    Behind {
        /// How many.
        #[n(0)]
        count: u64,
        /// Whether there are more than were counted.
        #[n(1)]
        more: bool,
    },
    /// The next claim on its queue in this shard gets it.
    #[n(6)]
    NextInLine,
    /// No worker with a free slot has asked for its queue lately.
    #[n(7)]
    NoWorkerAsked {
        /// How long ago one last did; none if none has since this leader took over.
        #[n(0)]
        ago_ms: Option<u64>,
    },
    /// Others of its key come first, or as many of them run as may.
    #[n(8)]
    BehindKey {
        /// Most tasks of the key that this one lets run.
        #[n(0)]
        key_limit: u16,
        /// The first of those that hold the key: one that runs or waits for its retry, else the one that is next.
        #[n(1)]
        holder: Option<TaskId>,
    },
    /// Workers ask for its queue, but none that has the labels it wants.
    #[n(20)]
    NoWorkerWithLabels {
        /// What it wants.
        #[n(0)]
        labels: Labels,
    },
}

impl WaitReason {
    /// The reason as public text.
    pub fn code(&self) -> &'static str {
        match self {
            WaitReason::Finished { .. } => "finished",
            WaitReason::Claimed { .. } => "claimed",
            WaitReason::QueuePaused => "queue_paused",
            WaitReason::Delayed { .. } => "delayed",
            WaitReason::BackingOff { .. } => "backing_off",
            WaitReason::Behind { .. } => "behind",
            WaitReason::NextInLine => "next_in_line",
            WaitReason::NoWorkerAsked { .. } => "no_worker_asked",
            WaitReason::BehindKey { .. } => "behind_key",
            WaitReason::NoWorkerWithLabels { .. } => "no_worker_with_labels",
        }
    }
}

/// Why a task is where it is.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Explanation {
    /// The task.
    #[n(0)]
    pub id: TaskId,
    /// Its queue.
    #[n(1)]
    pub queue: QueueName,
    /// Where it is in its life.
    #[n(2)]
    pub state: TaskState,
    /// All reasons that hold, at least one.
    #[n(3)]
    pub reasons: Vec<WaitReason>,
    /// How far the attempt is that runs, if its worker has said so to the leader.
    #[n(4)]
    pub progress: Option<Progress>,
}

impl Shard {
    /// Why a task is not running; none if there is no such task. Bounded work.
    pub fn explain(&self, namespace: &Namespace, id: &TaskId) -> Option<Explanation> {
        let task = self.core.tasks.get(self.find_task(namespace, id)?)?;
        let queue = &self.core.queues[task.queue as usize];
        let mut reasons = Vec::new();
        if queue.settings.paused && matches!(task.state, TaskState::Scheduled | TaskState::Ready) {
            reasons.push(WaitReason::QueuePaused);
        }
        reasons.push(match task.state {
            TaskState::Done | TaskState::Dead | TaskState::Cancelled => {
                WaitReason::Finished { at_ms: task.moment_ms, dead: task.dead_reason }
            }
            TaskState::Claimed => claimed(task)?,
            TaskState::Scheduled => scheduled(task),
            TaskState::Ready => self.place_in_line(task),
        });
        Some(Explanation {
            id: task.id.clone(),
            queue: queue.name.clone(),
            state: task.state,
            reasons,
            progress: None,
        })
    }

    /// What a task wants of its worker; empty if there is no such task.
    pub fn labels_wanted(&self, namespace: &Namespace, id: &TaskId) -> Labels {
        let slot = self.find_task(namespace, id);
        let task = slot.and_then(|slot| self.core.tasks.get(slot));
        let extras = task.and_then(|task| task.extras.as_ref());
        extras.map_or_else(Labels::default, |extras| extras.labels.clone())
    }

    fn place_in_line(&self, task: &Task) -> WaitReason {
        let line = &self.index.lines[task.queue as usize];
        match line.ahead(task, AHEAD_MAX + 1) {
            None => {
                let key_limit = task.extras.as_ref().map_or(0, |extras| extras.key_limit);
                let holder = line.key_holder(task).and_then(|slot| self.core.tasks.get(slot));
                WaitReason::BehindKey { key_limit, holder: holder.map(|task| task.id.clone()) }
            }
            Some(0) => WaitReason::NextInLine,
            Some(count) => {
                WaitReason::Behind { count: count.min(AHEAD_MAX), more: count > AHEAD_MAX }
            }
        }
    }
}

fn claimed(task: &Task) -> Option<WaitReason> {
    let newest = &task.history.as_ref()?.newest;
    Some(WaitReason::Claimed { worker: newest.worker.clone(), since_ms: newest.started_ms })
}

fn scheduled(task: &Task) -> WaitReason {
    let until_ms = task.moment_ms;
    let failed = task.history.as_ref().map(|history| history.newest.outcome);
    match failed {
        Some(AttemptOutcome::Failed { .. } | AttemptOutcome::TimedOut) => {
            WaitReason::BackingOff { until_ms, attempt: task.attempt }
        }
        _ => WaitReason::Delayed { until_ms },
    }
}
