//! `then`: follow-ups, which come into being in the same entry as the completion of their parent.
//!
//! They live in their parent's shard, so their handles begin with its routing key. A completion
//! that finds no room for them is refused and may be sent again; one whose follow-up id exists
//! already, with whatever body, keeps that task: the work that was done stays done.
//!
//! Lists are stored encoded and each level is decoded on its own, so that no bytes, however deeply
//! nested, can exhaust the stack.

use minicbor::{Decoder, Encoder};

use super::Enqueue;
use crate::hash::encode_into;
use crate::ids::task_hash;
use crate::limits::{LABEL_SETS_MAX, Limits, THEN_COUNT_MAX, THEN_DEPTH_MAX};
use crate::planted::{self, Bug};
use crate::shard::{Batch, Shard};
use crate::task::BodyHashes;
use crate::{Namespace, RefusalCode, SharedBytes, TaskId, derive_follow_id};

/// Writes a list of follow-ups.
pub fn encode_then(tasks: &[Enqueue]) -> SharedBytes {
    let mut bytes = Vec::new();
    let head = Encoder::new(&mut bytes).array(tasks.len() as u64).map(|_| ());
    assert!(head.is_ok(), "encoding into memory failed");
    for task in tasks {
        encode_into(task, &mut bytes);
    }
    SharedBytes::from(bytes)
}

/// Reads a list of follow-ups; none if it is malformed or too long.
pub fn decode_then(bytes: &[u8]) -> Option<Vec<Enqueue>> {
    let mut decoder = Decoder::new(bytes);
    let count = decoder.array().ok()?? as usize;
    if count == 0 || count > THEN_COUNT_MAX {
        return None;
    }
    let mut tasks = Vec::with_capacity(count);
    for _ in 0..count {
        tasks.push(decoder.decode::<Enqueue>().ok()?);
    }
    (decoder.position() == bytes.len()).then_some(tasks)
}

/// Checks a list and all below it: names, bounds, number and depth.
pub(crate) fn check_then(
    parent: &TaskId,
    then: &[u8],
    limits: &Limits,
    depth: usize,
    left: &mut usize,
) -> Result<Vec<Enqueue>, RefusalCode> {
    if depth > THEN_DEPTH_MAX || then.len() > limits.payload_bytes_max as usize {
        return Err(RefusalCode::TooLarge);
    }
    let tasks = decode_then(then).ok_or(RefusalCode::BadValue)?;
    *left = left.checked_sub(tasks.len()).ok_or(RefusalCode::TooLarge)?;
    for task in &tasks {
        if task.id.key() != Some(parent.routing_key()) {
            return Err(RefusalCode::KeyConflict);
        }
        task.check_own(limits)?;
        if let Some(options) = &task.options {
            let below = options.then.as_ref();
            let own = crate::TaskOptions { then: None, ..(**options).clone() };
            own.check(&task.id, limits)?;
            if let Some(below) = below {
                check_then(&task.id, below, limits, depth + 1, left)?;
            }
        }
    }
    Ok(tasks)
}

/// The same follow-ups for another parent, each named after its own by its place; none of a list that cannot be read.
pub(crate) fn rename_then(parent: &TaskId, then: &[u8], depth: usize) -> Option<SharedBytes> {
    let mut tasks = decode_then(then).filter(|_| depth <= THEN_DEPTH_MAX)?;
    for (place, task) in tasks.iter_mut().enumerate() {
        let id = derive_follow_id(parent, 0, place as u32);
        task.id = TaskId::keyed(parent.routing_key(), &id).ok()?;
        if let Some(options) = &mut task.options
            && let Some(below) = &options.then
        {
            options.then = rename_then(&task.id, below, depth + 1);
        }
    }
    Some(encode_then(&tasks))
}

/// The level that understands all of these follow-ups.
pub(crate) fn then_level(then: Option<&SharedBytes>) -> u32 {
    let tasks = then.and_then(|then| decode_then(then)).unwrap_or_default();
    tasks.iter().map(Enqueue::level).max().unwrap_or(0)
}

