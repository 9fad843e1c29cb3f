//! An independent, naive model of tasks: who holds what, how often it was tried, how it ended.
//!
//! Fed with every committed order and its reply, in log order. The task checks (Q2 to Q10) compare what the product
//! answered with what this model allows; it shares no code with the product's state machine.

use std::collections::{BTreeMap, BTreeSet};

use ikada_state::{Fence, SessionId, ShardId, TaskId, WorkerId};

/// How a task ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// Completed by this claim.
    Done(Fence),
    /// Out of attempts.
    Dead,
    /// Cancelled.
    Cancelled,
}

/// Who was granted a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The task.
    pub task: TaskId,
    /// The worker.
    pub worker: WorkerId,
    /// Its process run.
    pub session: SessionId,
    /// Shard and index of the entry that granted it, or brought it there.
    pub granted: (ShardId, u64),
    /// Lifetime.
    pub ttl_ms: u64,
    /// Longest time for the whole attempt; 0 if there is none.
    pub timeout_ms: u64,
}

/// One task.
#[derive(Debug, Clone, Default)]
pub struct ModelTask {
    /// The live claim.
    pub claim: Option<Fence>,
    /// The highest fence so far.
    pub fence_max: Fence,
    /// Claims that count.
    pub attempts: u32,
    /// Most claims that count.
    pub attempts_max: u32,
    /// Its end.
    pub end: Option<End>,
    /// Whether retention has removed it.
    pub removed: bool,
    /// How often it was created.
    pub created: u32,
}

/// All tasks and claims of all shards: they keep their names when their slots move.
#[derive(Debug, Default)]
pub struct Model {
    /// By id.
    pub tasks: BTreeMap<TaskId, ModelTask>,
    /// By task and fence: fences of different shards may be equal.
    pub holders: BTreeMap<(TaskId, Fence), Holder>,
    /// Claims that their workers ended as failed.
    pub failed: BTreeSet<(TaskId, Fence)>,
}

impl Model {
    /// A task, if it was ever seen.
    pub fn task(&self, id: &TaskId) -> Option<&ModelTask> {
        self.tasks.get(id)
    }

    /// A task to change.
    pub fn task_mut(&mut self, id: &TaskId) -> &mut ModelTask {
        self.tasks.entry(id.clone()).or_default()
    }

    /// Whether the claim `fence` of this task is live and, if a worker is named, its own.
    pub fn holds(&self, id: &TaskId, fence: Fence, worker: Option<&WorkerId>) -> bool {
        let holder = self.holders.get(&(id.clone(), fence));
        self.tasks.get(id).is_some_and(|task| task.claim == Some(fence))
            && holder.is_some_and(|h| worker.is_none_or(|w| *w == h.worker))
    }

    /// A claim was granted.
    pub fn grant(&mut self, fence: Fence, holder: Holder) {
        let task = self.task_mut(&holder.task);
        task.claim = Some(fence);
        task.fence_max = task.fence_max.max(fence);
        task.attempts += 1;
        self.holders.insert((holder.task.clone(), fence), holder);
    }

    /// The live claim of a task ended without settling it.
    pub fn release(&mut self, id: &TaskId, counted: bool) {
        let task = self.task_mut(id);
        task.claim = None;
        if !counted {
            task.attempts = task.attempts.saturating_sub(1);
        }
    }

    /// A task that had ended is tried again, with fresh attempts.
    pub fn revive(&mut self, id: &TaskId) {
        let task = self.task_mut(id);
        task.end = None;
        task.attempts = 0;
    }

    /// A task reached its end.
    pub fn settle(&mut self, id: &TaskId, end: End) {
        let task = self.task_mut(id);
        task.claim = None;
        task.end = Some(end);
    }
}
