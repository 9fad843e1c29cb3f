//! Tasks: how they are submitted, what became of each, and how they look.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::problem::Problem;
use crate::v1::{Number, ProgressBody, RawBytes, WorkInfo, WorkInput};

fn is_zero(count: &u16) -> bool {
    *count == 0
}

fn is_none_dropped(count: &u32) -> bool {
    *count == 0
}

/// One task to submit. Everything but the queue has a default; the queue's own is `default`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewTask {
    /// The task's id, unique in the namespace, or within its key. When absent it is derived from the Idempotency-Key and
    /// the place in the list, so that a resend finds the same task. May be a whole handle, `key:id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Ordering key: tasks with the same key live together, and those of one queue are handed out in order. The task's
    /// handle is then `key:id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Most tasks of the key that may run at one time in the queue: 1 is strict order, 0 no limit and no order. The
    /// queue's setting when absent; only with a key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_limit: Option<u16>,
    /// The queue; `default` when absent. A queue comes into being with its first task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// What to do, as any JSON value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub payload: Option<Box<RawValue>>,
    /// What to do, as bytes in base64; instead of `payload`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_base64: Option<String>,
    /// What to do, as a byte string; only in CBOR, instead of the other two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub payload_bytes: Option<RawBytes>,
    /// 0 to 9, 9 first; 5 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// Not before this time (ms since 1970); not together with `delay_ms`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_at_ms: Option<u64>,
    /// Not before this many ms from now; not together with `run_at_ms`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
    /// Most attempts; the queue's setting when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u16>,
    /// How long a claim lives without renewal; the queue's setting when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u32>,
    /// Waits between attempts; the queue's setting when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff: Option<BackoffBody>,
    /// What the worker must have: only claims that carry all of these labels, with these values, are handed the task.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Longest time for a whole attempt, renewed or not; 0 is no limit. The queue's setting when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u32>,
    /// Not begun at or after this time (ms since 1970): the task is then dead. Not together with `deadline_in_ms`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
    /// The same, as ms from now; 0 is no deadline. The queue's setting when both are absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_in_ms: Option<u64>,
    /// How long the finished task is kept, whatever the queue's settings say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention_ms: Option<u64>,
    /// Follow-ups: submitted in the same step in which this task is completed, with handles that begin with this
    /// task's key (or id, if it has no key).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub then: Vec<NewTask>,
    /// The program to run, by name; absent for a plain task, whose worker knows what to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// What to call inside the program; its default when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
    /// Settings for the program. Every attempt sees them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// What the program reads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<WorkInput>,
    /// Whether the result of the same program, settings, payload and inputs, by their digests, may be used instead of running it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reuse: bool,
}

impl NewTask {
    /// The same task with a JSON payload given as the bytes of its text, as CBOR wants it.
    pub fn with_raw_payload(mut self) -> NewTask {
        if let (Some(json), None) = (&self.payload, &self.payload_bytes) {
            self.payload_bytes = Some(RawBytes(json.get().as_bytes().to_vec()));
            self.payload = None;
        }
        self.then = self.then.into_iter().map(NewTask::with_raw_payload).collect();
        self
    }
}

/// Waits between attempts: `base_ms` doubled for each failure, at most `cap_ms`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BackoffBody {
    /// Wait after the first failure.
    pub base_ms: u32,
    /// Longest wait.
    pub cap_ms: u32,
}

/// Several tasks to submit at once. Each has an outcome of its own.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EnqueueBatch {
    /// The tasks, at least one.
    pub tasks: Vec<NewTask>,
}

/// What became of each submitted task, in the order given.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct EnqueueAnswer {
    /// The request id; resending under it is safe.
    pub request: String,
    /// One outcome per task.
    pub tasks: Vec<ItemOutcome>,
}

/// What became of one item of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ItemOutcome {
    /// The task's handle; empty when the item could not be read that far.
    pub id: String,
    /// What happened.
    pub outcome: OutcomeKind,
    /// Where it was written, `shard:term:index`; absent when nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lsn: Option<String>,
    /// New lifetime of a renewed claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// When a failed task becomes ready again, in log time; absent when that is now or never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at_ms: Option<u64>,
    /// Why it was refused or not decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<Box<Problem>>,
}

/// The kinds of outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeKind {
    /// The task was created by this request.
    Created,
    /// The task existed already with the same body.
    Existing,
    /// The task is done.
    Completed,
    /// The attempt failed; the task will be tried again.
    Retrying,
    /// The attempt failed and was the last one.
    Dead,
    /// The task is cancelled.
    Cancelled,
    /// The task is ready again, with fresh attempts.
    Retried,
    /// The finished task is removed.
    Dropped,
    /// One step of a job on many tasks is done.
    Swept,
    /// The claim lives on.
    Renewed,
    /// The queue's settings are stored.
    Stored,
    /// Refused for good; `problem` says why.
    Refused,
    /// It may or may not have happened: resend with the same key.
    Unknown,
    /// It did not happen through this request: try again.
    Unavailable,
}

impl OutcomeKind {
    /// Whether the item is settled, so that a resend cannot change its outcome.
    pub fn is_settled(self) -> bool {
        !matches!(self, Self::Unknown | Self::Unavailable)
    }
}

