//! Writes a frozen state chunk by chunk, so that no second copy of the whole is ever in memory.

use std::ops::Bound;
use std::sync::Arc;

use minicbor::Encode;

use super::{CHUNK_BYTES_MAX, TaskLine, Trailer};
use crate::Lsn;
use crate::dedup::{Ring, RingEntry};
use crate::growth::Part;
use crate::hash::{RecordKind, encode_into};
use crate::job::{Job, JobKey};
use crate::outbox::Inbox;
use crate::planted::{self, Bug};
use crate::shard::Core;

/// A state that no longer changes. Cheap to make and to move to another thread.
#[derive(Clone, Debug)]
pub struct Frozen {
    core: Arc<Core>,
    hash: u64,
}

impl Frozen {
    pub(crate) fn new(core: Core) -> Frozen {
        let hash = core.state_hash();
        Frozen { core: Arc::new(core), hash }
    }

    /// Position of the newest entry in it.
    pub fn applied(&self) -> Lsn {
        self.core.applied
    }

    pub(crate) fn core(&self) -> &Core {
        &self.core
    }

    /// Hash of the state.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// The snapshot stream in chunks of at most [`CHUNK_BYTES_MAX`] bytes, made on demand.
    pub fn chunks(&self) -> Chunks {
        Chunks {
            core: self.core.clone(),
            hash: self.hash,
            stage: Stage::Head,
            buffer: Vec::with_capacity(CHUNK_BYTES_MAX * 2),
            records: 0,
            last_job: None,
        }
    }
}

/// Which part of the state comes next.
#[derive(Clone, Copy, Debug)]
enum Stage {
    Head,
    Queues(usize),
    Tasks(u32),
    Submits(u64),
    Claims(u64),
    Tail,
    Objects(usize),
    Jobs,
    End,
}

/// The chunks of a frozen state.
#[derive(Debug)]
pub struct Chunks {
    core: Arc<Core>,
    hash: u64,
    stage: Stage,
    buffer: Vec<u8>,
    records: u64,
    /// The job that was written last.
    last_job: Option<JobKey>,
}

impl Iterator for Chunks {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        while self.buffer.len() < CHUNK_BYTES_MAX && !matches!(self.stage, Stage::End) {
            self.stage = self.write_some();
        }
        if self.buffer.is_empty() {
            return None;
        }
        let rest = self.buffer.split_off(self.buffer.len().min(CHUNK_BYTES_MAX));
        Some(std::mem::replace(&mut self.buffer, rest))
    }
}

impl Chunks {
    fn put<T: Encode<()>>(&mut self, kind: RecordKind, record: &T) {
        self.buffer.push(kind as u8);
        let start = self.buffer.len();
        self.buffer.extend_from_slice(&[0; 4]);
        encode_into(record, &mut self.buffer);
        let length = (self.buffer.len() - start - 4) as u32;
        self.buffer[start..start + 4].copy_from_slice(&length.to_le_bytes());
        self.records += 1;
    }

    /// Writes on, and says which stage is next.
    fn write_some(&mut self) -> Stage {
        let core = self.core.clone();
        match self.stage {
            Stage::Head => {
                let mut header = core.header();
                if planted::active(Bug::GrantCounterNotInSnapshot) {
                    header.grants = 0;
                }
                self.put(RecordKind::Header, &header);
                Stage::Queues(0)
            }
            Stage::Queues(queue) => match core.queues.get(queue) {
                Some(record) => {
                    self.put(RecordKind::Queue, record);
                    Stage::Queues(queue + 1)
                }
                None => Stage::Tasks(0),
            },
            Stage::Tasks(from) => self.write_tasks(&core, from),
            Stage::Submits(from) => {
                match self.write_ring(RecordKind::Submit, &core.submits, from) {
                    Some(next) => Stage::Submits(next),
                    None => Stage::Claims(core.claims.head()),
                }
            }
            Stage::Claims(from) => match self.write_ring(RecordKind::Claim, &core.claims, from) {
                Some(next) => Stage::Claims(next),
                None => Stage::Tail,
            },
            Stage::Tail => {
                self.write_tail(&core);
                Stage::Objects(0)
            }
            Stage::Objects(page) => match core.objects.page(page) {
                Some(objects) => {
                    for (_, object) in objects {
                        self.put(RecordKind::Object, &**object);
                    }
                    Stage::Objects(page + 1)
                }
                None => {
                    self.write_end();
                    Stage::Jobs
                }
            },
            Stage::Jobs => self.write_job(&core),
            Stage::End => Stage::End,
        }
    }

