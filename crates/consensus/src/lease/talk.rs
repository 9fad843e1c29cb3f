//! The words between a leased shard and the database: every question, and every answer that counts.
//!
//! Promises asked of whoever carries them: each question is answered exactly once, [`Answer::Failed`] at the latest when its
//! time is over; a question either happens as a whole or not at all, and may still happen after `Failed`. Leaves
//! out: SQL, connections and timeouts, which live in the store.

use crate::config::{NodeId, ShardId};
use crate::entry::Entry;

/// One question about one shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Shard it is about.
    pub shard: ShardId,
    /// Its number; the answer names it.
    pub id: u64,
    /// What is wanted.
    pub work: Work,
}

/// What is wanted of the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    /// Take the lease with the next epoch, if there is none, if it was ours in an earlier life, if it has expired by the
    /// database's clock, or if it would last longer than the ttl: then that clock was moved back. In any case only of a database
    /// that still has what we know of it, and that nobody has marked. Answered with the lease as it then is, whoever holds it.
    Take {
        /// How long it shall hold.
        ttl_ms: u64,
        /// What the database must still have, in the same step.
        known: Known,
    },
    /// Extend the lease if it is still ours with this epoch. Answered with the lease.
    Renew {
        /// Our epoch.
        epoch: u64,
        /// How long it shall hold from now.
        ttl_ms: u64,
    },
    /// End the lease now if it is still ours with this epoch. Answered with the lease.
    Release {
        /// Our epoch.
        epoch: u64,
        /// Who should be let first.
        to: Option<NodeId>,
    },
    /// Append, if the lease is still ours with this epoch, and the log ends with the entry that we know and bears no mark.
    /// Answered with `Appended`, `Deposed` or `Conflict`.
    Append {
        /// Our epoch.
        epoch: u64,
        /// The chain at the end of the log as we know it.
        after: Chain,
        /// The entries, without gaps; never empty.
        entries: Vec<Entry>,
    },
    /// Entries from an index on. Answered with `Tail`.
    Read {
        /// The first index wanted.
        from_index: u64,
        /// The answer ends with the entry that passes this many bytes.
        bytes_max: u64,
    },
    /// Answered with `Tail`, without entries.
    Look {
        /// The index after the last one known.
        from_index: u64,
    },
    /// Leave a mark in the database that nobody shall go on with it: we know an entry that it has not, or has otherwise.
    /// Answered with the lease.
    Mark {
        /// How far we know the log.
        index: u64,
    },
    /// Drop the entries up to an index, which a stored snapshot covers, if the lease is still ours and the log is the one that we
    /// know: it must not begin behind its own end. Answered with the lease.
    Purge {
        /// Our epoch.
        epoch: u64,
        /// The last index that may go.
        to_index: u64,
        /// What is known of the log.
        known: Known,
    },
}

/// Tells one history of a log from every other: made of the chain before, of the entry, and of the life and epoch that wrote it.
/// Whoever carries works makes it; here it is only compared. 0 is unknown: an older version wrote the entry, or it is purged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chain(pub u64);

impl Chain {
    /// Nothing is known.
    pub const UNKNOWN: Chain = Chain(0);

    /// Whether an entry that we knew by this chain is another one now.
    pub fn differs_from(self, now: Chain) -> bool {
        self != Chain::UNKNOWN && self != now
    }
}

/// What a node knows of a log: a database that lacks it is not the one that it was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// Highest epoch of the lease.
    pub epoch: u64,
    /// Index of the last entry.
    pub index: u64,
    /// The chain there.
    pub chain: Chain,
}

/// An entry as the database has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The entry.
    pub entry: Entry,
    /// The chain up to it.
    pub chain: Chain,
}

/// One moment of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// The lease.
    pub lease: Lease,
    /// The index before the first one still in the log: what a stored snapshot covers.
    pub purged_index: u64,
    /// The last index of the log.
    pub last_index: u64,
    /// Epoch and chain of the entry before the first one wanted, if it is there.
    pub before: Option<(u64, Chain)>,
    /// The mark of a node that knows more than the log has: how far it knows it, and which node.
    pub missing: Option<(u64, NodeId)>,
}

/// The lease as the database has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lease {
    /// Who took it last; 0 if nobody ever did.
    pub holder: NodeId,
    /// Which process of that node; every start is a new life.
    pub life: u64,
    /// Whether that is this very process.
    pub is_ours: bool,
    /// Its epoch; rises by one with every taking.
    pub epoch: u64,
    /// How long it still holds by the database's clock; 0 if it has expired.
    pub remaining_ms: u64,
    /// Who should be let first after a release.
    pub favoured: Option<NodeId>,
}

/// What the database said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The lease as it is after the work.
    Lease(Lease),
    /// The entries are in the log.
    Appended {
        /// The chain up to the last of them.
        chain: Chain,
    },
    /// The lease is no longer ours: nothing was written.
    Deposed,
    /// The log does not end with what comes before the entries, or bears a mark: nothing was written.
    Conflict,
    /// A part of the log.
    Tail {
        /// Lease and bounds of the same moment.
        head: Head,
        /// Entries from the wanted index on, without gaps.
        entries: Vec<Written>,
    },
    /// Nobody knows whether it happened, or will.
    Failed,
}
