//! The one way a task changes state. Records, derived indexes, counters, hash and effects move
//! together here, so that no verb can forget one of them.

use super::{Task, TaskState};
use crate::job::JobMove;
use crate::shard::{Batch, Shard};
use crate::slots::slot_of;
use crate::{Effect, QueueHandle};

impl Shard {
    /// Adds a new task and links it.
    pub(crate) fn insert_task(&mut self, batch: &mut Batch, mut task: Task, name_hash: u64) -> u32 {
        task.digest = 0;
        let slot = self.core.tasks.insert(&mut self.index.free, task);
        self.index.task_names.insert(name_hash, slot);
        self.note_by_slot(slot);
        let Some(task) = self.core.tasks.get_mut(slot) else {
            return slot;
        };
        task.digest = task.compute_digest(slot, &mut self.scratch);
        self.core.hash.add(task.digest);
        let (queue, to) = (task.queue, task.state);
        self.index.came(queue, task.weight());
        self.index.link(slot, task);
        let freed = self.index.settle_key(task);
        let tracked = JobMove::of(task, None);
        batch.moved(task, None, Some(to));
        self.announce(batch, slot, to, freed);
        self.core.queues[queue as usize].counters.submitted += 1;
        self.mark_queue(queue);
        if let Some(change) = tracked {
            self.track_job(&change);
        }
        slot
    }

    /// Puts a task that moves in into its place, with digest and name, but no line yet.
    pub(crate) fn place_task(&mut self, task: Task, name_hash: u64) -> u32 {
        let slot = self.core.tasks.insert(&mut self.index.free, task);
        self.index.task_names.insert(name_hash, slot);
        self.note_by_slot(slot);
        if let Some(task) = self.core.tasks.get_mut(slot) {
            task.digest = task.compute_digest(slot, &mut self.scratch);
            self.core.hash.add(task.digest);
        }
        slot
    }

    /// Links a task that moved in, and tells the leader what it asks for.
    pub(crate) fn welcome(&mut self, batch: &mut Batch, slot: u32) {
        let Some(task) = self.core.tasks.get(slot) else {
            return;
        };
        self.index.link(slot, task);
        let (freed, state) = (self.index.settle_key(task), task.state);
        self.announce(batch, slot, state, freed);
    }

    /// While slots leave, notes which slot a new task is under.
    fn note_by_slot(&mut self, place: u32) {
        if let Some(by_slot) = &mut self.index.by_slot
            && let Some(task) = self.core.tasks.get(place)
        {
            let namespace = &self.core.queues[task.queue as usize].namespace;
            by_slot.note_task(slot_of(namespace, task.id.routing_key()), place);
        }
    }

    /// Changes a task and relinks it. `change` sets the new state and everything that goes with it.
    pub(crate) fn change_task(
        &mut self,
        batch: &mut Batch,
        slot: u32,
        change: impl FnOnce(&mut Task),
    ) {
        let Some(task) = self.core.tasks.get_mut(slot) else {
            return;
        };
        let (from, fence_before) = (task.state, task.fence);
        self.index.unlink(slot, task);
        let weight_before = task.weight();
        self.core.hash.remove(task.digest);
        change(task);
        task.digest = task.compute_digest(slot, &mut self.scratch);
        self.core.hash.add(task.digest);
        self.index.link(slot, task);
        let freed = self.index.settle_key(task);
        let (queue, to, weight) = (task.queue, task.state, task.weight());
        let tracked = JobMove::of(task, Some(from));
        batch.moved(task, Some(from), Some(to));
        if let Some(change) = &tracked {
            self.track_job(change);
        }
        match from.is_terminal() {
            true => self.index.finished_bytes -= weight_before,
            false => self.index.went(queue, weight_before),
        }
        if from == TaskState::Claimed {
            batch.tell(Effect::Released { slot, fence: fence_before });
            if !self.core.bindings.is_empty() {
                self.end_bindings(batch, slot);
            }
        }
        if to.is_terminal() {
            self.index.finished_bytes += weight;
            let counters = &mut self.core.queues[queue as usize].counters;
            match to {
                TaskState::Done => counters.done += 1,
                TaskState::Dead => counters.dead += 1,
                _ => counters.cancelled += 1,
            }
            self.mark_queue(queue);
            if freed {
                self.wake(batch, queue);
            }
            self.retain_after_finish(batch, queue);
        } else {
            self.index.came(queue, weight);
            self.announce(batch, slot, to, freed);
        }
        if let Some(part) = tracked.as_ref().and_then(JobMove::ended_part) {
            self.note_ended(batch, queue, part);
        }
    }

    /// Removes a finished task for good.
    pub(crate) fn remove_task(&mut self, batch: &mut Batch, slot: u32) {
        let Some(task) = self.core.tasks.remove(&mut self.index.free, slot) else {
            return;
        };
        self.index.unlink(slot, &task);
        self.index.settle_key(&task);
        self.withdraw_outputs(&task);
        let namespace = &self.core.queues[task.queue as usize].namespace;
        let name_hash = crate::ids::task_hash(namespace.as_str(), task.id.as_str());
        self.index.task_names.remove(name_hash, slot);
        self.core.hash.remove(task.digest);
        if task.state.is_terminal() {
            self.index.finished_bytes -= task.weight();
        } else {
            self.index.went(task.queue, task.weight());
        }
        self.core.queues[task.queue as usize].counters.removed += 1;
        self.mark_queue(task.queue);
        self.remember_gone(&task);
        self.remember_settled(&task);
        batch.moved(&task, Some(task.state), None);
    }

    /// Tells the leader what a task in its new state asks for. `freed` says that the task's key let
    /// a task go, this one or another.
    fn announce(&self, batch: &mut Batch, slot: u32, state: TaskState, freed: bool) {
        let Some(task) = self.core.tasks.get(slot) else {
            return;
        };
        if freed || state == TaskState::Ready && task.ordering_key().is_none() {
            self.wake(batch, task.queue);
        }
        match state {
            TaskState::Scheduled => {
                batch.tell(Effect::Scheduled { at_ms: task.moment_ms });
            }
            TaskState::Claimed => {
                let (fence, ttl_ms, timeout_ms) = (task.fence, task.ttl_ms, task.timeout_ms());
                if let Some(history) = &task.history {
                    let session = history.newest.session;
                    batch.tell(Effect::Claimed { slot, fence, session, ttl_ms, timeout_ms });
                }
            }
            _ => {}
        }
    }

    /// Wakes parked claims of a queue, once per entry, unless it is paused.
    pub(crate) fn wake(&self, batch: &mut Batch, queue: u32) {
        if self.core.queues[queue as usize].settings.paused {
            return;
        }
        if batch.woken.insert(queue) {
            batch.tell(Effect::Ready { queue: QueueHandle(queue) });
        }
    }
}
