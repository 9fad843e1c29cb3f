//! What is stored about one task, and its digest.
//!
//! Records are compact (about 120 bytes plus id and payload) because millions wait at once; what
//! only claimed and finished tasks need sits behind one pointer (`History`).

use std::sync::Arc;

use minicbor::{Decode, Encode};

use super::Extras;
use crate::hash::{RecordKind, digest_bytes};
use crate::limits::{Limits, PRIORITY_MAX};
use crate::planted::{self, Bug};
use crate::{Backoff, Digest, Fence, SessionId, SharedBytes, TaskId, WorkerId};

/// Where a task is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
#[cbor(index_only)]
pub enum TaskState {
    /// Waits for its time.
    #[n(0)]
    Scheduled = 0,
    /// May be claimed.
    #[n(1)]
    Ready = 1,
    /// Held by one worker.
    #[n(2)]
    Claimed = 2,
    /// Completed. Terminal.
    #[n(3)]
    Done = 3,
    /// Out of attempts, or not to be retried. Terminal.
    #[n(4)]
    Dead = 4,
    /// Cancelled. Terminal.
    #[n(5)]
    Cancelled = 5,
}

impl TaskState {
    /// All states.
    pub const ALL: [TaskState; 6] = [
        TaskState::Scheduled,
        TaskState::Ready,
        TaskState::Claimed,
        TaskState::Done,
        TaskState::Dead,
        TaskState::Cancelled,
    ];

    /// Whether the state never changes again.
    pub fn is_terminal(self) -> bool {
        matches!(self, TaskState::Done | TaskState::Dead | TaskState::Cancelled)
    }

    /// The state as public text.
    pub fn as_str(self) -> &'static str {
        match self {
            TaskState::Scheduled => "scheduled",
            TaskState::Ready => "ready",
            TaskState::Claimed => "claimed",
            TaskState::Done => "done",
            TaskState::Dead => "dead",
            TaskState::Cancelled => "cancelled",
        }
    }
}

/// Why a task is dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum DeadReason {
    /// The last allowed attempt failed.
    #[n(0)]
    AttemptsExhausted = 0,
    /// The worker said that a retry is of no use.
    #[n(1)]
    NotRetryable = 1,
    /// The claim of the last allowed attempt expired.
    #[n(2)]
    ClaimExpired = 2,
    /// The last allowed attempt took longer than its timeout.
    #[n(3)]
    TimedOut = 3,
    /// Nobody claimed it before its deadline.
    #[n(4)]
    DeadlinePassed = 4,
}

impl DeadReason {
    /// The reason as public text.
    pub fn as_str(self) -> &'static str {
        match self {
            DeadReason::AttemptsExhausted => "attempts_exhausted",
            DeadReason::NotRetryable => "not_retryable",
            DeadReason::ClaimExpired => "claim_expired",
            DeadReason::TimedOut => "timed_out",
            DeadReason::DeadlinePassed => "deadline_passed",
        }
    }
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub enum AttemptOutcome {
    /// It has not ended.
    #[n(0)]
    Running,
    /// The task was completed.
    #[n(1)]
    Completed,
    /// It failed; the task was ready again at this log time.
    #[n(2)]
    Failed {
        /// Log time in ms.
        #[n(0)]
        ready_ms: u64,
    },
    /// It failed and the task died.
    #[n(3)]
    FailedDead,
    /// Its claim expired.
    #[n(4)]
    Expired,
    /// It was returned and not counted.
    #[n(5)]
    Unclaimed,
    /// The task was cancelled meanwhile.
    #[n(6)]
    Cancelled,
    /// It took longer than the task's timeout.
    #[n(7)]
    TimedOut,
    /// Another attempt that ran beside it was done first. Not counted: the other one is.
    #[n(8)]
    Outrun,
}

/// One try at a task.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Attempt {
    #[n(0)]
    pub(crate) fence: Fence,
    #[n(1)]
    pub(crate) worker: WorkerId,
    #[n(2)]
    pub(crate) session: SessionId,
    #[n(3)]
    pub(crate) started_ms: u64,
    /// 0 while it runs.
    #[n(4)]
    pub(crate) ended_ms: u64,
    #[n(5)]
    pub(crate) outcome: AttemptOutcome,
    #[n(6)]
    pub(crate) error: Option<SharedBytes>,
}

/// Attempts and result of a task that was claimed at least once.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct History {
    /// The newest attempt.
    #[n(0)]
    pub(crate) newest: Attempt,
    /// Earlier attempts, oldest first, bounded.
    #[n(1)]
    pub(crate) earlier: Vec<Attempt>,
    #[n(2)]
    pub(crate) result: Option<SharedBytes>,
    /// Attempts that counted before the task was last given fresh ones.
    #[n(3)]
    #[cbor(default)]
    pub(crate) spent: u32,
    /// How many outputs the completion published.
    #[n(4)]
    #[cbor(default)]
    pub(crate) outputs: u16,
    /// Whether an attempt left a checkpoint that is still there; none is no.
    #[n(5)]
    pub(crate) checkpoint: Option<bool>,
    /// Digest of what the completion published, by names and contents; none if it is not recorded.
    #[n(6)]
    pub(crate) outputs_digest: Option<Box<Digest>>,
}

