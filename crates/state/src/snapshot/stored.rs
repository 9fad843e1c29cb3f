//! Records whose stored form differs from the one in memory.

use std::sync::Arc;

use minicbor::{Decode, Encode};
use xxhash_rust::xxh3::xxh3_64;

use crate::task::{DeadReason, Extras, History, Task, TaskState};
use crate::{Backoff, Fence, SharedBytes, TaskId};

/// A task with its slot; the payload hash and the digest are computed anew on restore.
#[derive(Clone, Debug, Encode, Decode)]
pub(crate) struct StoredTask {
    #[n(0)]
    pub(crate) slot: u32,
    #[n(1)]
    id: TaskId,
    #[n(2)]
    payload: SharedBytes,
    #[n(3)]
    history: Option<History>,
    #[n(4)]
    body_hash: u64,
    #[n(5)]
    fence: Fence,
    #[n(6)]
    enqueued_ms: u64,
    #[n(7)]
    moment_ms: u64,
    #[n(8)]
    sequence: u64,
    #[n(9)]
    pub(crate) queue: u32,
    #[n(10)]
    ttl_ms: u32,
    #[n(11)]
    backoff: Backoff,
    #[n(12)]
    attempt: u16,
    #[n(13)]
    max_attempts: u16,
    #[n(14)]
    priority: u8,
    #[n(15)]
    state: TaskState,
    #[n(16)]
    dead_reason: Option<DeadReason>,
    #[n(17)]
    extras: Option<Extras>,
}

impl StoredTask {
    /// The stored form of a task.
    pub(crate) fn of(slot: u32, task: &Task) -> StoredTask {
        StoredTask {
            slot,
            id: task.id.clone(),
            payload: task.payload.clone(),
            history: task.history.as_deref().cloned(),
            body_hash: task.body_hash,
            fence: task.fence,
            enqueued_ms: task.enqueued_ms,
            moment_ms: task.moment_ms,
            sequence: task.sequence,
            queue: task.queue,
            ttl_ms: task.ttl_ms,
            backoff: task.backoff,
            attempt: task.attempt,
            max_attempts: task.max_attempts,
            priority: task.priority,
            state: task.state,
            dead_reason: task.dead_reason,
            extras: task.extras.as_deref().cloned(),
        }
    }

    /// The task with everything derived filled in.
    pub(crate) fn into_task(self, scratch: &mut Vec<u8>) -> Task {
        let mut task = Task {
            payload_hash: xxh3_64(&self.payload),
            id: self.id,
            payload: self.payload,
            history: self.history.map(Arc::new),
            body_hash: self.body_hash,
            digest: 0,
            fence: self.fence,
            enqueued_ms: self.enqueued_ms,
            moment_ms: self.moment_ms,
            sequence: self.sequence,
            queue: self.queue,
            ttl_ms: self.ttl_ms,
            backoff: self.backoff,
            attempt: self.attempt,
            max_attempts: self.max_attempts,
            priority: self.priority,
            state: self.state,
            dead_reason: self.dead_reason,
            extras: self.extras.map(Arc::new),
        };
        task.digest = task.compute_digest(self.slot, scratch);
        task
    }
}

/// The stored form of a task that stays where it is: the same bytes as those of [`StoredTask`], without a copy of
/// anything. A snapshot writes millions.
#[derive(Debug, Encode)]
pub(crate) struct TaskLine<'a> {
    #[n(0)]
    slot: u32,
    #[n(1)]
    id: &'a TaskId,
    #[n(2)]
    payload: &'a SharedBytes,
    #[n(3)]
    history: Option<&'a History>,
    #[n(4)]
    body_hash: u64,
    #[n(5)]
    fence: Fence,
    #[n(6)]
    enqueued_ms: u64,
    #[n(7)]
    moment_ms: u64,
    #[n(8)]
    sequence: u64,
    #[n(9)]
    queue: u32,
    #[n(10)]
    ttl_ms: u32,
    #[n(11)]
    backoff: Backoff,
    #[n(12)]
    attempt: u16,
    #[n(13)]
    max_attempts: u16,
    #[n(14)]
    priority: u8,
    #[n(15)]
    state: TaskState,
    #[n(16)]
    dead_reason: Option<DeadReason>,
    #[n(17)]
    extras: Option<&'a Extras>,
}

impl<'a> TaskLine<'a> {
    /// The line of a task.
    pub(crate) fn of(slot: u32, task: &'a Task) -> TaskLine<'a> {
        TaskLine {
            slot,
            id: &task.id,
            payload: &task.payload,
            history: task.history.as_deref(),
            body_hash: task.body_hash,
            fence: task.fence,
            enqueued_ms: task.enqueued_ms,
            moment_ms: task.moment_ms,
            sequence: task.sequence,
            queue: task.queue,
            ttl_ms: task.ttl_ms,
            backoff: task.backoff,
            attempt: task.attempt,
            max_attempts: task.max_attempts,
            priority: task.priority,
            state: task.state,
            dead_reason: task.dead_reason,
            extras: task.extras.as_deref(),
        }
    }
}

/// Ends a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Trailer {
    /// Records before this one.
    #[n(0)]
    pub(crate) records: u64,
    /// Hash of the frozen state.
    #[n(1)]
    pub(crate) hash: u64,
}