impl Shard {
    /// The follow-ups of a completion, given with the task and with the completion, once there is
    /// room for all of them.
    pub(crate) fn follow_ups(
        &self,
        namespace: &Namespace,
        slot: u32,
        given: Option<&SharedBytes>,
    ) -> Result<Vec<Enqueue>, RefusalCode> {
        let Some(parent) = self.core.tasks.get(slot) else {
            return Err(RefusalCode::TaskNotFound);
        };
        let stored = parent.extras.as_ref().and_then(|extras| extras.then.as_ref());
        if stored.is_none() && given.is_none() {
            return Ok(Vec::new());
        }
        let mut tasks = stored.and_then(|then| decode_then(then)).unwrap_or_default();
        if let Some(given) = given {
            let mut left = crate::limits::THEN_TOTAL_MAX;
            tasks.extend(check_then(&parent.id, given, &self.core.limits, 1, &mut left)?);
        }
        self.check_follow_room(namespace, &tasks, parent.weight())?;
        Ok(tasks)
    }

    /// Refuses, for now, unless all of them fit within the shard's bounds. A queue's own bound on
    /// waiting tasks does not count: they were let in with their parent.
    fn check_follow_room(
        &self,
        namespace: &Namespace,
        tasks: &[Enqueue],
        leaving_bytes: u64,
    ) -> Result<(), RefusalCode> {
        let limits = &self.core.limits;
        let bytes: u64 = tasks.iter().map(|task| task.weight() as u64).sum();
        let staying = self.index.pending_bytes.saturating_sub(leaving_bytes);
        let count = (self.pending_tasks() + tasks.len() as u64).saturating_sub(1);
        let bytes = staying.saturating_add(bytes);
        // Schedules may have filled the shard beyond its bounds: what makes it no fuller is let in, or nothing would ever leave.
        let (count_before, bytes_before) = match self.core.dead_apart {
            true => (self.pending_tasks(), self.index.pending_bytes),
            false => (0, 0),
        };
        if count > limits.pending_tasks_max.max(count_before)
            || bytes > limits.pending_bytes_max.max(bytes_before)
        {
            return Err(RefusalCode::QueueFull);
        }
        let mut queues = self.core.queues.len();
        for task in tasks {
            let labels = task.options.as_ref().map(|options| &options.labels);
            let wants = labels.filter(|labels| !labels.is_empty());
            match self.find_queue(namespace, &task.queue) {
                None => queues += 1,
                Some(queue) => {
                    let line = &self.index.lines[queue as usize];
                    let fresh = wants.is_some_and(|labels| !line.knows_labels(labels));
                    if fresh && line.label_sets() + tasks.len() > LABEL_SETS_MAX {
                        return Err(RefusalCode::TooManyLabelSets);
                    }
                }
            }
        }
        match queues > limits.queues_max as usize && queues > self.core.queues.len() {
            true => Err(RefusalCode::TooManyQueues),
            false => Ok(()),
        }
    }

    /// Brings follow-ups into being. They take over their parent's key limit unless they name one.
    pub(crate) fn enqueue_follow_ups(
        &mut self,
        batch: &mut Batch,
        namespace: &Namespace,
        key_limit: u16,
        tasks: Vec<Enqueue>,
    ) {
        for task in tasks {
            let name_hash = task_hash(namespace.as_str(), task.id.as_str());
            if self.find_task_hashed(namespace, &task.id, name_hash).is_some() {
                continue;
            }
            let hashes = BodyHashes::of(&task);
            let queue = self.open_queue_unbounded(namespace, &task.queue);
            self.bear(batch, task, hashes, queue, name_hash, Some(key_limit));
        }
    }

    /// A planted defect: a resent completion brings its follow-ups again, under other names.
    pub(crate) fn double_follow_ups(
        &mut self,
        batch: &mut Batch,
        namespace: &Namespace,
        slot: u32,
    ) {
        if !planted::active(Bug::ThenDoubledOnResend) {
            return;
        }
        let mut tasks = self.follow_ups(namespace, slot, None).unwrap_or_default();
        for task in &mut tasks {
            let (key, id) = (task.id.routing_key(), format!("{}-again", task.id.bare_id()));
            if let Ok(renamed) = TaskId::keyed(key, &id) {
                task.id = renamed;
            }
        }
        self.enqueue_follow_ups(batch, namespace, 0, tasks);
    }
}
