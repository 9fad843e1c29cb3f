//! Restores a state from a snapshot stream. Everything is checked: any bytes give a state that
//! obeys all rules and has the stored hash, or an error.

use std::sync::Arc;

use minicbor::Decode;

use super::{RECORD_BYTES_MAX, RestoreError, StoredTask, Trailer, VERSION};
use crate::dedup::{ClaimEntry, RingEntry, SettledEntry, SubmitEntry, VOIDS_MAX, VoidEntry};
use crate::growth::{Away, Growth, Part};
use crate::hash::{RecordKind, digest_record};
use crate::job::Job;
use crate::lease::{Binding, Lease};
use crate::limits::{
    BATCH_ORDERS_MAX, BINDINGS_MAX, JOBS_MAX, LEASES_MAX, OBJECT_VERSIONS_TOTAL_MAX, QUOTAS_MAX,
    REMEMBERED_MAX, SCHEDULES_MAX, TOKENS_MAX, WORKERS_MAX,
};
use crate::members::{LEVEL, Member, Roster};
use crate::object::Object;
use crate::outbox::{Inbox, OutboxItem, OutboxLine};
use crate::planted::{self, Bug};
use crate::queue::QueueRecord;
use crate::reuse::Remembered;
use crate::schedule::Schedule;
use crate::shard::{Core, Header, Shard, queue_digest};
use crate::{Fence, QuotaRecord, SLOTS, SlotMap, Token, WorkerRecord};

impl Shard {
    /// Rebuilds a shard from the chunks of a snapshot, in order.
    pub fn restore(chunks: impl Iterator<Item = Vec<u8>>) -> Result<Shard, RestoreError> {
        let mut reader = Reader::default();
        let mut buffer: Vec<u8> = Vec::new();
        for chunk in chunks {
            buffer.extend_from_slice(&chunk);
            let mut used = 0;
            while let Some((kind, length)) = next_record(&buffer[used..], reader.records)? {
                let start = used + RECORD_HEAD_BYTES;
                reader.take(kind, &buffer[start..start + length])?;
                used = start + length;
            }
            buffer.drain(..used);
        }
        if !buffer.is_empty() {
            return Err(match reader.trailer {
                Some(_) => RestoreError::Trailing,
                None => RestoreError::Truncated,
            });
        }
        reader.finish()
    }
}

/// Kind and length in front of every record.
const RECORD_HEAD_BYTES: usize = 1 + 4;

/// Kind and length of the record at the start of the bytes, once it is there in full.
fn next_record(bytes: &[u8], record: u64) -> Result<Option<(u8, usize)>, RestoreError> {
    let Some((kind, rest)) = bytes.split_first() else {
        return Ok(None);
    };
    let Some((length, rest)) = rest.split_first_chunk::<4>() else {
        return Ok(None);
    };
    let length = u32::from_le_bytes(*length) as usize;
    if length > RECORD_BYTES_MAX {
        return Err(RestoreError::Malformed { record });
    }
    Ok((rest.len() >= length).then_some((*kind, length)))
}

/// Kinds come in rising order, but for the trailer, which ends the stream.
fn rank(kind: u8) -> u8 {
    if kind == RecordKind::Trailer as u8 { u8::MAX } else { kind }
}

#[derive(Default)]
struct Reader {
    core: Option<Core>,
    trailer: Option<Trailer>,
    last_kind: u8,
    records: u64,
    scratch: Vec<u8>,
}

impl Reader {
    fn decode<'b, T: Decode<'b, ()>>(&self, bytes: &'b [u8]) -> Result<T, RestoreError> {
        let mut decoder = minicbor::Decoder::new(bytes);
        match decoder.decode::<T>() {
            Ok(value) if decoder.position() == bytes.len() => Ok(value),
            _ => Err(RestoreError::Malformed { record: self.records }),
        }
    }

    fn invalid(&self, rule: &'static str) -> RestoreError {
        RestoreError::Invalid { record: self.records, rule }
    }

