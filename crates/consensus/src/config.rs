//! Settings of one node's consensus, and what it recovers of a shard from disk.
//!
//! Promises: every number that shapes elections and replication is here with its default and reason.
//! Leaves out: membership, which is data in the log (see `conf.rs`).

use crate::conf::Conf;
use crate::entry::Entry;
use crate::lease::LeaseConfig;

/// One replicated log of the node.
pub type ShardId = u16;

/// A member of the cluster; never 0.
pub type NodeId = u64;

/// Settings of one node, the same for all its shards.
#[derive(Clone, Debug)]
pub struct Config {
    /// This node; not 0.
    pub node: NodeId,
    /// Length of one engine tick.
    pub tick_ms: u64,
    /// Ticks between heartbeats of a leader.
    pub heartbeat_ticks: usize,
    /// Least ticks of silence before a campaign; the actual number is drawn from this up to twice this.
    pub election_ticks: usize,
    /// Soft limit of the entries in one append message; a single larger entry still travels alone.
    pub max_entries_bytes_per_message: u64,
    /// Append messages on their way to one peer of one shard.
    pub max_inflight: usize,
    /// Seed of all randomness; equal seeds and equal calls give equal outputs.
    pub seed: u64,
    /// Higher wins when logs are equal; the same for all shards until `set_priority`.
    pub priority: i64,
    /// Bytes of entries that stay in memory though they are applied and nobody is known to lack them, so that a slow peer
    /// needs no snapshot.
    pub keep_bytes: u64,
    /// Present where logs live in a database and a lease there decides who writes; absent for Raft.
    pub lease: Option<LeaseConfig>,
}

impl Config {
    /// The defaults for `node`: heartbeat 100 ms, election timeout 1 to 2 s.
    pub fn new(node: NodeId, seed: u64) -> Self {
        Config {
            node,
            tick_ms: 50,
            heartbeat_ticks: 2,
            election_ticks: 20,
            max_entries_bytes_per_message: 1 << 20,
            max_inflight: 256,
            seed,
            priority: 0,
            keep_bytes: 4 << 20,
            lease: None,
        }
    }
}

/// A point in a log: the last entry that a snapshot covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Start {
    /// Index of that entry; 0 if there is none.
    pub index: u64,
    /// Term of that entry.
    pub term: u64,
}

/// The point at which every bootstrapped log begins, so that a node without any log is told apart from it.
pub const BOOTSTRAP: Start = Start { index: 1, term: 1 };

/// What disk holds of one shard.
#[derive(Clone, Debug, Default)]
pub struct Recovered {
    /// Last durable term; raised to 1.
    pub term: u64,
    /// Node voted for in that term; 0 if none.
    pub vote: NodeId,
    /// Last durable commit index; clamped into the log.
    pub commit: u64,
    /// The same, not clamped: where the log lives in a database, how far it was seen.
    pub noted: u64,
    /// The last durable snapshot point.
    pub start: Start,
    /// Membership at `start`, not today's; empty only for a node that has yet to receive its first snapshot.
    pub conf: Conf,
    /// Entries after `start`, without gaps.
    pub entries: Vec<Entry>,
    /// Highest index that this node is known to have made durable. Larger than the last index means that
    /// the log is damaged and the shard must be repaired by a leader first.
    pub floor: u64,
}

impl Recovered {
    /// The first state of a shard of a new cluster, equal on all its members: an empty state at [`BOOTSTRAP`].
    pub fn bootstrap(conf: Conf) -> Self {
        Recovered {
            term: BOOTSTRAP.term,
            commit: BOOTSTRAP.index,
            start: BOOTSTRAP,
            conf,
            ..Default::default()
        }
    }

    /// The first state of a shard on a node that joins a running cluster: it waits for a snapshot.
    pub fn joining() -> Self {
        Recovered { term: 1, ..Default::default() }
    }

    /// The last index that disk holds.
    pub fn last_index(&self) -> u64 {
        self.entries.last().map_or(self.start.index, |entry| entry.index)
    }
}
