//! `Enqueue`: adds a task. An id that exists with the same body is answered as the first time; with
//! another body it is refused (TQ-4, Q8), and so is one that was here lately (TQ-22).

use minicbor::{Decode, Encode};
use xxhash_rust::xxh3::xxh3_64;

use super::then::then_level;
use super::{Birth, Extras, Task, TaskOptions, TaskState};
use crate::hash::encode_into;
use crate::ids::task_hash;
use crate::limits::{Limits, PRIORITY_DEFAULT, PRIORITY_MAX};
use crate::planted::{self, Bug};
use crate::shard::{Batch, Shard};
use crate::{
    Backoff, Fence, JobId, Namespace, QueueName, QueueSettings, RefusalCode, Reply, SharedBytes,
    SharedWork, TaskId,
};

/// Adds one task. Absent settings come from the queue at the time of application.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Enqueue {
    /// Name of the task; see `derive_task_id` for a submitter that gave none.
    #[n(0)]
    pub id: TaskId,
    /// Its queue, created if need be.
    #[n(1)]
    pub queue: QueueName,
    /// What to do; opaque.
    #[n(2)]
    pub payload: SharedBytes,
    /// 0 to 9, 9 first; 5 if absent.
    #[n(3)]
    pub priority: Option<u8>,
    /// Log time before which it is not ready; excludes `delay_ms`.
    #[n(4)]
    pub run_at_ms: Option<u64>,
    /// Delay from the log time of application.
    #[n(5)]
    pub delay_ms: Option<u64>,
    /// Most claims that count.
    #[n(6)]
    pub max_attempts: Option<u16>,
    /// Claim lifetime.
    #[n(7)]
    pub ttl_ms: Option<u32>,
    /// Delay between attempts.
    #[n(8)]
    pub backoff: Option<Backoff>,
    /// What most tasks do not name.
    #[n(9)]
    pub options: Option<Box<TaskOptions>>,
}

impl Enqueue {
    /// A task with the queue's settings.
    pub fn new(id: TaskId, queue: QueueName, payload: impl Into<SharedBytes>) -> Enqueue {
        Enqueue {
            id,
            queue,
            payload: payload.into(),
            priority: None,
            run_at_ms: None,
            delay_ms: None,
            max_attempts: None,
            ttl_ms: None,
            backoff: None,
            options: None,
        }
    }

    /// Bytes that count against the bounds of payloads.
    pub(crate) fn weight(&self) -> usize {
        self.payload.len() + self.options.as_ref().map_or(0, |options| options.weight())
    }

    /// Whether there may be names of programs in it, its own or those of follow-ups.
    pub fn may_name_programs(&self) -> bool {
        self.options
            .as_ref()
            .is_some_and(|options| options.work.is_some() || options.then.is_some())
    }

    /// Has it known by another order, which is the same before names in it were resolved: what they stand for may have
    /// changed when it is sent again (TQ-21).
    pub fn keep_asked(&mut self, asked: &Enqueue) {
        self.be_known_as(BodyHashes::of(asked).body);
    }

    /// Puts work with pinned inputs in place. It stays known by what was asked for.
    pub fn pin_work(&mut self, work: SharedWork) {
        let known_as = BodyHashes::of(self).body;
        if let Some(options) = &mut self.options {
            options.work = Some(work);
        }
        self.be_known_as(known_as);
    }

    fn be_known_as(&mut self, body_hash: u64) {
        if BodyHashes::of(self).body != body_hash
            && let Some(options) = &mut self.options
        {
            options.asked = Some(body_hash);
        }
    }

    /// Has it known by its whole body, as older programs know it.
    pub fn forget_asked(&mut self) {
        if let Some(options) = &mut self.options {
            options.asked = None;
        }
    }

    /// Hash of the order as asked for: equal for a resend, different for another task.
    pub(crate) fn body_hash(&self, payload_hash: u64) -> u64 {
        if let Some(asked) = self.options.as_ref().and_then(|options| options.asked) {
            return asked;
        }
        // Absent values are told apart from every present one by a leading mark.
        let given = |value: Option<u64>| value.map_or([0, 0], |value| [1, value]);
        let backoff = self
            .backoff
            .map(|backoff| u64::from(backoff.base_ms) << 32 | u64::from(backoff.cap_ms));
        let options = [
            given(self.priority.map(u64::from)),
            given(self.run_at_ms),
            given(self.delay_ms),
            given(self.max_attempts.map(u64::from)),
            given(self.ttl_ms.map(u64::from)),
            given(backoff),
        ];
        let (id, queue) = (self.id.as_str().as_bytes(), self.queue.as_str().as_bytes());
        let mut words = [0u8; 8 * 15];
        let all = options.iter().flatten().chain([&payload_hash]);
        for (place, word) in words.chunks_exact_mut(8).zip(all) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        words[104..112].copy_from_slice(&xxh3_64(id).to_le_bytes());
        words[112..120].copy_from_slice(&xxh3_64(queue).to_le_bytes());
        let Some(options) = &self.options else {
            return xxh3_64(&words);
        };
        let mut bytes = words.to_vec();
        encode_into(&**options, &mut bytes);
        xxh3_64(&bytes)
    }

