//! Leases: locks and elections.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Number;

/// A wish for a lease.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AcquireLease {
    /// Who wants it. Whoever uses the same name is taken for the same holder.
    pub holder: String,
    /// How long it is held unless renewed; 15000 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u32>,
    /// How long to wait for the turn if another holds it; 0 (and absent): do not stand in line, be refused. A wait that
    /// ends without the lease keeps its place for a ttl: ask again to keep it longer.
    #[serde(default)]
    pub wait_ms: u64,
    /// The attempt of a task with which the lease ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<LeaseTask>,
}

/// An attempt of a task.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LeaseTask {
    /// The task, of the same namespace.
    pub id: String,
    /// Token of the attempt.
    pub fence: Number,
}

/// Proof of life of a holder.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RenewLease {
    /// The holder.
    pub holder: String,
    /// Token of the holding.
    pub fence: Number,
}

/// Gives a lease back.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReleaseLease {
    /// The holder, or one who waits.
    pub holder: String,
    /// Token of the holding; absent: whatever the holder has, the lease or a place in line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fence: Option<Number>,
    /// Takes it from another: `holder` is the whole name, as the lease is shown. For operators and admins; others may so name
    /// only what is their own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub force: bool,
}

/// Where a lease stands for whoever asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LeaseState {
    /// Somebody holds it; in an answer to a wish, the one who asked.
    Held,
    /// The one who asked stands in line.
    Waiting,
    /// Nobody holds it.
    Free,
}

/// The answer to a wish or to proof of life.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct LeaseAnswer {
    /// The lease.
    pub name: String,
    /// `held` or `waiting`.
    pub state: LeaseState,
    /// Token of the holding: hand it to whatever the lease protects, which refuses lower ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fence: Option<Number>,
    /// How long it is held unless renewed. Count from when the request was sent; after a wait, renew first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// How many stand before the one who asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ahead: Option<u32>,
}

/// One who waits.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct LeaseWaiterInfo {
    /// Who.
    pub holder: String,
    /// Since when, in log time.
    pub since_ms: u64,
}

/// A lease as everyone sees it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct LeaseInfo {
    /// Its name.
    pub name: String,
    /// `held` or `free`.
    pub state: LeaseState,
    /// Who holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    /// Token of the holding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fence: Option<Number>,
    /// How long it is held unless renewed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u32>,
    /// Since when it is held, in log time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_ms: Option<u64>,
    /// The task with whose attempt it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// Who waits, the next first.
    pub waiters: Vec<LeaseWaiterInfo>,
}

/// Leases that somebody holds, in order of their names.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct LeasePage {
    /// The leases.
    pub leases: Vec<LeaseInfo>,
    /// Where the next page begins; absent at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A lease, or a place in its line, that was given back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeaseReleased {
    /// Its name.
    pub name: String,
}
