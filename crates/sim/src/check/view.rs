//! What a check sees of one shard on one node after a turn.

use ikada_consensus::{NodeId, Role};
use ikada_state::{Lsn, ShardId};

/// One shard on one node at one moment, as the node itself has it in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShardView {
    /// The node.
    pub node: NodeId,
    /// Which process of the node; rises with each start.
    pub generation: u64,
    /// The shard.
    pub shard: ShardId,
    /// Current term.
    pub term: u64,
    /// Vote in that term; 0 is nobody.
    pub vote: NodeId,
    /// Role.
    pub role: Role,
    /// Known leader.
    pub leader: Option<NodeId>,
    /// Commit index.
    pub commit: u64,
    /// Last index in memory.
    pub last_index: u64,
    /// The log begins after this index.
    pub start_index: u64,
    /// Position of the state.
    pub applied: Lsn,
    /// Hash of the state there.
    pub hash: u64,
    /// Whether the log is being repaired.
    pub repairing: bool,
}

#[cfg(test)]
impl ShardView {
    /// A follower at the beginning, for tests.
    pub fn sample(node: NodeId) -> Self {
        Self {
            node,
            generation: 1,
            shard: 0,
            term: 1,
            vote: 0,
            role: Role::Follower,
            leader: None,
            commit: 1,
            last_index: 1,
            start_index: 1,
            applied: Lsn { term: 1, index: 1 },
            hash: 0,
            repairing: false,
        }
    }
}
