//! Changing who belongs to the cluster, and steering where leaders are.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::v1::Number;

/// A wish to add a node, perhaps in the place of another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AddNode {
    /// Where peers reach the new node, `host:port`; it waits there, started with `--join`.
    pub peer_addr: String,
    /// The member that leaves in the same step; none when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<Number>,
}

/// A change of membership as the answering node sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangeView {
    /// Its number; 0 when there is nothing left to do.
    pub number: u64,
    /// The node that comes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub add: Option<Number>,
    /// The node that goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remove: Option<Number>,
    /// Log time at which it began.
    pub since_ms: u64,
    /// Shards that have followed it.
    pub shards_done: u16,
    /// All shards.
    pub shards: u16,
    /// What is waited for, in words.
    pub stage: String,
}

/// How leadership is steered towards or away from a member; what is absent stays.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SteerNode {
    /// Whether it shall not lead while another voter can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cordoned: Option<bool>,
    /// Preferred as leader over members with a lower number: -1000 to 1000, 0 unless set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i64>,
}

/// How long silence lasts before followers elect another leader.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TuneElections {
    /// The least silence, 200 to 60000; null: as each node was started.
    pub timeout_ms: Option<u32>,
}

/// The settings of elections, as the answering node keeps them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ElectionsView {
    /// Least silence before an election.
    pub timeout_ms: u64,
    /// Most silence before an election: the actual one is drawn between the two.
    pub timeout_ms_max: u64,
    /// Time between two heartbeats of a leader.
    pub heartbeat_ms: u64,
    /// Whether they were changed at run time.
    pub changed: bool,
}