    /// The level that understands it.
    pub(crate) fn level(&self) -> u32 {
        let Some(options) = &self.options else {
            return 0;
        };
        let work = options.work.as_ref().map_or(0, |work| work.level());
        let own = work.max(u32::from(options.asked.is_some()));
        own.max(then_level(options.then.as_ref()))
    }

    pub(crate) fn check(&self, limits: &Limits) -> Result<(), RefusalCode> {
        self.check_own(limits)?;
        match &self.options {
            Some(options) => options.check(&self.id, limits),
            None => Ok(()),
        }
    }

    /// Checks everything but the rare settings.
    pub(crate) fn check_own(&self, limits: &Limits) -> Result<(), RefusalCode> {
        if self.weight() > limits.payload_bytes_max as usize {
            return Err(RefusalCode::TooLarge);
        }
        let attempts = 1..=limits.attempts_max;
        let lifetimes = limits.ttl_ms_min..=limits.ttl_ms_max;
        let fits = self.priority.is_none_or(|priority| priority <= PRIORITY_MAX)
            && self.max_attempts.is_none_or(|count| attempts.contains(&count))
            && self.ttl_ms.is_none_or(|ttl_ms| lifetimes.contains(&ttl_ms))
            && self.delay_ms.is_none_or(|delay_ms| delay_ms <= limits.delay_ms_max)
            && self.backoff.is_none_or(|backoff| backoff.base_ms <= backoff.cap_ms)
            && !(self.run_at_ms.is_some() && self.delay_ms.is_some());
        if fits { Ok(()) } else { Err(RefusalCode::BadValue) }
    }
}

impl Shard {
    pub(crate) fn apply_enqueue(
        &mut self,
        batch: &mut Batch,
        namespace: &Namespace,
        order: Enqueue,
        hashes: BodyHashes,
    ) -> Reply {
        match self.enqueue(batch, namespace, order, hashes) {
            Ok((id, created)) => Reply::Enqueued { id, created },
            Err(code) => Reply::refused(code),
        }
    }

    fn enqueue(
        &mut self,
        batch: &mut Batch,
        namespace: &Namespace,
        order: Enqueue,
        hashes: BodyHashes,
    ) -> Result<(TaskId, bool), RefusalCode> {
        let name_hash = task_hash(namespace.as_str(), order.id.as_str());
        let known = match self.find_task_hashed(namespace, &order.id, name_hash) {
            Some(slot) => self.core.tasks.get(slot).map(|task| task.body_hash),
            None => self.gone_body(namespace, &order.id),
        };
        if let Some(body) = known {
            return match body == hashes.body {
                true => Ok((order.id, false)),
                false => Err(RefusalCode::Conflict),
            };
        }
        order.check(&self.core.limits)?;
        self.check_key_free(namespace, &order.id)?;
        self.check_room(order.weight() as u64)?;
        self.check_quota(namespace, order.weight() as u64)?;
        self.check_deadline(&order)?;
        let queue = self.open_queue(namespace, &order.queue)?;
        let settings = &self.core.queues[queue as usize].settings;
        let line = &self.index.lines[queue as usize];
        if settings.pending_max > 0 && line.pending() >= settings.pending_max {
            return Err(RefusalCode::QueueFull);
        }
        self.check_dead(queue)?;
        if order.options.as_ref().is_some_and(|options| !line.has_room_for(&options.labels)) {
            return Err(RefusalCode::TooManyLabelSets);
        }
        if settings.paused && planted::active(Bug::PausedEnqueueDropped) {
            return Ok((order.id, true));
        }
        let id = order.id.clone();
        self.bear(batch, order, hashes, queue, name_hash, None);
        Ok((id, true))
    }