impl History {
    /// The history of a task at its first claim.
    pub(crate) fn beginning(newest: Attempt) -> History {
        History {
            newest,
            earlier: Vec::new(),
            result: None,
            spent: 0,
            outputs: 0,
            checkpoint: None,
            outputs_digest: None,
        }
    }

    /// The attempt of a fence, if it is still kept.
    pub(crate) fn attempt(&self, fence: Fence) -> Option<&Attempt> {
        if self.newest.fence == fence {
            return Some(&self.newest);
        }
        self.earlier.iter().find(|attempt| attempt.fence == fence)
    }
}

/// One task as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Task {
    pub(crate) id: TaskId,
    pub(crate) payload: SharedBytes,
    /// None until the first claim.
    pub(crate) history: Option<Arc<History>>,
    /// None for a task without rare settings.
    pub(crate) extras: Option<Arc<Extras>>,
    /// Hash of the enqueue order as given, to tell a resend from a conflict.
    pub(crate) body_hash: u64,
    /// Hash of the payload, so that digests need not read it again.
    pub(crate) payload_hash: u64,
    /// This record's share of the state hash.
    pub(crate) digest: u64,
    /// Token of the newest claim; 0 if never claimed.
    pub(crate) fence: Fence,
    pub(crate) enqueued_ms: u64,
    /// Scheduled: when it becomes ready. Finished: when it finished. Else when it became ready.
    pub(crate) moment_ms: u64,
    /// Place in line among ready, scheduled or finished tasks.
    pub(crate) sequence: u64,
    pub(crate) queue: u32,
    pub(crate) ttl_ms: u32,
    pub(crate) backoff: Backoff,
    /// Claims that count so far.
    pub(crate) attempt: u16,
    pub(crate) max_attempts: u16,
    pub(crate) priority: u8,
    pub(crate) state: TaskState,
    pub(crate) dead_reason: Option<DeadReason>,
}

impl Task {
    /// Order among ready tasks of a queue: priority first, then place in line.
    pub(crate) fn ready_key(&self) -> u64 {
        const PRIORITY_SHIFT: u32 = 60;
        let rank = u64::from(PRIORITY_MAX.saturating_sub(self.priority));
        rank << PRIORITY_SHIFT | self.sequence & ((1 << PRIORITY_SHIFT) - 1)
    }

    /// Bytes that count against the shard's byte bounds.
    pub(crate) fn weight(&self) -> u64 {
        let result = self.history.as_ref().and_then(|history| history.result.as_ref());
        let extras = self.extras.as_ref().map_or(0, |extras| extras.weight());
        self.payload.len() as u64 + result.map_or(0, |result| result.len() as u64) + extras
    }

    /// The key that orders or caps this task, if one does.
    pub(crate) fn ordering_key(&self) -> Option<&str> {
        match &self.extras {
            Some(extras) if extras.key_limit > 0 => self.id.key(),
            _ => None,
        }
    }

    /// Whether the task counts in the line of its key. One that waits for its first time does not
    /// hold up those behind it; one that waits for a retry does.
    pub(crate) fn is_in_key_line(&self) -> bool {
        match self.state {
            TaskState::Ready | TaskState::Claimed => true,
            TaskState::Scheduled => {
                self.history.is_some() && !planted::active(Bug::KeyOrderLostOnRetry)
            }
            TaskState::Done | TaskState::Dead | TaskState::Cancelled => false,
        }
    }

    /// Log time from which on the task is not claimed; 0 if there is none.
    pub(crate) fn deadline_ms(&self) -> u64 {
        self.extras.as_ref().map_or(0, |extras| extras.deadline_ms)
    }

    /// Place among the deadlines, while the task waits.
    pub(crate) fn deadline_place(&self) -> Option<(u64, u64)> {
        let extras = self.extras.as_ref()?;
        let waits = matches!(self.state, TaskState::Scheduled | TaskState::Ready);
        (waits && extras.deadline_ms > 0).then_some((extras.deadline_ms, extras.place))
    }

    /// Log time until which the finished task is kept by its own wish.
    pub(crate) fn kept_until_ms(&self) -> Option<u64> {
        let retention_ms = self.extras.as_ref()?.retention_ms?;
        Some(self.moment_ms.saturating_add(retention_ms))
    }

    /// Which part of a job it is, if it is one.
    pub(crate) fn job_part(&self) -> Option<&crate::JobPart> {
        self.extras.as_ref()?.work.as_ref()?.job.as_ref()
    }

    /// Whether it runs beside another task of its job.
    pub(crate) fn is_twin(&self) -> bool {
        self.job_part().is_some_and(crate::JobPart::is_twin)
    }

