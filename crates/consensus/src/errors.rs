//! Why an operation was refused: one type per operation.
//!
//! Promises: each refusal leaves the state as it was.

use crate::config::{NodeId, ShardId};

/// Only the leader may do this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this node does not lead the shard")]
pub struct NotLeader {
    /// Who does, as far as this node knows.
    pub leader: Option<NodeId>,
}

/// Why a shard could not be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// It is open already.
    #[error("shard {0} is open already")]
    AlreadyOpen(ShardId),
    /// The membership breaks a rule.
    #[error("shard {0}: {1}")]
    Conf(ShardId, &'static str),
    /// A log with members must begin at the bootstrap point or later, see `Recovered::bootstrap`.
    #[error("shard {0}: a log with members begins at index 0")]
    StartAtZero(ShardId),
    /// Entries do not follow each other.
    #[error("shard {shard}: entry {found} where {expected} belongs")]
    Gap {
        /// The shard.
        shard: ShardId,
        /// The index that had to come.
        expected: u64,
        /// The index that came.
        found: u64,
    },
    /// An entry's term is lower than the one before, or higher than the recovered term.
    #[error("shard {shard}: entry {index} has term {term}")]
    TermOrder {
        /// The shard.
        shard: ShardId,
        /// The entry's index.
        index: u64,
        /// Its term.
        term: u64,
    },
    /// The engine refused its settings.
    #[error("shard {0}: {1}")]
    Engine(ShardId, String),
}

/// Why leadership was not handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransferError {
    /// Only the leader can.
    #[error(transparent)]
    NotLeader(#[from] NotLeader),
    /// The node leads already.
    #[error("node {0} leads already")]
    ToSelf(NodeId),
    /// The node is no member.
    #[error("node {0} is not a member")]
    Unknown(NodeId),
    /// The node has no vote, or is about to lose it.
    #[error("node {0} is not a lasting voter")]
    NotVoter(NodeId),
}

/// Why a membership change was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// Only the leader can.
    #[error(transparent)]
    NotLeader(#[from] NotLeader),
    /// Leadership is being handed over.
    #[error("leadership is being transferred to node {0}")]
    Transferring(NodeId),
    /// Another change is not finished.
    #[error("another membership change is not finished")]
    Pending,
    /// The leader has not committed an entry of its own term yet.
    #[error("the leader has not committed an entry of its term yet")]
    TooEarly,
    /// The change would take the leader's vote away.
    #[error("the change removes the leader {0}: transfer first")]
    RemovesLeader(NodeId),
    /// The change names nobody.
    #[error("the change is empty")]
    Empty,
    /// A node is named twice, or is node 0.
    #[error("node {0} is named twice or is not a node")]
    Ambiguous(NodeId),
    /// A node to remove is no member.
    #[error("node {0} is not a member")]
    Unknown(NodeId),
    /// A node already is what the change would make it.
    #[error("node {0} already has that role")]
    Unchanged(NodeId),
    /// Nobody would be left to vote.
    #[error("the change removes every voter")]
    NoVoters,
    /// The log lives in a database, where nodes enter themselves.
    #[error("the log lives in a database: nodes join by starting and leave by stopping")]
    Leased,
}
