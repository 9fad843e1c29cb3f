//! The cluster as one node sees it: members, shards and their leaders, transfer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::problem::Problem;
use crate::v1::{ChangeView, ElectionsView, Number, WorkerSummary};

/// The cluster as the answering node sees it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ClusterView {
    /// The cluster's id.
    pub cluster: Number,
    /// The node that answers.
    pub answered_by: Number,
    /// `healthy` when every shard has a leader and every member is connected, `degraded` when a member is missing,
    /// `unavailable` when some shard has no leader.
    pub status: String,
    /// What the programs of all members understand: what needs more is refused until every member has been upgraded.
    #[serde(default)]
    pub level: u32,
    /// The settings of elections; absent where a lease in a database decides who leads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elections: Option<ElectionsView>,
    /// The change of membership under way; absent if none is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<ChangeView>,
    /// All members.
    pub members: Vec<MemberView>,
    /// All shards.
    pub shards: Vec<ShardView>,
    /// Workers, summed up over all namespaces; absent while nobody can tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers: Option<WorkerSummary>,
    /// The growth that runs; absent when none does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub growth: Option<GrowthView>,
}

/// A growth that runs (TQ-29).
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct GrowthView {
    /// Shards before.
    pub from: u16,
    /// Shards in the end.
    pub to: u16,
    /// Slots that have moved.
    pub moved: u16,
    /// Slots that move in all, of 4,096.
    pub slots: u16,
    /// When it began, ms since 1970.
    pub started_ms: u64,
}

/// Asks for more shards.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GrowRequest {
    /// How many shards the cluster shall have; more than now, at most 256.
    pub shards: u16,
}

/// The growth has begun; the cluster's status shows how far it is.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct GrowAnswer {
    /// Shards in the end.
    pub shards: u16,
    /// Slots that will move, of 4,096.
    pub slots: u16,
    /// The request id.
    pub request: String,
}

/// One member.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct MemberView {
    /// Its id.
    pub node: Number,
    /// Where peers reach it.
    pub peer_addr: String,
    /// Where clients reach it.
    pub client_addr: String,
    /// Whether the answering node is connected to it (true for itself).
    pub connected: bool,
    /// Milliseconds since it was heard; absent if never, or for the answering node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heard_ms_ago: Option<u64>,
    /// How many shards it leads.
    pub leads: u32,
    /// `voter`, `joining` or `leaving`.
    #[serde(default)]
    pub part: String,
    /// Whether it shall not lead while another voter can.
    #[serde(default)]
    pub cordoned: bool,
    /// Preferred as leader over members with a lower number.
    #[serde(default)]
    pub priority: i64,
    /// How busy it is, as far as the answering node knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<LoadView>,
    /// What its program understands; absent if it cannot be reached or has not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<u32>,
}

/// How busy a node is, and what it turns away.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct LoadView {
    /// CPU in use; 100 also when it cannot be measured.
    pub cpu_percent: f32,
    /// Memory in use; 100 also when it cannot be measured.
    pub memory_percent: f32,
    /// Calls admitted during the last minute.
    pub admitted_last_minute: u64,
    /// Calls turned away during the last minute.
    pub shed_last_minute: u64,
    /// Reads of pieces of objects that memory answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_hit_percent: Option<f32>,
}

/// One shard.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ShardView {
    /// Which shard.
    pub shard: u16,
    /// The proven leader; absent when none is known (B4-47).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leader: Option<Number>,
    /// The current term.
    pub term: u64,
    /// Highest committed index known to the answering node.
    pub commit: u64,
    /// Voting members.
    pub voters: Vec<Number>,
    /// Members that do not vote.
    pub learners: Vec<Number>,
    /// Whether a membership change is under way.
    pub joint: bool,
    /// Tasks waiting for their time.
    pub scheduled: u64,
    /// Tasks waiting for a worker.
    pub ready: u64,
    /// Tasks held by workers.
    pub claimed: u64,
    /// Finished tasks still listed.
    pub finished: u64,
    /// How far the other members are, as their leader knows; empty if it has not said so lately, or has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub followers: Vec<FollowerView>,
    /// How long ago the answering node heard of `followers`; absent if it leads the shard and tells of now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub followers_heard_ms_ago: Option<u64>,
}

/// A member that follows the leader of one shard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FollowerView {
    /// Which node.
    pub node: Number,
    /// Highest index that it is known to have stored.
    pub matched: u64,
    /// Entries of the leader's log that it is not known to have.
    pub behind: u64,
}

/// What a node says about itself (B4-52).
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct NodeSelf {
    /// Its id.
    pub node: Number,
    /// Its name.
    pub name: String,
    /// The cluster's id.
    pub cluster: Number,
    /// The program's version.
    pub version: String,
    /// Where clients reach it.
    pub client_addr: String,
    /// Where peers reach it.
    pub peer_addr: String,
    /// When the process started, ms since 1970.
    pub started_ms: u64,
    /// Its wall clock minus the voters' median.
    pub clock_offset_ms: i64,
    /// Calls waiting for an answer.
    pub calls_waiting: u64,
    /// Claims parked for want of work.
    pub claims_parked: u64,
    /// Whether a graceful stop has begun.
    pub stopping: bool,
    /// How the database that holds the logs takes writes: `well`, `away`, `full` or `read_only`; absent where they live on the nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    /// Its part in every shard.
    pub shards: Vec<ShardSelf>,
    /// The other members as it sees them.
    pub peers: Vec<PeerView>,
}

/// A node's part in one shard.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ShardSelf {
    /// Which shard.
    pub shard: u16,
    /// `follower`, `pre_candidate`, `candidate`, `leader` or `learner`.
    pub role: String,
    /// The current term.
    pub term: u64,
    /// The proven leader; absent when none is known (B4-47).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leader: Option<Number>,
    /// Whom this node voted for in this term.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voted_for: Option<Number>,
    /// Highest index known to be committed.
    pub commit: u64,
    /// Position of the state, `shard:term:index`.
    pub applied: String,
    /// Log time of the state.
    pub log_time_ms: u64,
    /// Last index in the log.
    pub last_index: u64,
    /// The log begins after this index.
    pub start_index: u64,
    /// Hash of the state, 16 hex digits.
    pub hash: String,
    /// When the role last changed, ms since 1970.
    pub role_since_ms: u64,
    /// Whether the log was damaged and is being fetched again.
    pub repairing: bool,
}

/// A peer as a node sees it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct PeerView {
    /// Which node.
    pub node: Number,
    /// Whether a connection stands.
    pub connected: bool,
    /// Milliseconds since anything was heard from it (the last heartbeat at the latest); absent if never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heard_ms_ago: Option<u64>,
    /// Its wall clock minus ours; absent if not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_offset_ms: Option<i64>,
}

/// A wish to move leadership (MQ-29).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TransferRequest {
    /// Which shard; all when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<u16>,
    /// The chosen node; the most caught-up other voter when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Number>,
    /// Only shards that this node leads; all when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Number>,
}

/// What became of each shard.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TransferResult {
    /// One outcome per shard.
    pub shards: Vec<TransferOutcome>,
}

/// What became of one shard's transfer.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TransferOutcome {
    /// Which shard.
    pub shard: u16,
    /// Whether the transfer was begun; the events show its end.
    pub accepted: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<Box<Problem>>,
}
