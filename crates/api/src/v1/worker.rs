//! Workers: who runs tasks.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Number;

/// A worker says who it is and that it lives. Sent every few seconds; only what changes is written down.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkerBeat {
    /// Its process run: a number that no other run has.
    pub session: Number,
    /// Tasks that it runs at one time.
    pub slots: u32,
    /// Slots that are busy now.
    #[serde(default)]
    pub busy: u32,
    /// What it has.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Queues that it takes tasks from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queues: Vec<String>,
    /// Version of its program.
    #[serde(default)]
    pub version: String,
    /// It has stopped, and will not beat again.
    #[serde(default)]
    pub leaving: bool,
}

/// What is wanted of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WorkerWanted {
    /// To work.
    Work,
    /// To finish what it has and take no more.
    Drain,
    /// To stop: its session is over.
    Stop,
}

/// The answer to a beat.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct WorkerOrders {
    /// What is wanted of it.
    pub wanted: WorkerWanted,
    /// Term of the leader who wants it: what a lower term wants is refused.
    pub term: u64,
    /// When to beat again.
    pub beat_ms: u64,
}

/// How a worker does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WorkerStateName {
    /// It beats.
    Alive,
    /// It beats, and takes no more tasks.
    Draining,
    /// It was not heard for a while; its slots do not count.
    Dead,
}

/// One worker.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct WorkerInfo {
    /// Its name.
    pub id: String,
    /// How it does.
    pub state: WorkerStateName,
    /// Its process run.
    pub session: Number,
    /// Tasks that it runs at one time.
    pub slots: u32,
    /// Slots that were busy when it was last heard.
    pub busy: u32,
    /// What it has.
    pub labels: BTreeMap<String, String>,
    /// Queues that it takes tasks from.
    pub queues: Vec<String>,
    /// Version of its program.
    pub version: String,
    /// Since when this session is known, in log time.
    pub since_ms: u64,
    /// How long ago it was heard; absent if never by the present leader.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heard_ms_ago: Option<u64>,
    /// Another session that uses its name and is kept out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub impostor: Option<Number>,
}

/// Slots of all workers that are alive.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SlotCount {
    /// Slots that take tasks now.
    pub open: u64,
    /// All slots.
    pub total: u64,
}

/// Workers, summed up.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct WorkerSummary {
    /// `healthy` when all workers are alive, `degraded` when some are dead, `dead` when none is alive.
    pub status: String,
    /// Workers that beat.
    pub alive: u64,
    /// Of those, workers that take no more tasks.
    pub draining: u64,
    /// Workers that were not heard for a while.
    pub dead: u64,
    /// Slots of those that are alive.
    pub slots: SlotCount,
}

/// One decision of the autoscaler.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ScalingView {
    /// When, wall clock.
    pub at_ms: u64,
    /// Workers that were alive and working.
    pub from: u32,
    /// Workers wanted.
    pub to: u32,
    /// Why.
    pub reason: String,
    /// What went wrong, if anything did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Workers are being drained; the platform hears the number when they are gone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pending: bool,
    /// The node that decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}

/// What the autoscaler did lately, the newest last.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ScalingPage {
    /// At most a hundred decisions.
    pub decisions: Vec<ScalingView>,
}

/// Workers of the namespace, in order of their names.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct WorkerPage {
    /// Summed up.
    pub summary: WorkerSummary,
    /// One by one.
    pub workers: Vec<WorkerInfo>,
    /// Where the next page begins; absent at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A worker that was told to leave, or whose session was ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkerChanged {
    /// Its name.
    pub id: String,
    /// `draining` or `removed`.
    pub outcome: String,
}
