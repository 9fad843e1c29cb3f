//! Queues: settings that may be changed, and what stands in line.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::v1::BackoffBody;

/// New settings; an absent one stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QueueSettingsBody {
    /// A paused queue takes tasks but hands none out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// Most attempts of tasks that name none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u16>,
    /// Claim lifetime of tasks that name none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u32>,
    /// Waits between attempts of tasks that name none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff: Option<BackoffBody>,
    /// Finished tasks kept per shard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention_count: Option<u32>,
    /// How long a finished task is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention_ms: Option<u64>,
    /// Most unfinished tasks per shard; 0 lifts the bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending_max: Option<u64>,
    /// Refuse unless the settings still have this version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_version: Option<u64>,
}

/// Settings in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QueueSettingsInfo {
    /// Rises with each change; 0 means the defaults.
    pub version: u64,
    /// Whether tasks are held back.
    pub paused: bool,
    /// Most attempts of tasks that name none.
    pub max_attempts: u16,
    /// Claim lifetime of tasks that name none.
    pub ttl_ms: u32,
    /// Waits between attempts of tasks that name none.
    pub backoff: BackoffBody,
    /// Finished tasks kept per shard.
    pub retention_count: u32,
    /// How long a finished task is kept.
    pub retention_ms: u64,
    /// Most unfinished tasks per shard; 0 means no bound of its own.
    pub pending_max: u64,
}

/// What stands in line, and totals that only rise (TQ-23).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QueueCounts {
    /// Waiting for their time.
    pub scheduled: u64,
    /// Waiting for a worker.
    pub ready: u64,
    /// Held by workers.
    pub claimed: u64,
    /// Finished and still listed.
    pub finished: u64,
    /// Created, ever.
    pub submitted_total: u64,
    /// Completed, ever.
    pub done_total: u64,
    /// Given up, ever.
    pub dead_total: u64,
    /// Cancelled, ever.
    pub cancelled_total: u64,
    /// Finished and removed, by retention or by hand, ever.
    pub removed_total: u64,
    /// Given fresh attempts after they had ended, ever.
    #[serde(default)]
    pub retried_total: u64,
    /// Attempts that failed or expired, ever.
    #[serde(default)]
    pub failed_attempts_total: u64,
}

/// A queue, summed over all shards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QueueInfo {
    /// Its name.
    pub name: String,
    /// Its settings.
    pub settings: QueueSettingsInfo,
    /// Its tasks.
    pub counts: QueueCounts,
}

/// What became of a job on many tasks of a queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SweepAnswer {
    /// The queue.
    pub queue: String,
    /// The request id; sending the request again under it goes on where this answer ends.
    pub request: String,
    /// Tasks changed so far, over all shards.
    pub count: u64,
    /// Whether every shard is done. False, with status 202, when the caller's time was over first.
    pub complete: bool,
}

/// All queues in name order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QueuePage {
    /// The queues.
    pub queues: Vec<QueueInfo>,
}