    /// Writes tasks until the chunk is full. Millions may follow: one walk over them, not one for each.
    fn write_tasks(&mut self, core: &Core, from: u32) -> Stage {
        for (slot, task) in core.tasks.iter_from(from) {
            self.put(RecordKind::Task, &TaskLine::of(slot, task));
            if self.buffer.len() >= CHUNK_BYTES_MAX {
                return Stage::Tasks(slot + 1);
            }
        }
        match planted::active(Bug::DedupNotInSnapshot) {
            true => Stage::Claims(core.claims.head()),
            false => Stage::Submits(core.submits.head()),
        }
    }

    /// Writes entries of a ring until the chunk is full; gives the number of the next one, if there may be more.
    fn write_ring<T>(&mut self, kind: RecordKind, ring: &Ring<T>, from: u64) -> Option<u64>
    where
        T: RingEntry + Encode<()>,
    {
        let mut number = from;
        while self.buffer.len() < CHUNK_BYTES_MAX {
            self.put(kind, ring.get(number)?);
            number += 1;
        }
        Some(number)
    }

    /// Writes what is small.
    fn write_tail(&mut self, core: &Core) {
        for line in core.outbox.line_records() {
            self.put(RecordKind::OutboxLine, &line);
        }
        for item in core.outbox.items() {
            self.put(RecordKind::OutboxItem, item);
        }
        for (source, applied) in &core.inbox {
            self.put(RecordKind::Inbox, &Inbox { source: *source, applied: *applied });
        }
        for member in &core.members {
            self.put(RecordKind::Member, member);
        }
        if let Some(map) = &core.slot_map {
            self.put(RecordKind::SlotMap, map);
        }
        if !planted::active(Bug::VoidNotInSnapshot) {
            for (_, entry) in core.voids.iter() {
                self.put(RecordKind::Void, entry);
            }
        }
        for schedule in core.schedules.values() {
            self.put(RecordKind::Schedule, &**schedule);
        }
    }

    /// Writes the small kinds with numbers above that of objects: readers want kinds in rising order.
    fn write_end(&mut self) {
        let core = self.core.clone();
        for token in core.tokens.values() {
            self.put(RecordKind::Token, &**token);
        }
        if let Some(roster) = &core.roster {
            self.put(RecordKind::Roster, &**roster);
        }
        if let Some(away) = &core.away {
            self.put(RecordKind::Away, &**away);
        }
        for (slot, parts) in &core.parts {
            for (place, bytes) in parts.iter().enumerate() {
                let part = Part { slot: *slot, place: place as u32, bytes: bytes.clone() };
                self.put(RecordKind::Part, &part);
            }
        }
        if let Some(growth) = &core.growth {
            self.put(RecordKind::Growth, &**growth);
        }
        for lease in core.leases.values() {
            self.put(RecordKind::Lease, &**lease);
        }
        for binding in core.bindings.values() {
            self.put(RecordKind::Binding, &**binding);
        }
    }

    /// Writes the next job, or the end.
    fn write_job(&mut self, core: &Core) -> Stage {
        if let Some(job) = self.next_job(core) {
            self.put(RecordKind::Job, &*job);
            self.last_job = Some(job.key());
            return Stage::Jobs;
        }
        for worker in core.workers.values() {
            self.put(RecordKind::Worker, &**worker);
        }
        for quota in core.quotas.values() {
            self.put(RecordKind::Quota, &**quota);
        }
        for record in core.remembered.values() {
            self.put(RecordKind::Remembered, &**record);
        }
        for (_, entry) in core.settled.iter() {
            self.put(RecordKind::Settled, entry);
        }
        let trailer = Trailer { records: self.records, hash: self.hash };
        self.put(RecordKind::Trailer, &trailer);
        Stage::End
    }

    fn next_job(&self, core: &Core) -> Option<Arc<Job>> {
        let after = self.last_job.clone().map_or(Bound::Unbounded, Bound::Excluded);
        core.jobs.range((after, Bound::Unbounded)).next().map(|(_, job)| job.clone())
    }
}
