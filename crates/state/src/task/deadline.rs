//! Deadlines: a task that nobody has claimed by its deadline is dead. Looked at when each entry
//! begins, in bounded steps, and again by claims, so that no task is ever handed out late.

use super::{DeadReason, TaskState};
use crate::shard::{Batch, Shard};

impl Shard {
    /// Ends the waiting tasks whose deadline is over.
    pub(crate) fn pass_deadlines(&mut self, batch: &mut Batch) {
        for _ in 0..self.core.limits.promote_per_entry_max {
            match self.index.first_deadline() {
                Some((deadline_ms, slot)) if deadline_ms <= self.core.time_ms => {
                    self.pass_deadline(batch, slot);
                }
                _ => return,
            }
        }
    }

    /// Ends one waiting task.
    pub(crate) fn pass_deadline(&mut self, batch: &mut Batch, slot: u32) {
        let (sequence, now_ms) = (self.next_sequence(), self.core.time_ms);
        self.change_task(batch, slot, |task| {
            task.state = TaskState::Dead;
            task.dead_reason = Some(DeadReason::DeadlinePassed);
            task.sequence = sequence;
            task.moment_ms = now_ms;
        });
    }

    /// Whether a task may not be claimed any more at a log time.
    pub(crate) fn is_late(&self, slot: u32, at_ms: u64) -> bool {
        let deadline_ms = self.core.tasks.get(slot).map_or(0, |task| task.deadline_ms());
        deadline_ms > 0 && deadline_ms <= at_ms
    }
}
