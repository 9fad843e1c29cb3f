//! A slot arrives: its parts are kept until the last word, then everything is taken in at once. Fences granted from
//! now on exceed those that came along; the order of the tasks among each other stays.

use std::collections::BTreeSet;
use std::sync::Arc;

use minicbor::{Decode, Encode};

use super::Parcel;
use crate::dedup::RingEntry;
use crate::hash::{RecordKind, digest_record};
use crate::ids::task_hash;
use crate::outbox::Message;
use crate::shard::{Batch, Shard};
use crate::slots::SLOTS;
use crate::task::Task;
use crate::{Effect, Fence, QueueHandle, RefusalCode, SharedBytes};

/// One part of a slot whose last word is not here yet.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Part {
    #[n(0)]
    pub(crate) slot: u16,
    /// Place among the parts of its slot.
    #[n(1)]
    pub(crate) place: u32,
    #[n(2)]
    pub(crate) bytes: SharedBytes,
}

impl Shard {
    /// Keeps a part until the last word comes.
    pub(crate) fn take_part(&mut self, slot: u16, bytes: &SharedBytes) -> Result<(), RefusalCode> {
        if slot >= SLOTS {
            return Err(RefusalCode::BadValue);
        }
        let kept = self.core.parts.entry(slot).or_default();
        let part = Part { slot, place: kept.len() as u32, bytes: bytes.clone() };
        self.core.hash.add(digest_record(RecordKind::Part, &part));
        kept.push(bytes.clone());
        Ok(())
    }

    /// The last word: takes everything in and tells shard 0.
    pub(crate) fn arrive_slot(
        &mut self,
        batch: &mut Batch,
        (slot, parts): (u16, u32),
        (highest, sequence): (Fence, u64),
        map_version: u64,
    ) -> Result<(), RefusalCode> {
        let kept = self.core.parts.get(&slot).map_or(&[][..], Vec::as_slice);
        if slot >= SLOTS || kept.len() != parts as usize {
            return Err(RefusalCode::BadValue);
        }
        let decode = |bytes: &SharedBytes| minicbor::decode::<Parcel>(bytes).ok();
        let parcels: Option<Vec<Parcel>> = kept.iter().map(decode).collect();
        let mut parcels = parcels.ok_or(RefusalCode::BadCommand)?;
        let reached = Fence::new(self.core.epoch, self.core.grants).max(highest);
        let tasks = self.unpack_tasks(&mut parcels, reached)?;
        let mut objects = parcels.iter().flat_map(|parcel| &parcel.objects);
        if sequence > u64::MAX / 2 || !objects.all(|object| object.is_valid(sequence)) {
            return Err(RefusalCode::BadValue);
        }
        let mut leases = parcels.iter().flat_map(|parcel| &parcel.leases);
        let mut bindings = parcels.iter().flat_map(|parcel| &parcel.bindings);
        if !leases.all(|lease| lease.is_valid(&self.core.limits, reached, sequence))
            || !bindings.all(|binding| binding.is_valid())
        {
            return Err(RefusalCode::BadValue);
        }
        let mut jobs = parcels.iter().flat_map(|parcel| &parcel.jobs);
        if !jobs.all(|job| job.is_valid(&self.core.limits)) {
            return Err(RefusalCode::BadValue);
        }
        let has_objects = parcels.iter().any(|parcel| !parcel.objects.is_empty());
        let has_leases = parcels.iter().any(|parcel| !parcel.leases.is_empty());
        if has_objects || has_leases {
            // Versions and places go on from where the bucket and the lease were.
            self.core.sequence = self.core.sequence.max(sequence);
        }
        for (place, bytes) in self.core.parts.remove(&slot).into_iter().flatten().enumerate() {
            let part = Part { slot, place: place as u32, bytes };
            self.core.hash.remove(digest_record(RecordKind::Part, &part));
        }
        (self.core.epoch, self.core.grants) = (reached.epoch(), reached.counter());
        for parcel in &mut parcels {
            self.unpack_leases(batch, parcel);
        }
        let mut tasks = self.unpack(parcels, tasks);
        self.renumber(&mut tasks);
        // Finished lines are rows: their tasks must come in order.
        tasks.sort_unstable_by_key(|task| task.sequence);
        let mut queues = BTreeSet::new();
        for task in tasks {
            queues.insert(task.queue);
            self.take_in(batch, task);
        }
        for queue in queues {
            self.retain_after_finish(batch, queue);
        }
        self.change_away(slot, |away| away.arrive(slot, map_version));
        if self.core.shard == 0 {
            return Ok(());
        }
        self.put_message(batch, 0, Message::Settled { slot, has_objects });
        Ok(())
    }

