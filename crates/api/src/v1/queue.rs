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
    /// Done and cancelled tasks kept per shard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention_count: Option<u32>,
    /// How long a done or cancelled task is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention_ms: Option<u64>,
    /// Most unfinished tasks per shard; 0 lifts the bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending_max: Option<u64>,
    /// When the queue needs attention.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alerts: Option<AlertsBody>,
    /// Longest time for a whole attempt of tasks that name none; 0 is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u32>,
    /// Time from submission to the deadline of tasks that name none; 0 is no deadline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_in_ms: Option<u64>,
    /// Most tasks of one key that run at one time, for tasks that name no limit: 1 is strict order, 0 no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_limit: Option<u16>,
    /// Most dead tasks per shard: at it the queue takes no new ones; 0 lifts the bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dead_max: Option<u32>,
    /// How long a dead task is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dead_retention_ms: Option<u64>,
    /// How far waits between attempts are spread either way, in thousandths, at most 500.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter_permille: Option<u16>,
    /// Refuse unless the settings still have this version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_version: Option<u64>,
}

/// New thresholds of a queue's alerts; an absent one stays as it is, 0 turns the alert off.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AlertsBody {
    /// More waiting tasks (scheduled and ready) than this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<u64>,
    /// A claim older than this share of its lifetime, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim_age_percent: Option<u32>,
    /// A larger share of dead among the finished tasks of the last five minutes than this, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dead_percent: Option<u32>,
    /// Unfinished tasks have only become more for this many seconds, at most 300.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub growing_s: Option<u32>,
}

/// Thresholds in force; 0 means that the alert is off.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AlertsInfo {
    /// More waiting tasks (scheduled and ready) than this.
    pub pending: u64,
    /// A claim older than this share of its lifetime, in percent.
    pub claim_age_percent: u32,
    /// A larger share of dead among the finished tasks of the last five minutes than this, in percent.
    pub dead_percent: u32,
    /// Unfinished tasks have only become more for this many seconds.
    pub growing_s: u32,
}

/// How a queue does, as the asked node has seen it lately (TQ-23, TQ-24).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QueueHealth {
    /// For how long the longest waiting ready task is ready; absent if none is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_ready_age_ms: Option<u64>,
    /// Age of the oldest live claim; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_claim_age_ms: Option<u64>,
    /// Over how long the rates below were measured, at most about a minute; 0 shortly after a start.
    pub rates_over_ms: u64,
    /// Tasks submitted per 1,000 s.
    pub submitted_per_1000_s: u64,
    /// Tasks completed per 1,000 s.
    pub done_per_1000_s: u64,
    /// Attempts failed or expired per 1,000 s.
    pub failed_per_1000_s: u64,
    /// The alerts that hold: `pending`, `claim_age`, `dead_rate`, `growing`.
    pub alerts: Vec<String>,
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
    /// Done and cancelled tasks kept per shard.
    pub retention_count: u32,
    /// How long a done or cancelled task is kept.
    pub retention_ms: u64,
    /// Most unfinished tasks per shard; 0 means no bound of its own.
    pub pending_max: u64,
    /// When the queue needs attention.
    #[serde(default)]
    pub alerts: AlertsInfo,
    /// Longest time for a whole attempt of tasks that name none; 0 is no limit.
    pub timeout_ms: u32,
    /// Time from submission to the deadline of tasks that name none; 0 is no deadline.
    pub deadline_in_ms: u64,
    /// Most tasks of one key that run at one time, for tasks that name no limit: 1 is strict order, 0 no limit.
    pub key_limit: u16,
    /// Most dead tasks per shard: at it the queue takes no new ones; 0 means no bound of its own.
    #[serde(default)]
    pub dead_max: u32,
    /// How long a dead task is kept.
    #[serde(default)]
    pub dead_retention_ms: u64,
    /// How far waits between attempts are spread either way, in thousandths.
    #[serde(default)]
    pub jitter_permille: u16,
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
    /// Given up and still listed: the dead letters of now.
    #[serde(default)]
    pub dead: u64,
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
    /// Dead tasks removed before their time because a shard could keep no more, ever.
    #[serde(default)]
    pub dead_dropped_total: u64,
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
    /// How it does.
    #[serde(default)]
    pub health: QueueHealth,
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

/// Queues in name order, or by need.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QueuePage {
    /// The queues.
    pub queues: Vec<QueueInfo>,
    /// Where the next page begins; absent at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// How many queues fit what was asked for, on all pages.
    #[serde(default)]
    pub total: u64,
    /// Their tasks, summed up.
    #[serde(default)]
    pub sum: QueueCounts,
}
