//! Settings of a replica: every bound and distance by name. The simulator draws them anew for each seed.

use ikada_consensus::NodeId;

/// What a replica is told once.
#[derive(Debug, Clone)]
pub struct ReplicaConfig {
    /// This node.
    pub node: NodeId,
    /// Its disk.
    pub incarnation: u64,
    /// The cluster.
    pub cluster: u64,
    /// What this program understands.
    pub level: u32,
    /// The consensus engine's settings.
    pub consensus: ikada_consensus::Config,
    /// An entry is closed once its orders take this many bytes.
    pub batch_bytes_max: usize,
    /// An entry is closed once it holds this many orders.
    pub batch_orders_max: usize,
    /// Entries of one shard proposed but not applied; further orders gather meanwhile, so that load makes entries
    /// larger rather than more numerous.
    pub entries_in_flight_max: usize,
    /// Bytes of orders that wait at a leader; beyond it callers are told to come back (O1).
    pub pending_bytes_max: usize,
    /// Calls that wait for an answer on this node.
    pub calls_max: usize,
    /// A snapshot is due after this many log bytes, or the last snapshot's size if that is more.
    pub snapshot_log_bytes: u64,
    /// A snapshot is due at the latest after this many entries.
    pub snapshot_entries: u64,
    /// State hashes are exchanged at every multiple of this index.
    pub hash_every: u64,
    /// An unanswered question to a leader is asked again after this long.
    pub ask_again_ms: u64,
    /// Parked claims look at every shard again after this long, should a hint be lost.
    pub claim_again_ms: u64,
    /// Expiries proposed per shard and tick.
    pub expire_per_tick_max: usize,
    /// Leaders are spread over the nodes once nothing has changed for this long, one move at a time; 0: never.
    pub balance_quiet_ms: u64,
    /// A graceful stop waits at most this long for its shards to find other leaders.
    pub stop_wait_ms: u64,
    /// Whether leaders give out what has ended.
    pub tells_ended: bool,
}

impl ReplicaConfig {
    /// Defaults for one node of a cluster.
    pub fn new(node: NodeId, incarnation: u64, cluster: u64, seed: u64) -> Self {
        ReplicaConfig {
            node,
            incarnation,
            cluster,
            level: ikada_state::LEVEL,
            consensus: ikada_consensus::Config::new(node, seed),
            batch_bytes_max: 1 << 20,
            batch_orders_max: 16_384,
            entries_in_flight_max: 8,
            pending_bytes_max: 64 << 20,
            calls_max: 65_536,
            snapshot_log_bytes: 32 << 20,
            snapshot_entries: 100_000,
            hash_every: 1_000,
            ask_again_ms: 1_000,
            claim_again_ms: 1_000,
            expire_per_tick_max: 4_096,
            balance_quiet_ms: 30_000,
            stop_wait_ms: 2_000,
            tells_ended: false,
        }
    }
}