    /// Adds a checked task. A follow-up brings its parent's key limit along.
    pub(crate) fn bear(
        &mut self,
        batch: &mut Batch,
        order: Enqueue,
        hashes: BodyHashes,
        queue: u32,
        name_hash: u64,
        key_limit: Option<u16>,
    ) {
        self.core.sequence += 1;
        let sequence = self.core.sequence;
        let settings = &self.core.queues[queue as usize].settings;
        let key_limit = key_limit.unwrap_or(settings.key_limit);
        let birth = Birth { now_ms: self.core.time_ms, sequence, key_limit };
        let mut task = new_task(order, hashes, queue, settings, birth);
        let recall = self.recall_first(&task);
        if recall.is_some_and(|(_, memory)| memory != self.core.shard) {
            task.wait_for_recall(birth.now_ms);
        }
        let slot = self.insert_task(batch, task, name_hash);
        if let Some((key, memory)) = recall {
            self.recall_result(batch, slot, key, memory);
        }
    }

    /// Refuses a key that is a job's: only the job makes tasks under it.
    fn check_key_free(&self, namespace: &Namespace, id: &TaskId) -> Result<(), RefusalCode> {
        if self.core.jobs.is_empty() {
            return Ok(());
        }
        let job = id.key().and_then(|key| JobId::parse(key).ok());
        match job.is_some_and(|job| self.job(namespace, &job).is_some()) {
            true => Err(RefusalCode::KeyConflict),
            false => Ok(()),
        }
    }

    /// Refuses a task that could never be claimed.
    fn check_deadline(&self, order: &Enqueue) -> Result<(), RefusalCode> {
        let Some(options) = &order.options else {
            return Ok(());
        };
        let now_ms = self.core.time_ms;
        let ends_ms = match (options.deadline_ms, options.deadline_in_ms) {
            (Some(deadline_ms), _) => deadline_ms,
            (None, Some(in_ms)) if in_ms > 0 => now_ms.saturating_add(in_ms),
            _ => return Ok(()),
        };
        if ends_ms <= now_ms {
            return Err(RefusalCode::DeadlinePassed);
        }
        match due_ms(order, now_ms) >= ends_ms {
            true => Err(RefusalCode::BadValue),
            false => Ok(()),
        }
    }

    /// Refuses when the shard holds as many unfinished tasks, or bytes of them, as it may.
    pub(crate) fn check_room(&self, payload_bytes: u64) -> Result<(), RefusalCode> {
        self.check_room_beyond(payload_bytes, (0, 0))
    }

    /// The same with so many tasks and bytes beyond those bounds.
    pub(crate) fn check_room_beyond(
        &self,
        payload_bytes: u64,
        (more_tasks, more_bytes): (u64, u64),
    ) -> Result<(), RefusalCode> {
        let limits = &self.core.limits;
        let tasks_max = limits.pending_tasks_max.saturating_add(more_tasks);
        let bytes_max = limits.pending_bytes_max.saturating_add(more_bytes);
        let bytes = self.index.pending_bytes.saturating_add(payload_bytes);
        match self.pending_tasks() >= tasks_max || bytes > bytes_max {
            true => Err(RefusalCode::QueueFull),
            false => Ok(()),
        }
    }
}

/// Hashes of an enqueue order, taken once and used for both kinds of dedup.
#[derive(Clone, Copy)]
pub(crate) struct BodyHashes {
    pub(crate) payload: u64,
    pub(crate) body: u64,
}

impl BodyHashes {
    pub(crate) fn of(order: &Enqueue) -> BodyHashes {
        let payload = xxh3_64(&order.payload);
        BodyHashes { payload, body: order.body_hash(payload) }
    }
}

/// Log time at which a task submitted now is ready.
fn due_ms(order: &Enqueue, now_ms: u64) -> u64 {
    let delayed_ms = order.delay_ms.map(|delay_ms| now_ms.saturating_add(delay_ms));
    order.run_at_ms.or(delayed_ms).unwrap_or(now_ms).max(now_ms)
}

fn new_task(
    order: Enqueue,
    hashes: BodyHashes,
    queue: u32,
    settings: &QueueSettings,
    birth: Birth,
) -> Task {
    let now_ms = birth.now_ms;
    let due_ms = due_ms(&order, now_ms);
    Task {
        extras: Extras::of(&order.id, order.options.as_deref(), settings, birth),
        id: order.id,
        payload: order.payload,
        history: None,
        body_hash: hashes.body,
        payload_hash: hashes.payload,
        digest: 0,
        fence: Fence::default(),
        enqueued_ms: now_ms,
        moment_ms: due_ms,
        sequence: birth.sequence,
        queue,
        ttl_ms: order.ttl_ms.unwrap_or(settings.ttl_ms),
        backoff: order.backoff.unwrap_or(settings.backoff),
        attempt: 0,
        max_attempts: order.max_attempts.unwrap_or(settings.max_attempts),
        priority: order.priority.unwrap_or(PRIORITY_DEFAULT),
        state: if due_ms > now_ms { TaskState::Scheduled } else { TaskState::Ready },
        dead_reason: None,
    }
}