    fn take(&mut self, kind: u8, bytes: &[u8]) -> Result<(), RestoreError> {
        if self.trailer.is_some() {
            return Err(RestoreError::Trailing);
        }
        let misplaced = RestoreError::Kind { record: self.records, kind };
        if rank(kind) < rank(self.last_kind) {
            return Err(misplaced);
        }
        self.last_kind = kind;
        if kind == RecordKind::Header as u8 {
            return self.take_header(bytes);
        }
        let Some(mut core) = self.core.take() else {
            return Err(misplaced);
        };
        let outcome = match kind {
            kind if kind == RecordKind::Queue as u8 => self.take_queue(&mut core, bytes),
            kind if kind == RecordKind::Task as u8 => self.take_task(&mut core, bytes),
            kind if kind == RecordKind::Submit as u8 => self.take_submit(&mut core, bytes),
            kind if kind == RecordKind::Claim as u8 => self.take_claim(&mut core, bytes),
            kind if kind == RecordKind::OutboxLine as u8 => self.take_line(&mut core, bytes),
            kind if kind == RecordKind::OutboxItem as u8 => self.take_item(&mut core, bytes),
            kind if kind == RecordKind::Inbox as u8 => self.take_inbox(&mut core, bytes),
            kind if kind == RecordKind::Member as u8 => self.take_member(&mut core, bytes),
            kind if kind == RecordKind::SlotMap as u8 => self.take_slot_map(&mut core, bytes),
            kind if kind == RecordKind::Void as u8 => self.take_void(&mut core, bytes),
            kind if kind == RecordKind::Schedule as u8 => self.take_schedule(&mut core, bytes),
            kind if kind == RecordKind::Object as u8 => self.take_object(&mut core, bytes),
            kind if kind == RecordKind::Token as u8 => self.take_token(&mut core, bytes),
            kind if kind == RecordKind::Roster as u8 => self.take_roster(&mut core, bytes),
            kind if kind == RecordKind::Away as u8 => self.take_away(&mut core, bytes),
            kind if kind == RecordKind::Part as u8 => self.take_part(&mut core, bytes),
            kind if kind == RecordKind::Growth as u8 => self.take_growth(&mut core, bytes),
            kind if kind == RecordKind::Lease as u8 => self.take_lease(&mut core, bytes),
            kind if kind == RecordKind::Binding as u8 => self.take_binding(&mut core, bytes),
            kind if kind == RecordKind::Job as u8 => self.take_job(&mut core, bytes),
            kind if kind == RecordKind::Worker as u8 => self.take_worker(&mut core, bytes),
            kind if kind == RecordKind::Quota as u8 => self.take_quota(&mut core, bytes),
            kind if kind == RecordKind::Remembered as u8 => self.take_result(&mut core, bytes),
            kind if kind == RecordKind::Settled as u8 => self.take_settled(&mut core, bytes),
            kind if kind == RecordKind::Trailer as u8 => {
                self.trailer = Some(self.decode(bytes)?);
                Ok(())
            }
            _ => Err(misplaced),
        };
        self.core = Some(core);
        if self.trailer.is_none() {
            self.records += 1;
        }
        outcome
    }

    fn take_header(&mut self, bytes: &[u8]) -> Result<(), RestoreError> {
        if self.core.is_some() {
            return Err(RestoreError::Kind {
                record: self.records,
                kind: RecordKind::Header as u8,
            });
        }
        let header: Header = self.decode(bytes)?;
        if header.version != VERSION {
            return Err(RestoreError::Version(header.version));
        }
        if header.shard >= header.shards || header.shards > crate::slots::SLOTS {
            return Err(self.invalid("shard lies inside the cluster"));
        }
        if header.grants > Fence::COUNTER_MAX {
            return Err(self.invalid("grant counter fits 48 bits"));
        }
        if !header.limits.is_valid() {
            return Err(self.invalid("limits can be held"));
        }
        let far = u64::MAX / 2;
        if header.sequence > far || header.submits_head > far || header.claims_head > far {
            return Err(self.invalid("counters have room"));
        }
        self.core = Some(Core::from_header(header));
        self.records += 1;
        Ok(())
    }

