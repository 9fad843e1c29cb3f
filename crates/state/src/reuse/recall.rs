//! A new task asks for the result of the same work, and is done with it if there is one. Whoever asked in vain is ready.

use minicbor::{Decode, Encode};

use super::Stored;
use crate::limits::RECALL_WAIT_MS;
use crate::outbox::Message;
use crate::shard::{Batch, Shard};
use crate::task::{Attempt, AttemptOutcome, Brought, Task, TaskState};
use crate::{Digest, Namespace, SessionId, ShardId, TaskId, WorkerId};

/// Who is recorded to have done what was not done again.
pub(crate) const REUSED_WORKER: &str = "reused";

/// "What did this work bring?"
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Recall {
    /// Whose work it is.
    #[n(0)]
    pub namespace: Namespace,
    /// The task that asks.
    #[n(1)]
    pub task: TaskId,
    /// Digest of its work.
    #[n(2)]
    pub key: Digest,
    /// The shard of the task.
    #[n(3)]
    pub home: ShardId,
}

impl Shard {
    /// Where a new task with this work looks for a result: nowhere, here, or in another shard.
    pub(crate) fn recall_first(&self, task: &Task) -> Option<(Digest, ShardId)> {
        if task.state != TaskState::Ready {
            return None;
        }
        task.reuse_key().map(|key| (key, self.memory_of(&key)))
    }

    /// Lets a new task, which waits if the memory is elsewhere, look for its result.
    pub(crate) fn recall_result(
        &mut self,
        batch: &mut Batch,
        slot: u32,
        key: Digest,
        memory: ShardId,
    ) {
        let Some(task) = self.core.tasks.get(slot) else {
            return;
        };
        let namespace = self.core.queues[task.queue as usize].namespace.clone();
        let recall = Recall { namespace, task: task.id.clone(), key, home: self.core.shard };
        if memory == self.core.shard {
            let stored = self.remembered(&recall.namespace, &key).cloned();
            return self.take_recalled(batch, &recall, stored.as_ref());
        }
        let asked = Message::Recall(Box::new(recall.clone()));
        if !self.send_about_results(batch, memory, asked) {
            self.take_recalled(batch, &recall, None);
        }
    }

    /// Answers a question of another shard.
    pub(crate) fn take_recall(&mut self, batch: &mut Batch, recall: &Recall) {
        let stored = self.remembered(&recall.namespace, &recall.key).cloned().map(Box::new);
        if recall.home == self.core.shard || !self.may_exist(recall.home) {
            return;
        }
        // Without room for the answer the task goes on by itself when its wait is over.
        let answer = Message::Recalled { recall: Box::new(recall.clone()), stored };
        self.send_about_results(batch, recall.home, answer);
    }

    /// An answer came: the task is done with it, or ready to run.
    pub(crate) fn take_recalled(
        &mut self,
        batch: &mut Batch,
        recall: &Recall,
        stored: Option<&Stored>,
    ) {
        let (namespace, id) = (&recall.namespace, &recall.task);
        if let Some(target) = self.forwarding(namespace, id.routing_key()) {
            let (recall, stored) = (Box::new(recall.clone()), stored.cloned().map(Box::new));
            self.send_about_results(batch, target, Message::Recalled { recall, stored });
            return;
        }
        let Some(slot) = self.find_task(namespace, id) else {
            return;
        };
        // Somebody may have taken it meanwhile, or it is another task of that name.
        let waits = self.core.tasks.get(slot).is_some_and(|task| {
            let open = matches!(task.state, TaskState::Scheduled | TaskState::Ready);
            open && task.history.is_none() && task.reuse_key() == Some(recall.key)
        });
        if !waits {
            return;
        }
        if stored.is_none_or(|stored| !self.use_again(batch, namespace, slot, stored)) {
            self.go_ahead(batch, slot);
        }
    }

    /// Does a task with what is remembered; tells whether that went.
    fn use_again(
        &mut self,
        batch: &mut Batch,
        namespace: &Namespace,
        slot: u32,
        stored: &Stored,
    ) -> bool {
        let objects = self.prepare_outputs(slot, stored.outputs.clone(), None);
        let follow_ups = self.follow_ups(namespace, slot, None);
        let open = self.check_job_open(slot);
        let (Ok(objects), Ok(follow_ups), Ok(())) = (objects, follow_ups, open) else {
            return false;
        };
        let (Ok(worker), Some(fence)) = (WorkerId::parse(REUSED_WORKER), self.next_fence()) else {
            return false;
        };
        let now_ms = self.core.time_ms;
        let attempt = Attempt {
            fence,
            worker,
            session: SessionId::default(),
            started_ms: now_ms,
            ended_ms: 0,
            outcome: AttemptOutcome::Running,
            error: None,
        };
        // Only programs that know of reuse come here, and those know of digests.
        let (result, keeps_digest) = (stored.result.clone(), true);
        let brought = Brought { result, objects, follow_ups, keeps_digest };
        self.settle_done(batch, namespace, slot, brought, Some(attempt));
        true
    }

    /// Ends the wait of a task that asked in vain.
    fn go_ahead(&mut self, batch: &mut Batch, slot: u32) {
        let waits = |task: &Task| task.state == TaskState::Scheduled;
        if !self.core.tasks.get(slot).is_some_and(waits) {
            return;
        }
        let (sequence, now_ms) = (self.next_sequence(), self.core.time_ms);
        self.change_task(batch, slot, |task| {
            task.state = TaskState::Ready;
            task.sequence = sequence;
            task.moment_ms = now_ms;
        });
    }
}

impl Task {
    /// Makes a ready task wait for an answer of another shard.
    pub(crate) fn wait_for_recall(&mut self, now_ms: u64) {
        self.state = TaskState::Scheduled;
        self.moment_ms = now_ms.saturating_add(RECALL_WAIT_MS);
    }
}
