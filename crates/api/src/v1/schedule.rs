//! Schedules: what submits a task at instants to come.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::v1::{BackoffBody, NewTask, RawBytes, WorkInfo};

/// A schedule as a whole: what is absent has its default, not its earlier value.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScheduleBody {
    /// When, as a cron line of five fields (minute, hour, day of month, month, day of week) or a word such as `@daily`;
    /// or else give `every_ms`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// Time zone of the cron line, such as `Europe/Berlin`; `UTC` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// When, as an interval of at least 1000; instead of `cron`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every_ms: Option<u64>,
    /// One of the interval's instants (ms since 1970); the time of the first setting when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anchor_ms: Option<u64>,
    /// What to submit at each instant. Its id is made of the schedule's name and the instant; times in it are relative.
    #[serde(default)]
    pub task: NewTask,
    /// What becomes of instants that are more than `grace_ms` late; `one` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missed: Option<MissedPolicy>,
    /// What becomes of an instant while the task of the one before is unfinished; `allow` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap: Option<OverlapPolicy>,
    /// How late an instant may be before it counts as missed; 60000 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_ms: Option<u64>,
    /// A paused schedule has no instants; `false` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// Refuse unless the schedule still has this version; 0 is one that does not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_version: Option<u64>,
}

/// What becomes of missed instants.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MissedPolicy {
    /// None is made up for.
    Skip,
    /// The newest is made up for.
    #[default]
    One,
    /// All are made up for, the newest hundred at most.
    All,
}

/// What becomes of an instant while the task before is unfinished.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OverlapPolicy {
    /// It is kept.
    #[default]
    Allow,
    /// It is left out.
    Skip,
}

/// What a schedule submits.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ScheduledTask {
    /// The queue.
    pub queue: String,
    /// The ordering key, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Most tasks of the key that run at one time; the queue's setting when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_limit: Option<u16>,
    /// Bytes of the payload.
    pub payload_bytes_count: u64,
    /// The payload, when it is a JSON value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub payload: Option<Box<RawValue>>,
    /// The payload in base64, when it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_base64: Option<String>,
    /// The payload as a byte string; in CBOR only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub payload_bytes: Option<RawBytes>,
    /// 0 to 9, 9 first; 5 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// Wait after the instant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
    /// Most attempts; the queue's setting when absent, as with all below.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u16>,
    /// How long a claim lives without renewal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u32>,
    /// Waits between attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff: Option<BackoffBody>,
    /// Longest time for a whole attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u32>,
    /// Time from submission to the deadline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_in_ms: Option<u64>,
    /// How long the finished task is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention_ms: Option<u64>,
    /// What it wants of its worker.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// What it runs, as it was when the schedule was set; absent for a plain task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<Box<WorkInfo>>,
    /// What follows its completion.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub then: Vec<ScheduledTask>,
}

/// A schedule and how it does.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ScheduleInfo {
    /// Its name.
    pub name: String,
    /// Rises with each change, from 1.
    pub version: u64,
    /// The cron line, if it goes by one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// Time zone of the cron line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// The interval, if it goes by one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every_ms: Option<u64>,
    /// One of the interval's instants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anchor_ms: Option<u64>,
    /// What it submits.
    pub task: ScheduledTask,
    /// What becomes of missed instants.
    pub missed: MissedPolicy,
    /// What becomes of instants that overlap.
    pub overlap: OverlapPolicy,
    /// How late an instant may be before it counts as missed.
    pub grace_ms: u64,
    /// Whether it has no instants for now.
    pub paused: bool,
    /// When it was made, in log time.
    pub created_ms: u64,
    /// The next instants, at most five; none while it is paused.
    pub next_ms: Vec<u64>,
    /// The newest instant that was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_ms: Option<u64>,
    /// When that instant was kept, in log time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_fired_ms: Option<u64>,
    /// Its task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_task: Option<String>,
    /// The newest instant that was missed and not made up for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_missed_ms: Option<u64>,
    /// The newest instant left out because the task before was unfinished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_overlapped_ms: Option<u64>,
    /// Instants kept, ever.
    pub fired_total: u64,
    /// Instants missed and not made up for, ever.
    pub missed_total: u64,
    /// Instants left out because the task before was unfinished, ever.
    pub overlapped_total: u64,
    /// The alarms that hold: `overdue` (the next instant is more than the grace time ago), `missed` and `overlapped`
    /// (the newest instant was not kept), `unreadable` (this node cannot read the timing).
    pub alarms: Vec<String>,
}

/// Schedules in order of their names.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SchedulePage {
    /// The schedules, without payloads and follow-ups.
    pub schedules: Vec<ScheduleInfo>,
    /// Where the next page begins; absent at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A schedule that was removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScheduleRemoved {
    /// Its name.
    pub name: String,
}