    fn take_queue(&mut self, core: &mut Core, bytes: &[u8]) -> Result<(), RestoreError> {
        let record: QueueRecord = self.decode(bytes)?;
        let counters = &record.counters;
        let totals = [counters.submitted, counters.done, counters.dead, counters.cancelled];
        if totals
            .iter()
            .chain([&counters.removed, &counters.retried, &counters.failed])
            .any(|total| *total > u64::MAX / 8)
        {
            return Err(self.invalid("counters have room"));
        }
        // Settings add at most as many queues again as tasks do, and schedules a few.
        if core.queues.len() >= 2 * core.limits.queues_max as usize + SCHEDULES_MAX {
            return Err(self.invalid("queues are bounded"));
        }
        core.hash.add(queue_digest(core.queues.len() as u32, &record));
        core.queues.push(record);
        Ok(())
    }

    fn take_task(&mut self, core: &mut Core, bytes: &[u8]) -> Result<(), RestoreError> {
        let stored: StoredTask = self.decode(bytes)?;
        let slot = stored.slot;
        let task = stored.into_task(&mut self.scratch);
        let highest = Fence::new(core.epoch, core.grants);
        let unchecked = planted::active(Bug::GrantCounterNotInSnapshot);
        if !unchecked && !task.is_valid(core.queues.len(), &core.limits, highest) {
            return Err(self.invalid("task obeys its bounds"));
        }
        let place = task.extras.as_ref().map_or(0, |extras| extras.place);
        if task.sequence > core.sequence || place > core.sequence {
            return Err(self.invalid("place in line was given out"));
        }
        // Slots are filled from below, so none lies beyond what the bounds can fill.
        let limits = &core.limits;
        let slots_max = limits.pending_tasks_max.saturating_add(limits.finished_tasks_max);
        // Slots that moved here brought what their shards had room for.
        let slots_max = slots_max.saturating_mul(u64::from(core.shards));
        if u64::from(slot) > slots_max.saturating_add(BATCH_ORDERS_MAX as u64) {
            return Err(self.invalid("slots are bounded"));
        }
        core.tasks.reserve_slots(slot.saturating_add(1));
        core.hash.add(task.digest);
        if !core.tasks.put(slot, task) {
            return Err(self.invalid("a slot holds one task"));
        }
        Ok(())
    }

    fn take_submit(&mut self, core: &mut Core, bytes: &[u8]) -> Result<(), RestoreError> {
        let entry: SubmitEntry = self.decode(bytes)?;
        let number = core.submits.next_number();
        core.hash.add(entry.digest(number));
        core.submits.push(entry);
        match core.submits.len() > core.limits.submit_window_max as usize {
            true => Err(self.invalid("submit window is bounded")),
            false => Ok(()),
        }
    }

    fn take_claim(&mut self, core: &mut Core, bytes: &[u8]) -> Result<(), RestoreError> {
        let entry: ClaimEntry = self.decode(bytes)?;
        let number = core.claims.next_number();
        core.hash.add(entry.digest(number));
        core.claims.push(entry);
        match core.claims.len() > core.limits.claim_window_max as usize {
            true => Err(self.invalid("claim window is bounded")),
            false => Ok(()),
        }
    }

    fn take_void(&mut self, core: &mut Core, bytes: &[u8]) -> Result<(), RestoreError> {
        let entry: VoidEntry = self.decode(bytes)?;
        core.hash.add(entry.digest(0));
        core.voids.push(entry);
        match core.voids.len() > VOIDS_MAX {
            true => Err(self.invalid("tombstones are bounded")),
            false => Ok(()),
        }
    }

    fn take_settled(&mut self, core: &mut Core, bytes: &[u8]) -> Result<(), RestoreError> {
        let entry: SettledEntry = self.decode(bytes)?;
        core.hash.add(entry.digest(0));
        core.settled.push(entry);
        match core.settled.len() > core.limits.claim_window_max as usize {
            true => Err(self.invalid("remembered reports are bounded")),
            false => Ok(()),
        }
    }

