//! A slot leaves: all that is under it goes out of the state and into the outbox in one step, so that nothing of it
//! can change on the way, and a key's tasks are never in two places.

use super::BySlot;
use super::parcel::Packer;
use crate::dedup::RingEntry;
use crate::job::JobKey;
use crate::object::{ObjectKey, routing_key};
use crate::outbox::Message;
use crate::shard::{Batch, Shard};
use crate::slots::{SLOTS, slot_of};
use crate::task::{Task, TaskState};
use crate::{Effect, Namespace, QueueHandle, RefusalCode, ShardId};

impl Shard {
    /// Sends a slot to another shard. `last` says that no other slot of this shard follows.
    pub(crate) fn leave_slot(
        &mut self,
        batch: &mut Batch,
        (slot, target): (u16, ShardId),
        map_version: u64,
        last: bool,
    ) -> Result<(), RefusalCode> {
        if slot >= SLOTS || target == self.core.shard || !self.may_exist(target) {
            return Err(RefusalCode::BadValue);
        }
        if self.core.away.as_ref().is_some_and(|away| away.is_away(slot)) {
            return Ok(());
        }
        self.learn_shard(target);
        let mut packer = Packer::default();
        self.pack_tasks(batch, slot, &mut packer);
        self.pack_leases(batch, slot, &mut packer);
        self.pack_requests(slot, target, &mut packer);
        let under = |key: &&JobKey| slot_of(&key.0, key.1.as_str()) == slot;
        let jobs: Vec<JobKey> = self.core.jobs.keys().filter(under).cloned().collect();
        for job in jobs.iter().filter_map(|key| self.remove_job(key)) {
            packer.job(&job);
        }
        for key in self.objects_under(slot) {
            if let Some(object) = self.core.objects.get(&key) {
                packer.object(object);
            }
        }
        packer.close();
        let parts = packer.parts.len() as u32;
        for bytes in packer.parts {
            self.put_message(batch, target, Message::Part { slot, bytes });
        }
        let (epoch, grants, sequence) = (self.core.epoch, self.core.grants, self.core.sequence);
        let arrive = Message::Arrive { slot, parts, epoch, grants, map_version, sequence };
        self.put_message(batch, target, arrive);
        self.change_away(slot, |away| away.leave(slot, target));
        if last {
            self.index.by_slot = None;
        }
        Ok(())
    }

    /// Objects of a slot. They stay here until the target has them, so that their blobs are always referred to.
    fn objects_under(&self, slot: u16) -> Vec<ObjectKey> {
        let mut last: Option<(&Namespace, &str, bool)> = None;
        let mut found = Vec::new();
        for (key, _) in self.core.objects.iter() {
            // Objects that are routed alike follow each other.
            let routed_by = routing_key(&key.1, key.2.as_str());
            let known = last.filter(|before| (before.0, before.1) == (&key.0, routed_by));
            let is_under = known.map_or_else(|| slot_of(&key.0, routed_by) == slot, |(.., is)| is);
            last = Some((&key.0, routed_by, is_under));
            if is_under {
                found.push(key.clone());
            }
        }
        found
    }

    /// The target has a slot's objects: they need not stay here.
    pub(crate) fn forget_slot(&mut self, slot: u16) {
        let is_away = self.core.away.as_ref().is_some_and(|away| away.is_away(slot));
        if is_away {
            for key in self.objects_under(slot) {
                self.remove_object(&key);
            }
        }
    }

    fn pack_tasks(&mut self, batch: &mut Batch, slot: u16, packer: &mut Packer) {
        let core = &self.core;
        let by_slot = self.index.by_slot.get_or_insert_with(|| Box::new(BySlot::of(core)));
        let mut places = std::mem::take(&mut by_slot.tasks[usize::from(slot)]);
        places.sort_unstable();
        places.dedup();
        for place in places {
            let is_there = self.core.tasks.get(place).is_some_and(|task| {
                let namespace = &self.core.queues[task.queue as usize].namespace;
                slot_of(namespace, task.id.routing_key()) == slot
            });
            if is_there && let Some(task) = self.take_out(batch, place) {
                let record = &self.core.queues[task.queue as usize];
                packer.task(&record.namespace, &record.name, &task);
            }
        }
    }

    /// Packs the slot's leases, and what is bound to attempts of its tasks.
    fn pack_leases(&mut self, batch: &mut Batch, slot: u16, packer: &mut Packer) {
        let keys = self.core.leases.keys();
        let leaving: Vec<_> =
            keys.filter(|key| slot_of(&key.0, key.1.as_str()) == slot).cloned().collect();
        for key in leaving {
            if let Some(lease) = self.remove_lease(&key) {
                for (mark, _) in lease.marks() {
                    batch.tell(Effect::LeaseEnded { key: key.clone(), mark });
                }
                packer.lease(&lease);
            }
        }
        let keys = self.core.bindings.keys();
        let leaving: Vec<_> =
            keys.filter(|key| slot_of(&key.0, key.1.routing_key()) == slot).cloned().collect();
        for key in leaving {
            if let Some(binding) = self.remove_binding(&key) {
                packer.binding(&binding);
            }
        }
    }

    /// Packs what is remembered of requests. The entries stay here too: their window forgets them in its own time.
    fn pack_requests(&mut self, slot: u16, target: ShardId, packer: &mut Packer) {
        let by_slot = self.index.by_slot.as_mut();
        let numbers =
            by_slot.map(|by_slot| std::mem::take(&mut by_slot.submits[usize::from(slot)]));
        for number in numbers.unwrap_or_default() {
            if let Some(entry) = self.core.submits.get(number).filter(|e| e.slot() == Some(slot)) {
                packer.submit(entry.clone());
            }
        }
        for entry in self.settled_of(slot) {
            packer.settled(entry.clone());
        }
        if self.core.voids.len() == 0 {
            return;
        }
        let sent = self.core.away.as_ref().and_then(|away| {
            away.voids_sent.iter().find(|(to, _)| *to == target).map(|(_, time_ms)| *time_ms)
        });
        let fresh = |time_ms: u64| sent.is_none_or(|sent_ms| time_ms >= sent_ms);
        for (_, entry) in self.core.voids.iter().filter(|(_, entry)| fresh(entry.time_ms())) {
            packer.void(entry.clone());
        }
        let now_ms = self.core.time_ms;
        self.change_away(slot, |away| {
            away.voids_sent.retain(|(to, _)| *to != target);
            away.voids_sent.push((target, now_ms));
        });
    }

    /// Takes a task out whatever its state; its share of the counters goes with it.
    fn take_out(&mut self, batch: &mut Batch, place: u32) -> Option<Task> {
        let task = self.core.tasks.remove(&mut self.index.free, place)?;
        self.index.unlink(place, &task);
        self.index.settle_key(&task);
        let record = &mut self.core.queues[task.queue as usize];
        let name_hash = crate::ids::task_hash(record.namespace.as_str(), task.id.as_str());
        let counters = &mut record.counters;
        counters.submitted = counters.submitted.saturating_sub(1);
        match counters.ended_as(task.state) {
            Some(count) => {
                *count = count.saturating_sub(1);
                self.index.finished_bytes -= task.weight();
            }
            None => self.index.went(task.queue, task.weight()),
        }
        self.index.task_names.remove(name_hash, place);
        self.core.hash.remove(task.digest);
        self.mark_queue(task.queue);
        if task.state == TaskState::Claimed {
            batch.tell(Effect::Released { slot: place, fence: task.fence });
        }
        batch.travelled(QueueHandle(task.queue), &task, false);
        Some(task)
    }
}