/// Where a task stands.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum TaskStateName {
    /// Waits for its time.
    Scheduled,
    /// Waits for a worker.
    Ready,
    /// Held by a worker.
    Claimed,
    /// Completed.
    Done,
    /// Gave up after the last attempt.
    Dead,
    /// Cancelled.
    Cancelled,
}

impl TaskStateName {
    /// All states, in the order of a task's life.
    pub const ALL: [TaskStateName; 6] =
        [Self::Scheduled, Self::Ready, Self::Claimed, Self::Done, Self::Dead, Self::Cancelled];

    /// The public word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::Ready => "ready",
            Self::Claimed => "claimed",
            Self::Done => "done",
            Self::Dead => "dead",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether nothing can happen to it any more.
    pub fn is_finished(self) -> bool {
        matches!(self, Self::Done | Self::Dead | Self::Cancelled)
    }
}

impl std::str::FromStr for TaskStateName {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|state| state.as_str() == text).ok_or_else(|| {
            "must be one of scheduled, ready, claimed, done, dead, cancelled".to_owned()
        })
    }
}

/// A task as it stands.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Task {
    /// Its handle: `id`, or `key:id` if it has a key.
    pub id: String,
    /// Its key, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Most tasks of its key that run at one time in its queue; absent when its key does not limit it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_limit: Option<u16>,
    /// Its queue.
    pub queue: String,
    /// Where it stands.
    pub state: TaskStateName,
    /// 0 to 9, 9 first.
    pub priority: u8,
    /// Attempts begun so far; counted when a worker claims.
    pub attempts_begun: u16,
    /// Most attempts.
    pub max_attempts: u16,
    /// Lifetime of a claim.
    pub ttl_ms: u32,
    /// Waits between attempts.
    pub backoff: BackoffBody,
    /// What the worker must have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Longest time for a whole attempt; absent when there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u32>,
    /// Not begun at or after this log time; absent when there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
    /// How long it is kept when finished; absent when the queue decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention_ms: Option<u64>,
    /// Handles of its follow-ups.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub then: Vec<String>,
    /// What it runs; absent for a plain task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<Box<WorkInfo>>,
    /// How many outputs it published.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub outputs: u16,
    /// When it was submitted, in log time.
    pub created_ms: u64,
    /// When it becomes ready, in log time; absent unless scheduled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_at_ms: Option<u64>,
    /// When it was finished, in log time; absent before that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_ms: Option<u64>,
    /// The live claim's worker; absent when nobody holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// The live claim's fence; absent when nobody holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fence: Option<Number>,
    /// How far the running attempt is, if its worker says so; only where one task is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<ProgressBody>,
    /// What to do, when it is a JSON value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub payload: Option<Box<RawValue>>,
    /// What to do, when it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_base64: Option<String>,
    /// What to do, as a byte string; only in CBOR, instead of the other two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub payload_bytes: Option<RawBytes>,
    /// The result, when it is a JSON value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub result: Option<Box<RawValue>>,
    /// The result, when it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_base64: Option<String>,
    /// The result, as a byte string; only in CBOR, instead of the other two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub result_bytes: Option<RawBytes>,
    /// Why it is dead: `attempts_exhausted`, `not_retryable`, `claim_expired`, `timed_out` or `deadline_passed`; absent
    /// otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dead_reason: Option<String>,
    /// The newest attempts, oldest first.
    pub attempts: Vec<AttemptInfo>,
    /// How many earlier attempts are no longer kept; the newest 32 are. Of those that were not counted nothing is known.
    #[serde(default, skip_serializing_if = "is_none_dropped")]
    pub attempts_dropped: u32,
}

/// One attempt at a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AttemptInfo {
    /// Its fence.
    pub fence: Number,
    /// Who held it.
    pub worker: String,
    /// When it began, in log time.
    pub started_ms: u64,
    /// When it ended; absent while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<u64>,
    /// How it ended: `running`, `completed`, `failed`, `expired`, `timed_out`, `returned` and `outrun` (not counted) or `cancelled`.
    pub outcome: String,
    /// What the worker said went wrong, cut short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Digest of the program that it ran; absent for a function inside the worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program_digest: Option<String>,
    /// Digest of what it read, over names and contents of all inputs; absent if one is known by its address alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs_digest: Option<String>,
    /// Digest of the files that it brought, over their names and contents; only of the attempt that counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outputs_digest: Option<String>,
}

/// A page of tasks, in no particular order. Tasks that change meanwhile may be missed or met twice.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TaskPage {
    /// The tasks.
    pub tasks: Vec<Task>,
    /// Pass this as `after` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

impl Task {
    /// The stored payload, byte for byte.
    pub fn payload(&self) -> Result<Vec<u8>, crate::v1::BodyError> {
        let (json, base64) = (self.payload.as_deref(), self.payload_base64.as_deref());
        crate::v1::Body::bytes(json, base64, self.payload_bytes.as_ref())
    }

    /// The stored result, byte for byte.
    pub fn result(&self) -> Result<Vec<u8>, crate::v1::BodyError> {
        let (json, base64) = (self.result.as_deref(), self.result_base64.as_deref());
        crate::v1::Body::bytes(json, base64, self.result_bytes.as_ref())
    }
}