    fn take_line(&mut self, core: &mut Core, bytes: &[u8]) -> Result<(), RestoreError> {
        let line: OutboxLine = self.decode(bytes)?;
        core.hash.add(digest_record(RecordKind::OutboxLine, &line));
        let fits = line.last > 0 && line.last < u64::MAX / 2;
        match fits && core.outbox.restore_line(&line) {
            true => Ok(()),
            false => Err(self.invalid("a target has one line")),
        }
    }

    fn take_item(&mut self, core: &mut Core, bytes: &[u8]) -> Result<(), RestoreError> {
        let item: OutboxItem = self.decode(bytes)?;
        core.hash.add(digest_record(RecordKind::OutboxItem, &item));
        match core.outbox.restore_item(item) {
            true => Ok(()),
            false => Err(self.invalid("messages have no gaps")),
        }
    }

    fn take_inbox(&mut self, core: &mut Core, bytes: &[u8]) -> Result<(), RestoreError> {
        let inbox: Inbox = self.decode(bytes)?;
        core.hash.add(digest_record(RecordKind::Inbox, &inbox));
        let fits = inbox.source < core.shards && inbox.applied < u64::MAX / 2;
        match fits && core.inbox.insert(inbox.source, inbox.applied).is_none() {
            true => Ok(()),
            false => Err(self.invalid("a source has one record")),
        }
    }

    fn take_member(&mut self, core: &mut Core, bytes: &[u8]) -> Result<(), RestoreError> {
        let member: Member = self.decode(bytes)?;
        core.hash.add(digest_record(RecordKind::Member, &member));
        if core.members.last().is_some_and(|before| before.node >= member.node) {
            return Err(self.invalid("members are sorted, each once"));
        }
        core.members.push(member);
        Ok(())
    }

    fn take_roster(&mut self, core: &mut Core, bytes: &[u8]) -> Result<(), RestoreError> {
        let roster: Roster = self.decode(bytes)?;
        if let Some(level) = roster.level.filter(|level| *level > LEVEL) {
            return Err(RestoreError::Level(level));
        }
        if core.shard != 0 || core.roster.is_some() || !roster.is_valid() {
            return Err(self.invalid("roster obeys its bounds"));
        }
        core.hash.add(digest_record(RecordKind::Roster, &roster));
        core.roster = Some(Box::new(roster));
        Ok(())
    }

    fn take_slot_map(&mut self, core: &mut Core, bytes: &[u8]) -> Result<(), RestoreError> {
        let map: SlotMap = self.decode(bytes)?;
        if core.slot_map.is_some() || !map.is_valid(core.shards) {
            return Err(self.invalid("slot map covers all slots once"));
        }
        core.hash.add(map.digest());
        core.slot_map = Some(map);
        Ok(())
    }

    fn take_away(&mut self, core: &mut Core, bytes: &[u8]) -> Result<(), RestoreError> {
        let away: Away = self.decode(bytes)?;
        if core.away.is_some() || !away.is_valid() {
            return Err(self.invalid("moved slots are known once, all of them"));
        }
        core.hash.add(away.digest());
        core.away = Some(Arc::new(away));
        Ok(())
    }

    fn take_part(&mut self, core: &mut Core, bytes: &[u8]) -> Result<(), RestoreError> {
        let part: Part = self.decode(bytes)?;
        core.hash.add(digest_record(RecordKind::Part, &part));
        let kept = core.parts.entry(part.slot).or_default();
        if part.slot >= SLOTS || part.place as usize != kept.len() {
            return Err(self.invalid("parts of a slot have no gaps"));
        }
        kept.push(part.bytes);
        Ok(())
    }

    fn take_growth(&mut self, core: &mut Core, bytes: &[u8]) -> Result<(), RestoreError> {
        let growth: Growth = self.decode(bytes)?;
        let fits = core.slot_map.as_ref().is_some_and(|map| growth.is_valid(core.shards, map));
        if core.growth.is_some() || !fits {
            return Err(self.invalid("growth concerns shards that exist"));
        }
        core.hash.add(digest_record(RecordKind::Growth, &growth));
        core.growth = Some(Arc::new(growth));
        Ok(())
    }

