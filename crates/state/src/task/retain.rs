//! Removes finished tasks: by count when another one finishes, by age a few queues per entry, and
//! by the shard's own bounds on number and bytes, oldest first. A task with a retention of its own
//! is kept that long whatever the others do, within the shard's bounds. Dead tasks, once they are
//! kept apart, go by their own age alone, and by the shard's bounds only when nothing else is left
//! to go. Counters outlive the records (TQ-25), and names do for a while (`dedup/gone.rs`).

use crate::planted::{self, Bug};
use crate::shard::{Batch, Shard};

/// Removals by count per finished task: more than one, so that a lowered setting is caught up with.
const REMOVALS_PER_FINISH: u32 = 4;

impl Shard {
    /// Keeps a queue's count and the shard's bounds after a task finished.
    pub(crate) fn retain_after_finish(&mut self, batch: &mut Batch, queue: u32) {
        let kept_max = self.core.queues[queue as usize].settings.retention_count as usize;
        for _ in 0..REMOVALS_PER_FINISH {
            if self.index.lines[queue as usize].finished.len() <= kept_max {
                break;
            }
            self.remove_oldest_of(batch, queue);
        }
        let limits = &self.core.limits;
        let (tasks_max, bytes_max) = (limits.finished_tasks_max, limits.finished_bytes_max);
        while self.index.finished_count() > tasks_max || self.index.finished_bytes > bytes_max {
            let Some(slot) = self.first_to_go() else {
                return;
            };
            self.remove_task(batch, slot);
        }
    }

    /// What the shard can best do without: the oldest that is not dead, else the oldest of the dead, which is counted.
    fn first_to_go(&mut self) -> Option<u32> {
        if let Some((_, slot)) = self.index.finished.first() {
            return Some(slot);
        }
        let (_, slot) = self.index.dead.first()?;
        let queue = self.core.tasks.get(slot)?.queue;
        let counters = &mut self.core.queues[queue as usize].counters;
        counters.dead_dropped = Some(counters.dead_dropped.unwrap_or(0) + 1);
        Some(slot)
    }

    /// Removes aged tasks of a few queues; the next entry goes on with the next queues.
    pub(crate) fn retain_by_age(&mut self, batch: &mut Batch) {
        let queues = self.core.queues.len() as u32;
        let limits = &self.core.limits;
        let mut left = limits.retain_per_entry_max;
        let queues_max = limits.retain_queues_per_entry_max;
        while left > 0
            && let Some((&(until_ms, _), &slot)) = self.index.kept.first_key_value()
            && until_ms <= self.core.time_ms
        {
            self.remove_task(batch, slot);
            left -= 1;
        }
        for _ in 0..queues_max.min(queues) {
            let queue = self.core.retain_cursor % queues;
            while left > 0 && self.has_aged(queue) {
                self.remove_oldest_of(batch, queue);
                left -= 1;
            }
            while left > 0
                && let Some(slot) = self.aged_dead(queue)
            {
                self.remove_task(batch, slot);
                left -= 1;
            }
            if left == 0 {
                return;
            }
            self.core.retain_cursor = (queue + 1) % queues;
        }
    }

    fn has_aged(&self, queue: u32) -> bool {
        let settings = &self.core.queues[queue as usize].settings;
        let line = &self.index.lines[queue as usize];
        let too_many = line.finished.len() > settings.retention_count as usize;
        let oldest = line.finished.first().and_then(|(_, slot)| self.core.tasks.get(slot));
        oldest.is_some_and(|task| {
            let kept_until_ms = task.moment_ms.saturating_add(settings.retention_ms);
            too_many || kept_until_ms <= self.core.time_ms
        })
    }

    /// The oldest dead task of a queue, if its time is over.
    fn aged_dead(&self, queue: u32) -> Option<u32> {
        let (_, slot) = self.index.lines[queue as usize].dead.first()?;
        let kept_ms = self.core.queues[queue as usize].settings.dead_retention_ms();
        let kept_until_ms = self.core.tasks.get(slot)?.moment_ms.saturating_add(kept_ms);
        (kept_until_ms <= self.core.time_ms).then_some(slot)
    }

    fn remove_oldest_of(&mut self, batch: &mut Batch, queue: u32) {
        let line = &self.index.lines[queue as usize];
        if planted::active(Bug::RetentionRemovesLive)
            && let Some(slot) = line.first_ready(&crate::Labels::default())
        {
            self.remove_task(batch, slot);
            return;
        }
        if planted::active(Bug::DeadPushedOut)
            && let Some((_, slot)) = line.dead.first()
        {
            self.remove_task(batch, slot);
            return;
        }
        if let Some((_, slot)) = line.finished.first() {
            self.remove_task(batch, slot);
        }
    }
}
