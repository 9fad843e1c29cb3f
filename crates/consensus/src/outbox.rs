//! What consensus wants done: the values that [`crate::Consensus::poll`] hands out.
//!
//! Promises: everything in `send` may be sent at once; what must wait for the disk is held inside until
//! `persisted`. Leaves out: how any of it is done.

use crate::conf::Conf;
use crate::config::{NodeId, ShardId, Start};
use crate::entry::Entry;
use crate::lease::Ask;
use crate::message::Message;

/// Everything there is to do, drained by one poll.
#[derive(Debug, Default)]
pub struct Outbox {
    /// One batch for the write-ahead log, for all shards.
    pub io: Option<Io>,
    /// Messages that may be sent now.
    pub send: Vec<(NodeId, ShardId, Message)>,
    /// Committed and locally durable entries, in order; a change entry is always the last of its list.
    pub apply: Vec<(ShardId, Vec<Entry>)>,
    /// Reads (by their id) that may be answered once this index is applied.
    pub reads: Vec<(ShardId, u64, u64)>,
    /// Reads (by their id) that this node can no longer answer.
    pub reads_lost: Vec<(ShardId, u64)>,
    /// Changes of role, term or known leader, with their reasons.
    pub roles: Vec<RoleChange>,
    /// Peers that need a snapshot which is durable here.
    pub snapshots: Vec<SnapshotNeed>,
    /// Shards for which a peer needs a snapshot but none is durable: take one and call `compact`.
    pub snapshots_wanted: Vec<ShardId>,
    /// Snapshots accepted from a leader: load, then call `snapshot_installed`.
    pub install: Vec<(ShardId, Start, Conf)>,
    /// Questions for the database, where logs live in one.
    pub asks: Vec<Ask>,
    /// Shards whose log in the database begins after what this node has: load the snapshot stored there, then call
    /// `snapshot_installed`.
    pub snapshots_behind: Vec<ShardId>,
    /// Memberships that took effect.
    pub conf_changed: Vec<(ShardId, Conf)>,
    /// Evidence of broken promises (of a peer, of the disk): the process should stop.
    pub faults: Vec<Fault>,
}

impl Outbox {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.io.is_none()
            && self.send.is_empty()
            && self.apply.is_empty()
            && self.reads.is_empty()
            && self.reads_lost.is_empty()
            && self.roles.is_empty()
            && self.snapshots.is_empty()
            && self.snapshots_wanted.is_empty()
            && self.install.is_empty()
            && self.asks.is_empty()
            && self.snapshots_behind.is_empty()
            && self.conf_changed.is_empty()
            && self.faults.is_empty()
    }

    /// Empties all lists and keeps their memory.
    pub fn clear(&mut self) {
        self.io = None;
        self.send.clear();
        self.apply.clear();
        self.reads.clear();
        self.reads_lost.clear();
        self.roles.clear();
        self.snapshots.clear();
        self.snapshots_wanted.clear();
        self.install.clear();
        self.asks.clear();
        self.snapshots_behind.clear();
        self.conf_changed.clear();
        self.faults.clear();
    }
}

/// One batch for the write-ahead log. Batches are written in the order of `seq`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Io {
    /// Number of the batch; rises by one per batch of this process.
    pub seq: u64,
    /// Records in the order in which they must be written.
    pub records: Vec<IoRecord>,
    /// Whether something waits for the sync; a batch that only records commit indexes may stay unsynced.
    pub must_sync: bool,
}

/// One record of the write-ahead log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IoRecord {
    /// Term, vote and commit index; precedes the entries of the same turn.
    Hard {
        /// Shard it belongs to.
        shard: ShardId,
        /// Current term.
        term: u64,
        /// Node voted for in that term; 0 if none.
        vote: NodeId,
        /// Known commit index.
        commit: u64,
    },
    /// Entries without gaps; what the log held from the first one's index on is replaced.
    Append {
        /// Shard it belongs to.
        shard: ShardId,
        /// The entries, never empty.
        entries: Vec<Entry>,
    },
    /// The log now begins after this point: all older entries are void, a snapshot covers them.
    Restart {
        /// Shard it belongs to.
        shard: ShardId,
        /// The new beginning.
        start: Start,
    },
}

/// What a node is in a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Follows a leader, or waits for one.
    Follower,
    /// Asks whether a campaign could succeed; has not raised its term.
    PreCandidate,
    /// Asks for votes in a new term.
    Candidate,
    /// The one node of its term that may append.
    Leader,
}

/// Why a role, term or known leader changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The shard was opened.
    Started,
    /// No leader was heard for an election timeout.
    NoHeartbeat,
    /// The leader's connection closed and could not be opened again.
    LeaderConnectionLost,
    /// A campaign was asked for by the caller.
    Requested,
    /// A majority would vote for this node: it raised its term.
    PreVoteWon,
    /// A majority voted for this node.
    ElectionWon,
    /// The campaign did not find a majority.
    ElectionLost,
    /// A message with a higher term came.
    HigherTerm,
    /// A leader of the current term was heard.
    LeaderHeard,
    /// A majority did not answer for an election timeout.
    QuorumLost,
    /// Leadership was handed over on purpose.
    Transferred,
    /// Leadership was handed over because this node's disk stood still.
    DiskStalled,
    /// A membership change took this leader's vote away.
    Removed,
    /// The lease is ours.
    LeaseTaken,
    /// The database says that somebody else has the lease.
    LeaseLost,
    /// The lease could not be renewed before its time was over.
    LeaseRanOut,
}

/// Who answered a node that asked for votes, itself included. Answers that came too late to count are not in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ballot {
    /// Who said yes, in the order of the answers.
    pub granted: Vec<NodeId>,
    /// Who said no, in the order of the answers.
    pub refused: Vec<NodeId>,
}

/// One change of role, term or known leader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleChange {
    /// Shard it happened in.
    pub shard: ShardId,
    /// Term after the change.
    pub term: u64,
    /// Role after the change.
    pub role: Role,
    /// Proven leader of the term; this node itself if it leads.
    pub leader: Option<NodeId>,
    /// Node voted for in the term, if any.
    pub vote: Option<NodeId>,
    /// Why.
    pub reason: Reason,
    /// The pre-vote that this change ends, or that came before the vote that it ends.
    pub pre_votes: Option<Ballot>,
    /// The vote that this change ends.
    pub votes: Option<Ballot>,
}

/// A peer needs the snapshot at `start`.
#[derive(Clone, Debug)]
pub struct SnapshotNeed {
    /// Shard to send.
    pub shard: ShardId,
    /// Peer that needs it.
    pub to: NodeId,
    /// The snapshot's point.
    pub start: Start,
    /// Membership at that point.
    pub conf: Conf,
    /// To hand to the peer's `snapshot_offered` when all data is there; carries no data itself.
    pub message: Message,
}

/// Evidence of a broken promise.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("shard {shard}: {what}")]
pub struct Fault {
    /// Shard that it concerns.
    pub shard: ShardId,
    /// What was seen.
    pub what: String,
}
