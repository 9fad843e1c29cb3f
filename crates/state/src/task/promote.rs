//! Makes due tasks ready at the start of each entry, earliest first, in bounded steps. Log time
//! decides what is due, so every replica promotes the same tasks at the same entry.

use super::TaskState;
use crate::shard::{Batch, Shard};

impl Shard {
    pub(crate) fn promote_due(&mut self, batch: &mut Batch) {
        let now_ms = self.core.time_ms;
        for _ in 0..self.core.limits.promote_per_entry_max {
            let Some((due_ms, slot)) = self.index.first_scheduled() else {
                return;
            };
            if due_ms > now_ms {
                return;
            }
            let sequence = self.next_sequence();
            self.change_task(batch, slot, |task| {
                task.state = TaskState::Ready;
                task.sequence = sequence;
                task.moment_ms = now_ms;
            });
        }
    }

    /// Log time at which the next scheduled task is due, the next deadline is over, or a job wants to go on: a leader
    /// proposes a batch then.
    pub fn next_scheduled_ms(&self) -> Option<u64> {
        let due = self.index.first_scheduled().map(|(due_ms, _)| due_ms);
        let deadline = self.index.first_deadline().map(|(deadline_ms, _)| deadline_ms);
        due.into_iter().chain(deadline).chain(self.next_job_ms()).min()
    }
}
