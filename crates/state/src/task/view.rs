//! Reading tasks: one, a page of a listing, or the live claims.

use super::{Attempt, AttemptOutcome, DeadReason, History, Task, TaskState, decode_then};
use crate::ids::task_hash;
use crate::queue::QueueRecord;
use crate::shard::Shard;
use crate::{
    Backoff, Digest, Fence, Labels, Namespace, QueueName, SessionId, SharedBytes, SharedWork,
    TaskId, WorkerId,
};

/// Slots looked at per listing call, so that a rare match cannot hold up the shard.
const LIST_SLOTS_MAX: usize = 100_000;

/// One attempt as readers see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptView {
    /// Its token.
    pub fence: Fence,
    /// Who ran it.
    pub worker: WorkerId,
    /// Which run of that worker.
    pub session: SessionId,
    /// Log time of the claim.
    pub started_ms: u64,
    /// Log time of its end; none while it runs.
    pub ended_ms: Option<u64>,
    /// How it ended.
    pub outcome: AttemptOutcome,
    /// What the worker said on failure, cut short.
    pub error: Option<SharedBytes>,
}

/// One task as readers see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskView {
    /// Its owner.
    pub namespace: Namespace,
    /// Its queue.
    pub queue: QueueName,
    /// Its name.
    pub id: TaskId,
    /// Where it is in its life.
    pub state: TaskState,
    /// 0 to 9, 9 first.
    pub priority: u8,
    /// Claims that count so far.
    pub attempt: u16,
    /// Most claims that count.
    pub max_attempts: u16,
    /// Claim lifetime.
    pub ttl_ms: u32,
    /// Delay between attempts.
    pub backoff: Backoff,
    /// Most live claims of its key in its queue; 0 if no key orders or caps it.
    pub key_limit: u16,
    /// What the worker must have.
    pub labels: Labels,
    /// Longest time for a whole attempt; none if unlimited.
    pub timeout_ms: Option<u32>,
    /// Log time from which on it is not claimed.
    pub deadline_ms: Option<u64>,
    /// How long it is kept when finished; none if its queue decides.
    pub retention_ms: Option<u64>,
    /// Handles of its follow-ups.
    pub then: Vec<TaskId>,
    /// What it runs; none for a plain task.
    pub work: Option<SharedWork>,
    /// How many outputs it published.
    pub outputs: u16,
    /// Digest of them, by names and contents, if it is recorded.
    pub outputs_digest: Option<Digest>,
    /// Token of the newest claim; 0 if never claimed.
    pub fence: Fence,
    /// Log time of submission.
    pub enqueued_ms: u64,
    /// Log time at which it will be ready; only while scheduled.
    pub due_ms: Option<u64>,
    /// Log time at which it finished; only when finished.
    pub finished_ms: Option<u64>,
    /// What to do.
    pub payload: SharedBytes,
    /// What came of it; only when done.
    pub result: Option<SharedBytes>,
    /// Why it is dead; only when dead.
    pub dead_reason: Option<DeadReason>,
    /// Newest attempts, oldest first.
    pub attempts: Vec<AttemptView>,
    /// Earlier attempts that counted and are no longer kept.
    pub attempts_dropped: u32,
}

/// One live claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimView {
    /// Place of the task.
    pub slot: u32,
    /// Owner of the task.
    pub namespace: Namespace,
    /// The task.
    pub id: TaskId,
    /// Token of the claim.
    pub fence: Fence,
    /// Lifetime unless renewed.
    pub ttl_ms: u32,
    /// Longest time for the whole attempt, renewed or not; 0 if there is none.
    pub timeout_ms: u32,
    /// Who holds it.
    pub worker: WorkerId,
    /// Which run of that worker.
    pub session: SessionId,
    /// Log time of the claim.
    pub started_ms: u64,
}

/// Which tasks to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskFilter {
    /// Only of this owner.
    pub namespace: Option<Namespace>,
    /// Only of queues with this name.
    pub queue: Option<QueueName>,
    /// Only in this state.
    pub state: Option<TaskState>,
    /// Only those whose newest attempt is this worker's.
    pub worker: Option<WorkerId>,
    /// Only those with this text in their ids.
    pub find: Option<Box<str>>,
}

impl TaskFilter {
    fn admits(&self, task: &Task, queue: &QueueRecord) -> bool {
        let newest = || task.history.as_ref().map(|history| &history.newest.worker);
        self.state.is_none_or(|state| state == task.state)
            && self.namespace.as_ref().is_none_or(|wanted| *wanted == queue.namespace)
            && self.queue.as_ref().is_none_or(|wanted| *wanted == queue.name)
            && self.worker.as_ref().is_none_or(|wanted| newest() == Some(wanted))
            && self.find.as_ref().is_none_or(|text| task.id.as_str().contains(&**text))
    }
}

/// One page of a listing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskList {
    /// The tasks found; may be fewer than asked for although more follow.
    pub tasks: Vec<TaskView>,
    /// Where the next page begins; none at the end.
    pub next: Option<u32>,
}

impl Shard {
    pub(crate) fn find_task(&self, namespace: &Namespace, id: &TaskId) -> Option<u32> {
        self.find_task_hashed(namespace, id, task_hash(namespace.as_str(), id.as_str()))
    }

    pub(crate) fn find_task_hashed(
        &self,
        namespace: &Namespace,
        id: &TaskId,
        name_hash: u64,
    ) -> Option<u32> {
        self.index.task_names.find(name_hash, |slot| {
            self.core.tasks.get(slot).is_some_and(|task| {
                task.id == *id && self.core.queues[task.queue as usize].namespace == *namespace
            })
        })
    }

    /// One task.
    pub fn task(&self, namespace: &Namespace, id: &TaskId) -> Option<TaskView> {
        let slot = self.find_task(namespace, id)?;
        Some(self.task_view(self.core.tasks.get(slot)?))
    }

