//! `Claim`: hands the next ready tasks to a worker in one command; never read-then-claim (TQ-16).
//!
//! Within a queue: higher priority first, then first come first served (Q11). Over several queues:
//! one task from each in turn, beginning at another queue each time. Every grant raises the grant
//! counter, so that its fence exceeds all before it (Q3). Attempts are counted here, not at failure
//! (F-22). Who has a task's program or inputs may be handed it a little early (`near.rs`).

use std::sync::Arc;

use minicbor::{Decode, Encode};
use xxhash_rust::xxh3::Xxh3;

use super::{Attempt, AttemptOutcome, History, Task, TaskState};
use crate::dedup::GrantMark;
use crate::limits::{HOLDS_MAX, LABELS_OFFERED_MAX};
use crate::planted::{self, Bug};
use crate::shard::{Batch, Shard};
use crate::{
    Audience, Fence, Grant, Labels, Namespace, QueueName, RefusalCode, Reply, SessionId, WorkerId,
};

/// Asks for ready tasks.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Claim {
    /// Who will run them.
    #[n(0)]
    pub worker: WorkerId,
    /// Which run of that worker.
    #[n(1)]
    pub session: SessionId,
    /// Where to look; at least one.
    #[n(2)]
    pub queues: Vec<QueueName>,
    /// Most tasks wanted, from 1.
    #[n(3)]
    pub max: u32,
    /// What the worker has; a task is granted only if it wants nothing else.
    #[n(4)]
    #[cbor(default)]
    pub labels: Labels,
    /// Most tasks handed out this time, from 1, so that others who wait get some; none if there are enough for all. The
    /// leader says so.
    #[n(5)]
    pub share: Option<u32>,
    /// Marks of the digests of programs and inputs that the worker has at hand; none if it says nothing.
    #[n(6)]
    pub holds: Option<Vec<u64>>,
}

impl Claim {
    /// The level that understands it.
    pub(crate) fn level(&self) -> u32 {
        u32::from(self.share.is_some() || self.holds.is_some())
    }

    /// Most tasks handed out this time.
    fn most(&self) -> usize {
        self.share.unwrap_or(self.max).min(self.max) as usize
    }

    /// Hash of what is asked for. Who else waits and what the worker has by now differ between a claim and its resend.
    pub(crate) fn body_hash(&self) -> u64 {
        let mut hasher = Xxh3::with_seed(u64::from(self.max));
        hasher.update(&self.session.0.to_le_bytes());
        for name in [self.worker.as_str()].into_iter().chain(self.queues.iter().map(|q| q.as_str()))
        {
            hasher.update(name.as_bytes());
            hasher.update(b"/");
        }
        for (name, value) in self.labels.pairs() {
            for text in [name.as_str(), "=", value.as_str(), ","] {
                hasher.update(text.as_bytes());
            }
        }
        hasher.digest()
    }
}

impl Shard {
    pub(crate) fn apply_claim(
        &mut self,
        batch: &mut Batch,
        namespace: &Namespace,
        request: Option<[u64; 2]>,
        voided: bool,
        order: &Claim,
    ) -> Reply {
        let body_hash = order.body_hash();
        match request.and_then(|key| self.recall_claim(key, body_hash)) {
            Some(Ok(grants)) => return self.repeat_grants(batch, order, &grants),
            Some(Err(code)) => return Reply::refused(code),
            None if voided => return Reply::refused(RefusalCode::RequestVoided),
            None => {}
        }
        match self.claim(batch, namespace, order) {
            Err(code) => Reply::refused(code),
            Ok(marks) => {
                let reply = self.repeat_grants(batch, order, &marks);
                // An empty answer is not remembered: the same request may wait for work and ask
                // again.
                if let (Some(key), false) = (request, marks.is_empty()) {
                    self.remember_claim(key, body_hash, marks);
                }
                reply
            }
        }
    }

