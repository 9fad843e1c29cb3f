//! Why a task is not running, for people and programs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::v1::{ProgressBody, TaskStateName};

/// Why a task is where it is, as its shard's leader sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskExplanation {
    /// The task.
    pub id: String,
    /// Its queue.
    pub queue: String,
    /// Where it stands.
    pub state: TaskStateName,
    /// All reasons that hold, at least one.
    pub reasons: Vec<ReasonInfo>,
    /// How far the running attempt is, if its worker says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<ProgressBody>,
}

/// One reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReasonInfo {
    /// Stable code: `finished`, `claimed`, `queue_paused`, `delayed`, `backing_off`, `behind`, `behind_key`,
    /// `next_in_line`, `no_worker_asked` or `no_worker_with_labels`; more may come.
    pub code: String,
    /// The same for people.
    pub sentence: String,
    /// Since when, in log time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_ms: Option<u64>,
    /// Until when, in log time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<u64>,
    /// Who holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// The task for whose sake it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// How many others are ahead in its shard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ahead: Option<u64>,
    /// Whether more are ahead than were counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<bool>,
}
