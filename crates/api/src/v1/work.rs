//! What workers say: claim, complete, fail, renew. All take lists; each item has an outcome of its own.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::v1::{Body, BodyError, ItemOutcome, NewTask, Number, OutputItem, RawBytes, WorkInfo};

/// A wish for tasks.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClaimRequest {
    /// Who will run them.
    pub worker: String,
    /// The worker's process run; 0 when absent. A restarted worker should name another.
    #[serde(default)]
    pub session: Number,
    /// The queues to take from, at least one.
    pub queues: Vec<String>,
    /// Most tasks to hand out; 1 when absent.
    #[serde(default = "one")]
    pub count_max: u32,
    /// How long to wait for work before answering with an empty list; 0 when absent.
    #[serde(default)]
    pub wait_ms: u64,
    /// What the worker has; a task that wants other labels is not handed to it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Digests of programs and inputs that the worker has at hand, up to 32: of tasks near the head of the line it is handed
    /// one that wants them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holds: Vec<String>,
}

fn one() -> u32 {
    1
}

/// Tasks handed out.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ClaimAnswer {
    /// The tasks; empty when the wait ended without any.
    pub tasks: Vec<ClaimedTask>,
}

/// One task handed to a worker.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ClaimedTask {
    /// The task.
    pub id: String,
    /// Its queue.
    pub queue: String,
    /// The token that must come back with the completion; pass it to outside systems to fence them.
    pub fence: Number,
    /// Which try this is, from 1.
    pub attempt: u16,
    /// Most tries.
    pub max_attempts: u16,
    /// How long the claim lives unless renewed.
    pub ttl_ms: u32,
    /// Longest time for the whole attempt, renewed or not; absent when there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u32>,
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
    /// What to run; absent for a plain task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<Box<WorkInfo>>,
    /// Whether an earlier attempt left a checkpoint: the object `tasks/<task>/.checkpoint`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub checkpoint: bool,
    /// Where spans of whoever runs it belong, in the form of the header `traceparent`; absent unless the nodes send traces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
}

/// How far an attempt has come, for the next one. Its bytes were uploaded before (`POST /v1/uploads`).
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewCheckpoint {
    /// Who holds the task.
    pub worker: String,
    /// The claim's token; an older one is refused.
    pub fence: Number,
    /// Bytes in all.
    pub size: u64,
    /// BLAKE3 digest of all bytes, in hex.
    pub digest: String,
    /// Digest of each piece, as the upload told; may be left out when there is one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chunks: Vec<String>,
}

impl ClaimedTask {
    /// The payload, byte for byte.
    pub fn payload(&self) -> Result<Vec<u8>, BodyError> {
        let (json, base64) = (self.payload.as_deref(), self.payload_base64.as_deref());
        Body::bytes(json, base64, self.payload_bytes.as_ref())
    }
}

/// Tasks that are done.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompleteRequest {
    /// Who ran them.
    pub worker: String,
    /// The tasks, at least one.
    pub tasks: Vec<CompleteItem>,
    /// Tasks wanted in the place of these, in the same call. It waits for none, so its `wait_ms` must be 0; the call's
    /// Idempotency-Key is the claim's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<ClaimRequest>,
}

/// One task that is done.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompleteItem {
    /// The task.
    pub id: String,
    /// The claim's fence.
    pub fence: Number,
    /// The result, as any JSON value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub result: Option<Box<RawValue>>,
    /// The result, as bytes in base64; instead of `result`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_base64: Option<String>,
    /// Follow-ups beyond those that the task came with; submitted in the same step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub then: Vec<NewTask>,
    /// The result, as a byte string; only in CBOR, instead of the other two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub result_bytes: Option<RawBytes>,
    /// Files that the task brings; they can be read from this step on, and only if this completion counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<OutputItem>,
}

impl CompleteItem {
    /// The same item with a JSON result given as the bytes of its text, as CBOR wants it.
    pub fn with_raw_result(&self) -> CompleteItem {
        let mut item = self.clone();
        if let (Some(json), None) = (&self.result, &self.result_bytes) {
            item.result_bytes = Some(RawBytes(json.get().as_bytes().to_vec()));
            item.result = None;
        }
        item.then = item.then.into_iter().map(NewTask::with_raw_payload).collect();
        item
    }
}

/// Attempts that failed.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FailRequest {
    /// Who ran them.
    pub worker: String,
    /// The tasks, at least one.
    pub tasks: Vec<FailItem>,
}

/// One attempt that failed.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FailItem {
    /// The task.
    pub id: String,
    /// The claim's fence.
    pub fence: Number,
    /// What went wrong; kept up to 1 KiB.
    pub error: String,
    /// False when trying again is pointless; true when absent.
    #[serde(default = "yes")]
    pub retry: bool,
    /// Wait before the next attempt; the task's backoff when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
}

fn yes() -> bool {
    true
}

/// Claims that a worker still holds.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RenewRequest {
    /// Who holds them.
    pub worker: String,
    /// The worker's process run, as in its claims, when `tasks` is all that it holds. Claims of that run that it never
    /// named and that stay missing for 2 s were lost on their way to the worker: they are returned to their queues
    /// and do not count as attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Number>,
    /// The claims; at least one unless `session` is given.
    pub tasks: Vec<RenewItem>,
}

/// One claim to renew.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RenewItem {
    /// The task.
    pub id: String,
    /// The claim's fence.
    pub fence: Number,
    /// How far the attempt is; what was said before stays when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<ProgressBody>,
}

/// How far an attempt is, in its worker's own words. Kept in memory by the shard's leader until the attempt ends.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProgressBody {
    /// What is done, in thousandths, 0 to 1000.
    pub permille: u16,
    /// A few words beside the figure; kept up to 256 bytes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// One outcome per item, in the order given.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct OutcomeList {
    /// The outcomes.
    pub tasks: Vec<ItemOutcome>,
    /// Tasks handed out, where a completion asked for some. Absent although it did: nobody knows, or none could be asked for; claim again
    /// under the same key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed: Option<Vec<ClaimedTask>>,
}