    fn take_lease(&mut self, core: &mut Core, bytes: &[u8]) -> Result<(), RestoreError> {
        let lease: Lease = self.decode(bytes)?;
        let highest = Fence::new(core.epoch, core.grants);
        let unchecked = planted::active(Bug::GrantCounterNotInSnapshot);
        if !unchecked && !lease.is_valid(&core.limits, highest, core.sequence) {
            return Err(self.invalid("lease obeys its bounds"));
        }
        core.hash.add(digest_record(RecordKind::Lease, &lease));
        let key = lease.key();
        if core.leases.last_key_value().is_some_and(|(before, _)| *before >= key) {
            return Err(self.invalid("leases are sorted, each once"));
        }
        core.leases.insert(key, Arc::new(lease));
        match core.leases.len() > LEASES_MAX.saturating_mul(usize::from(core.shards)) {
            true => Err(self.invalid("leases are bounded")),
            false => Ok(()),
        }
    }

    fn take_worker(&mut self, core: &mut Core, bytes: &[u8]) -> Result<(), RestoreError> {
        let worker: WorkerRecord = self.decode(bytes)?;
        if core.shard != 0 || !worker.is_valid() || core.workers.len() >= WORKERS_MAX {
            return Err(self.invalid("worker obeys its bounds"));
        }
        core.hash.add(digest_record(RecordKind::Worker, &worker));
        let key = worker.key();
        if core.workers.last_key_value().is_some_and(|(before, _)| *before >= key) {
            return Err(self.invalid("workers are sorted, each once"));
        }
        core.workers.insert(key, Arc::new(worker));
        Ok(())
    }

    fn take_binding(&mut self, core: &mut Core, bytes: &[u8]) -> Result<(), RestoreError> {
        let binding: Binding = self.decode(bytes)?;
        core.hash.add(digest_record(RecordKind::Binding, &binding));
        let key = (binding.namespace.clone(), binding.task.clone());
        let sorted = core.bindings.last_key_value().is_none_or(|(before, _)| *before < key);
        if !sorted || !binding.is_valid() {
            return Err(self.invalid("bindings are sorted, each once, and bounded"));
        }
        core.bindings.insert(key, Arc::new(binding));
        match core.bindings.len() > BINDINGS_MAX.saturating_mul(usize::from(core.shards)) {
            true => Err(self.invalid("bindings are bounded")),
            false => Ok(()),
        }
    }

    fn take_schedule(&mut self, core: &mut Core, bytes: &[u8]) -> Result<(), RestoreError> {
        let schedule: Schedule = self.decode(bytes)?;
        if core.shard != 0 || !schedule.is_valid(&core.limits, core.time_ms) {
            return Err(self.invalid("schedule obeys its bounds"));
        }
        core.hash.add(digest_record(RecordKind::Schedule, &schedule));
        let key = (schedule.namespace.clone(), schedule.name.clone());
        if core.schedules.last_key_value().is_some_and(|(before, _)| *before >= key) {
            return Err(self.invalid("schedules are sorted, each once"));
        }
        core.schedules.insert(key, Arc::new(schedule));
        match core.schedules.len() > SCHEDULES_MAX {
            true => Err(self.invalid("schedules are bounded")),
            false => Ok(()),
        }
    }

    fn take_object(&mut self, core: &mut Core, bytes: &[u8]) -> Result<(), RestoreError> {
        let object: Object = self.decode(bytes)?;
        if !object.is_valid(core.sequence) {
            return Err(self.invalid("object obeys its bounds"));
        }
        core.hash.add(digest_record(RecordKind::Object, &object));
        let key = (object.namespace.clone(), object.bucket.clone(), object.name.clone());
        if core.objects.last_key().is_some_and(|before| *before >= key) {
            return Err(self.invalid("objects are sorted, each once"));
        }
        core.objects.insert(key, Arc::new(object));
        match core.objects.len() as u64 > OBJECT_VERSIONS_TOTAL_MAX {
            true => Err(self.invalid("objects are bounded")),
            false => Ok(()),
        }
    }