    /// The tasks of each parcel, checked before anything changes.
    fn unpack_tasks(
        &mut self,
        parcels: &mut [Parcel],
        highest: Fence,
    ) -> Result<Vec<Vec<Task>>, RefusalCode> {
        let mut unpacked = Vec::with_capacity(parcels.len());
        for parcel in parcels {
            let mut tasks = Vec::with_capacity(parcel.tasks.len());
            for stored in parcel.tasks.drain(..) {
                let task = stored.into_task(&mut self.scratch);
                if !task.is_valid(parcel.queues.len(), &self.core.limits, highest) {
                    return Err(RefusalCode::BadValue);
                }
                tasks.push(task);
            }
            unpacked.push(tasks);
        }
        Ok(unpacked)
    }

    /// Takes leases in, and what is bound to attempts.
    fn unpack_leases(&mut self, batch: &mut Batch, parcel: &mut Parcel) {
        for lease in std::mem::take(&mut parcel.leases) {
            let key = lease.key();
            for (mark, ttl_ms) in lease.marks() {
                batch.tell(Effect::LeaseTimed { key: key.clone(), mark, ttl_ms });
            }
            self.put_lease(lease);
        }
        for binding in std::mem::take(&mut parcel.bindings) {
            self.put_binding(binding);
        }
    }

    /// Takes requests and tombstones in, and gives the tasks the queues of this shard.
    fn unpack(&mut self, parcels: Vec<Parcel>, unpacked: Vec<Vec<Task>>) -> Vec<Task> {
        let mut all = Vec::new();
        for (parcel, tasks) in parcels.into_iter().zip(unpacked) {
            let names = parcel.queues.iter();
            let queues: Vec<u32> =
                names.map(|(owner, queue)| self.open_queue_unbounded(owner, queue)).collect();
            all.extend(tasks.into_iter().filter_map(|task| {
                let queue = *queues.get(task.queue as usize)?;
                Some(Task { queue, ..task })
            }));
            for entry in parcel.submits {
                self.adopt_submit(entry);
            }
            parcel.objects.into_iter().for_each(|object| self.put_object(object));
            parcel.jobs.into_iter().for_each(|job| self.put_job(job));
            for entry in parcel.settled.into_iter().flatten() {
                self.adopt_settled(entry);
            }
            for entry in parcel.voids {
                if self.find_void(entry.key()).is_none() {
                    self.remember_void(entry);
                }
            }
        }
        all
    }

    /// Gives every place in line a number of this shard, in the same order.
    fn renumber(&mut self, tasks: &mut [Task]) {
        let places = |task: &Task| [Some(task.sequence), task.extras.as_ref().map(|e| e.place)];
        let mut numbers: Vec<u64> = tasks.iter().flat_map(places).flatten().collect();
        numbers.sort_unstable();
        numbers.dedup();
        let first = self.core.sequence + 1;
        let renamed =
            |number: u64| first + numbers.partition_point(|before| *before < number) as u64;
        for task in tasks {
            task.sequence = renamed(task.sequence);
            if let Some(extras) = &mut task.extras {
                let extras = Arc::make_mut(extras);
                extras.place = renamed(extras.place);
            }
        }
        self.core.sequence += numbers.len() as u64;
    }

    /// Takes a task in whatever its state, with its share of the counters.
    fn take_in(&mut self, batch: &mut Batch, task: Task) {
        let namespace = self.core.queues[task.queue as usize].namespace.clone();
        let name_hash = task_hash(namespace.as_str(), task.id.as_str());
        if self.find_task_hashed(&namespace, &task.id, name_hash).is_some() {
            return;
        }
        let (queue, state, weight) = (task.queue, task.state, task.weight());
        batch.travelled(QueueHandle(queue), &task, true);
        let place = self.place_task(task, name_hash);
        let counters = &mut self.core.queues[queue as usize].counters;
        counters.submitted += 1;
        match counters.ended_as(state) {
            Some(count) => {
                *count += 1;
                self.index.finished_bytes += weight;
            }
            None => self.index.came(queue, weight),
        }
        self.mark_queue(queue);
        self.welcome(batch, place);
    }
}
