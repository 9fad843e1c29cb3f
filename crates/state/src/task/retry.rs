//! `Retry`: gives a dead or cancelled task fresh attempts. It is ready at once, at the end of the
//! line (within its key, where it was submitted); what was tried before stays in its history, and
//! its fence only rises (Q3). A deadline that is over is lifted.

use std::sync::Arc;

use minicbor::{Decode, Encode};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::TaskState;
use crate::planted::{self, Bug};
use crate::shard::{Batch, Shard};
use crate::{Namespace, RefusalCode, Reply, TaskId};

/// Tries one given-up task again.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Retry {
    /// The task.
    #[n(0)]
    pub id: TaskId,
}

impl Retry {
    /// Hash of the order as given.
    pub(crate) fn body_hash(&self) -> u64 {
        xxh3_64_with_seed(self.id.as_str().as_bytes(), 9)
    }
}

impl Shard {
    pub(crate) fn apply_retry(
        &mut self,
        batch: &mut Batch,
        namespace: &Namespace,
        order: &Retry,
    ) -> Reply {
        let Some(slot) = self.find_task(namespace, &order.id) else {
            return Reply::refused(RefusalCode::TaskNotFound);
        };
        match self.retry_slot(batch, slot) {
            Ok(()) => Reply::Retried,
            Err(code) => Reply::refused(code),
        }
    }

    /// Brings the task at a slot back into line.
    pub(crate) fn retry_slot(&mut self, batch: &mut Batch, slot: u32) -> Result<(), RefusalCode> {
        let task = self.core.tasks.get(slot).ok_or(RefusalCode::TaskNotFound)?;
        match task.state {
            TaskState::Dead | TaskState::Cancelled => {}
            TaskState::Done => return Err(RefusalCode::TaskFinished),
            _ => return Err(RefusalCode::TaskNotFinished),
        }
        if task.is_part_of_job() {
            return Err(RefusalCode::JobFinished);
        }
        let queue = task.queue;
        self.check_room(task.weight())?;
        self.check_quota(&self.core.queues[queue as usize].namespace, task.weight())?;
        let pending_max = self.core.queues[queue as usize].settings.pending_max;
        if pending_max > 0 && self.index.lines[queue as usize].pending() >= pending_max {
            return Err(RefusalCode::QueueFull);
        }
        let labels = task.extras.as_ref().map(|extras| &extras.labels);
        if labels.is_some_and(|labels| !self.index.lines[queue as usize].has_room_for(labels)) {
            return Err(RefusalCode::TooManyLabelSets);
        }
        let late = self.is_late(slot, self.core.time_ms);
        let (sequence, now_ms) = (self.next_sequence(), self.core.time_ms);
        self.change_task(batch, slot, |task| {
            if let (true, Some(extras)) = (late, &mut task.extras) {
                // Whoever asks for another try knows that it is late.
                Arc::make_mut(extras).deadline_ms = 0;
            }
            task.state = TaskState::Ready;
            task.sequence = sequence;
            task.moment_ms = now_ms;
            task.dead_reason = None;
            if let Some(history) = &mut task.history {
                let spent = u32::from(task.attempt);
                let history = Arc::make_mut(history);
                history.spent = history.spent.saturating_add(spent);
            }
            if !planted::active(Bug::RetryKeepsAttempts) {
                task.attempt = 0;
            }
        });
        self.core.queues[queue as usize].counters.retried += 1;
        self.mark_queue(queue);
        Ok(())
    }
}