    /// Tasks that pass a filter, in no particular order but each once, from a place on.
    pub fn tasks(&self, filter: &TaskFilter, after: Option<u32>, limit: usize) -> TaskList {
        let first = after.unwrap_or(0);
        if filter.state != Some(TaskState::Claimed) {
            return self.pick(filter, limit, self.core.tasks.iter_from(first));
        }
        // What workers hold is little beside what waits or is kept, and has an index.
        let held = self.index.claimed.iter().skip_while(|slot| *slot < first);
        let held = held.filter_map(|slot| Some((slot, self.core.tasks.get(slot)?)));
        self.pick(filter, limit, held)
    }

    /// One page of those that pass the filter.
    fn pick<'a>(
        &'a self,
        filter: &TaskFilter,
        limit: usize,
        tasks: impl Iterator<Item = (u32, &'a Task)>,
    ) -> TaskList {
        let mut list = TaskList::default();
        for (seen, (slot, task)) in tasks.enumerate() {
            if list.tasks.len() >= limit || seen >= LIST_SLOTS_MAX {
                list.next = Some(slot);
                return list;
            }
            if filter.admits(task, &self.core.queues[task.queue as usize]) {
                list.tasks.push(self.task_view(task));
            }
        }
        list
    }

    /// All live claims by slot: a new leader gives each a fresh lifetime.
    pub fn claims(&self) -> impl Iterator<Item = ClaimView> + '_ {
        self.index.claimed.iter().filter_map(|slot| self.claim_view(slot))
    }

    /// The live claim at a slot, if it still has this fence.
    pub fn claim_at(&self, slot: u32, fence: Fence) -> Option<ClaimView> {
        self.claim_view(slot).filter(|claim| claim.fence == fence)
    }

    /// The live claim of a task, if it has one.
    pub fn claim_of(&self, namespace: &Namespace, id: &TaskId) -> Option<ClaimView> {
        self.claim_view(self.find_task(namespace, id)?)
    }

    /// Where a task is in its life.
    pub fn task_state(&self, namespace: &Namespace, id: &TaskId) -> Option<TaskState> {
        let slot = self.find_task(namespace, id)?;
        self.core.tasks.get(slot).map(|task| task.state)
    }

    fn claim_view(&self, slot: u32) -> Option<ClaimView> {
        let task = self.core.tasks.get(slot)?;
        if task.state != TaskState::Claimed {
            return None;
        }
        let newest = &task.history.as_ref()?.newest;
        Some(ClaimView {
            slot,
            namespace: self.core.queues[task.queue as usize].namespace.clone(),
            id: task.id.clone(),
            fence: task.fence,
            ttl_ms: task.ttl_ms,
            timeout_ms: task.timeout_ms(),
            worker: newest.worker.clone(),
            session: newest.session,
            started_ms: newest.started_ms,
        })
    }

    fn task_view(&self, task: &Task) -> TaskView {
        let queue = &self.core.queues[task.queue as usize];
        let history = task.history.as_ref();
        let extras = task.extras.as_ref();
        let then = extras.and_then(|extras| decode_then(extras.then.as_ref()?));
        let attempts = history
            .into_iter()
            .flat_map(|history| history.earlier.iter().chain([&history.newest]).map(attempt_view));
        TaskView {
            namespace: queue.namespace.clone(),
            queue: queue.name.clone(),
            id: task.id.clone(),
            state: task.state,
            priority: task.priority,
            attempt: task.attempt,
            max_attempts: task.max_attempts,
            ttl_ms: task.ttl_ms,
            backoff: task.backoff,
            key_limit: extras.map_or(0, |extras| extras.key_limit),
            labels: extras.map(|extras| extras.labels.clone()).unwrap_or_default(),
            timeout_ms: Some(task.timeout_ms()).filter(|timeout_ms| *timeout_ms > 0),
            deadline_ms: Some(task.deadline_ms()).filter(|deadline_ms| *deadline_ms > 0),
            retention_ms: extras.and_then(|extras| extras.retention_ms),
            then: then.into_iter().flatten().map(|task| task.id).collect(),
            work: extras.and_then(|extras| extras.work.clone()),
            outputs: history.map_or(0, |history| history.outputs),
            outputs_digest: history.and_then(|history| history.outputs_digest.as_deref().copied()),
            fence: task.fence,
            enqueued_ms: task.enqueued_ms,
            due_ms: (task.state == TaskState::Scheduled).then_some(task.moment_ms),
            finished_ms: task.state.is_terminal().then_some(task.moment_ms),
            payload: task.payload.clone(),
            result: history.and_then(|history| history.result.clone()),
            dead_reason: task.dead_reason,
            attempts: attempts.collect(),
            attempts_dropped: history.map_or(0, |history| dropped(task.attempt, history)),
        }
    }
}

/// How many of the attempts that counted are no longer kept.
fn dropped(attempt: u16, history: &History) -> u32 {
    let counts = |attempt: &&Attempt| {
        !matches!(attempt.outcome, AttemptOutcome::Unclaimed | AttemptOutcome::Outrun)
    };
    let kept = history.earlier.iter().chain([&history.newest]).filter(counts).count();
    history.spent.saturating_add(u32::from(attempt)).saturating_sub(kept as u32)
}

fn attempt_view(attempt: &Attempt) -> AttemptView {
    let running = attempt.outcome == AttemptOutcome::Running;
    AttemptView {
        fence: attempt.fence,
        worker: attempt.worker.clone(),
        session: attempt.session,
        started_ms: attempt.started_ms,
        ended_ms: (!running).then_some(attempt.ended_ms),
        outcome: attempt.outcome,
        error: attempt.error.clone(),
    }
}