    fn claim(
        &mut self,
        batch: &mut Batch,
        namespace: &Namespace,
        order: &Claim,
    ) -> Result<Vec<GrantMark>, RefusalCode> {
        let limits = &self.core.limits;
        let bounded = (1..=limits.claim_tasks_max).contains(&order.max) && order.share != Some(0);
        if order.queues.is_empty() || !bounded {
            return Err(RefusalCode::BadValue);
        }
        if order.queues.len() > limits.claim_queues_max as usize
            || order.labels.len() > LABELS_OFFERED_MAX
            || order.holds.as_ref().is_some_and(|holds| holds.len() > HOLDS_MAX)
        {
            return Err(RefusalCode::TooLarge);
        }
        let bytes_max = limits.claim_bytes_max;
        let mut queues: Vec<u32> = Vec::with_capacity(order.queues.len());
        for name in &order.queues {
            let found = self.find_queue(namespace, name);
            queues.extend(found.filter(|queue| {
                !self.core.queues[*queue as usize].settings.paused && !queues.contains(queue)
            }));
        }
        let mut marks = Vec::new();
        if queues.is_empty() {
            return Ok(marks);
        }
        let (mut bytes, mut late_left) = (0, self.core.limits.promote_per_entry_max);
        let mut turn = (self.core.grants % queues.len() as u64) as usize;
        while !queues.is_empty() && marks.len() < order.most() && bytes < bytes_max {
            turn %= queues.len();
            let Some(slot) = self.next_near(queues[turn], order) else {
                queues.remove(turn);
                continue;
            };
            if self.is_late(slot, self.core.time_ms) {
                if late_left == 0 {
                    break;
                }
                late_left -= 1;
                self.pass_deadline(batch, slot);
                continue;
            }
            let Some(fence) = self.next_fence() else {
                if marks.is_empty() {
                    return Err(RefusalCode::FenceExhausted);
                }
                break;
            };
            bytes += self.grant(batch, slot, fence, order);
            marks.push(GrantMark { slot, fence });
            turn += 1;
        }
        Ok(marks)
    }

    /// Grants one ready task; tells the size of its payload.
    fn grant(&mut self, batch: &mut Batch, slot: u32, fence: Fence, order: &Claim) -> u64 {
        let attempt = Attempt {
            fence,
            worker: order.worker.clone(),
            session: order.session,
            started_ms: self.core.time_ms,
            ended_ms: 0,
            outcome: AttemptOutcome::Running,
            error: None,
        };
        let kept_max = self.core.limits.attempts_kept_max as usize;
        self.change_task(batch, slot, |task| start_attempt(task, attempt, kept_max));
        self.core.tasks.get(slot).map_or(0, Task::weight)
    }

    /// The next fence, or none if the counter is used up.
    pub(crate) fn next_fence(&mut self) -> Option<Fence> {
        if self.core.grants >= Fence::COUNTER_MAX {
            return None;
        }
        self.core.grants += 1;
        Some(Fence::new(self.core.epoch, self.core.grants))
    }

    /// The grants that are still live, as first answered.
    fn repeat_grants(&self, batch: &Batch, order: &Claim, marks: &[GrantMark]) -> Reply {
        if batch.audience == Audience::Nobody {
            return Reply::Claimed { tasks: Vec::new() };
        }
        let live = marks.iter().filter_map(|mark| {
            let task = self.core.tasks.get(mark.slot)?;
            // A task that moved in may bear a fence that this shard gave to another.
            let session = task.history.as_ref().map(|history| history.newest.session);
            let is_live = task.state == TaskState::Claimed && task.fence == mark.fence;
            (is_live && session == Some(order.session)).then_some(task)
        });
        Reply::Claimed { tasks: live.map(|task| self.grant_of(task)).collect() }
    }

    fn grant_of(&self, task: &Task) -> Grant {
        Grant {
            id: task.id.clone(),
            queue: self.core.queues[task.queue as usize].name.clone(),
            fence: task.fence,
            attempt: task.attempt,
            max_attempts: task.max_attempts,
            ttl_ms: task.ttl_ms,
            payload: task.payload.clone(),
            timeout_ms: task.timeout_ms(),
            work: task.extras.as_ref().and_then(|extras| extras.work.clone()),
            checkpoint: task.has_checkpoint().then_some(true),
        }
    }
}

/// Begins an attempt of a task.
pub(super) fn start_attempt(task: &mut Task, attempt: Attempt, kept_max: usize) {
    task.state = TaskState::Claimed;
    task.fence = attempt.fence;
    if !planted::active(Bug::AttemptsNotCounted) {
        task.attempt = task.attempt.saturating_add(1);
    }
    match &mut task.history {
        None => {
            task.history = Some(Arc::new(History::beginning(attempt)));
        }
        Some(history) => {
            let history = Arc::make_mut(history);
            let before = std::mem::replace(&mut history.newest, attempt);
            history.earlier.push(before);
            let excess = (history.earlier.len() + 1).saturating_sub(kept_max.max(1));
            history.earlier.drain(..excess);
        }
    }
}