    fn take_job(&mut self, core: &mut Core, bytes: &[u8]) -> Result<(), RestoreError> {
        let job: Job = self.decode(bytes)?;
        if !job.is_valid(&core.limits) {
            return Err(self.invalid("job obeys its bounds"));
        }
        core.hash.add(job.digest());
        let key = job.key();
        if core.jobs.last_key_value().is_some_and(|(before, _)| *before >= key) {
            return Err(self.invalid("jobs are sorted, each once"));
        }
        core.jobs.insert(key, Arc::new(job));
        match core.jobs.len() > JOBS_MAX * usize::from(core.shards) {
            true => Err(self.invalid("jobs are bounded")),
            false => Ok(()),
        }
    }

    fn take_token(&mut self, core: &mut Core, bytes: &[u8]) -> Result<(), RestoreError> {
        let token: Token = self.decode(bytes)?;
        if core.shard != 0 || !token.is_valid() {
            return Err(self.invalid("token obeys its bounds"));
        }
        core.hash.add(digest_record(RecordKind::Token, &token));
        if core.tokens.last_key_value().is_some_and(|(before, _)| *before >= token.id) {
            return Err(self.invalid("tokens are sorted, each once"));
        }
        core.tokens.insert(token.id.clone(), Arc::new(token));
        match core.tokens.len() > TOKENS_MAX {
            true => Err(self.invalid("tokens are bounded")),
            false => Ok(()),
        }
    }

    fn take_quota(&mut self, core: &mut Core, bytes: &[u8]) -> Result<(), RestoreError> {
        let record: QuotaRecord = self.decode(bytes)?;
        core.hash.add(digest_record(RecordKind::Quota, &record));
        if core.quotas.last_key_value().is_some_and(|(before, _)| *before >= record.namespace) {
            return Err(self.invalid("quotas are sorted, each once"));
        }
        core.quotas.insert(record.namespace.clone(), Arc::new(record));
        match core.quotas.len() > QUOTAS_MAX {
            true => Err(self.invalid("quotas are bounded")),
            false => Ok(()),
        }
    }

    fn take_result(&mut self, core: &mut Core, bytes: &[u8]) -> Result<(), RestoreError> {
        let record: Remembered = self.decode(bytes)?;
        if !record.is_valid(core.sequence) || core.remembered.len() >= REMEMBERED_MAX {
            return Err(self.invalid("remembered result obeys its bounds"));
        }
        core.hash.add(digest_record(RecordKind::Remembered, &record));
        let key = record.name();
        if core.remembered.last_key_value().is_some_and(|(before, _)| *before >= key) {
            return Err(self.invalid("remembered results are sorted, each once"));
        }
        core.remembered.insert(key, Arc::new(record));
        Ok(())
    }

    fn finish(self) -> Result<Shard, RestoreError> {
        let (Some(core), Some(trailer)) = (self.core, self.trailer) else {
            return Err(RestoreError::Truncated);
        };
        if trailer.records != self.records {
            return Err(RestoreError::Count { found: self.records, stored: trailer.records });
        }
        if !core.outbox.is_whole() {
            return Err(RestoreError::Invalid {
                record: self.records,
                rule: "messages end with their line",
            });
        }
        let found = core.state_hash();
        let unchecked = planted::active(Bug::GrantCounterNotInSnapshot)
            || planted::active(Bug::DedupNotInSnapshot)
            || planted::active(Bug::VoidNotInSnapshot);
        if found != trailer.hash && !unchecked {
            return Err(RestoreError::Hash { found, stored: trailer.hash });
        }
        let shard = Shard::from_core(core);
        match shard.has_unique_places() {
            true => Ok(shard),
            false => Err(RestoreError::Invalid {
                record: self.records,
                rule: "names and places in line are unique",
            }),
        }
    }
}