    /// Whether it is a task of a job.
    pub(crate) fn is_part_of_job(&self) -> bool {
        let work = self.extras.as_ref().and_then(|extras| extras.work.as_ref());
        work.is_some_and(|work| work.job.is_some())
    }

    /// Longest time for a whole attempt; 0 if there is none.
    pub(crate) fn timeout_ms(&self) -> u32 {
        self.extras.as_ref().map_or(0, |extras| extras.timeout_ms)
    }

    /// The record's share of the state hash, from every field and its place.
    pub(crate) fn compute_digest(&self, slot: u32, scratch: &mut Vec<u8>) -> u64 {
        scratch.clear();
        let words = [
            u64::from(slot) << 32 | u64::from(self.queue),
            self.body_hash,
            self.payload_hash,
            self.fence.0,
            self.enqueued_ms,
            self.moment_ms,
            self.sequence,
            u64::from(self.ttl_ms) << 32 | u64::from(self.backoff.base_ms),
            u64::from(self.backoff.cap_ms) << 32
                | u64::from(self.attempt) << 16
                | u64::from(self.max_attempts),
            u64::from(self.priority) << 16
                | (self.state as u64) << 8
                | self.dead_reason.map_or(0, |reason| 1 + reason as u64),
        ];
        let mut fixed = [0u8; 80];
        for (place, word) in fixed.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        scratch.extend_from_slice(&fixed);
        scratch.extend_from_slice(self.id.as_str().as_bytes());
        if let Some(history) = &self.history {
            digest_history(history, scratch);
        }
        if let Some(extras) = &self.extras {
            extras.digest_into(scratch);
        }
        digest_bytes(RecordKind::Task, scratch)
    }

    /// Whether a decoded record obeys every rule that the verbs rely on.
    pub(crate) fn is_valid(&self, queues: usize, limits: &Limits, highest_fence: Fence) -> bool {
        let claimed = self.state == TaskState::Claimed;
        let running = self
            .history
            .as_ref()
            .is_some_and(|history| history.newest.outcome == AttemptOutcome::Running);
        let newest = self.history.as_ref().map(|history| history.newest.fence);
        let published = self.history.as_ref().is_some_and(|history| history.outputs > 0);
        let kept = self.history.as_ref().map_or(0, |history| history.earlier.len());
        (self.queue as usize) < queues
            && self.priority <= PRIORITY_MAX
            && self.payload.len() <= limits.payload_bytes_max as usize
            && (1..=limits.attempts_max).contains(&self.max_attempts)
            && self.attempt <= self.max_attempts
            && claimed == running
            && (!published || self.state == TaskState::Done)
            && (published || self.history.as_ref().is_none_or(|it| it.outputs_digest.is_none()))
            && self.fence == newest.unwrap_or_default()
            && self.fence <= highest_fence
            && kept < limits.attempts_kept_max.max(1) as usize
            && (self.state == TaskState::Dead) == self.dead_reason.is_some()
            && self.extras.as_ref().is_none_or(|extras| extras.is_valid(&self.id, limits))
    }
}

fn digest_history(history: &History, scratch: &mut Vec<u8>) {
    for attempt in history.earlier.iter().chain([&history.newest]) {
        let (kind, detail) = match attempt.outcome {
            AttemptOutcome::Running => (0u64, 0),
            AttemptOutcome::Completed => (1, 0),
            AttemptOutcome::Failed { ready_ms } => (2, ready_ms),
            AttemptOutcome::FailedDead => (3, 0),
            AttemptOutcome::Expired => (4, 0),
            AttemptOutcome::Unclaimed => (5, 0),
            AttemptOutcome::Cancelled => (6, 0),
            AttemptOutcome::TimedOut => (7, 0),
            AttemptOutcome::Outrun => (8, 0),
        };
        let error = attempt.error.as_deref().unwrap_or(&[]);
        let lengths = (attempt.worker.as_str().len() as u64) << 32 | error.len() as u64;
        let words = [
            attempt.fence.0,
            attempt.session.0,
            attempt.started_ms,
            attempt.ended_ms,
            kind,
            detail,
            lengths,
        ];
        for word in words {
            scratch.extend_from_slice(&word.to_le_bytes());
        }
        scratch.extend_from_slice(attempt.worker.as_str().as_bytes());
        scratch.extend_from_slice(error);
    }
    if let Some(result) = &history.result {
        scratch.extend_from_slice(&(result.len() as u64 + 1).to_le_bytes());
        scratch.extend_from_slice(result);
    }
    if history.spent > 0 {
        scratch.extend_from_slice(&history.spent.to_le_bytes());
    }
    if history.outputs > 0 {
        scratch.extend_from_slice(&u64::from(history.outputs).to_le_bytes());
    }
    if history.checkpoint == Some(true) {
        scratch.extend_from_slice(b"checkpoint");
    }
    if let Some(digest) = &history.outputs_digest {
        scratch.extend_from_slice(b"outputs");
        scratch.extend_from_slice(&digest.0);
    }
}
