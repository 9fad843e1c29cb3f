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
    /// database's clock, or if it would last longer than the ttl: then that clock was moved back. Answered with the lease as it then is, whoever holds it.
    Take {
        /// How long it shall hold.
        ttl_ms: u64,
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
    /// Append, if the lease is still ours with this epoch. Answered with `Appended`, `Deposed` or `Conflict`.
    Append {
        /// Our epoch.
        epoch: u64,
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
    /// Answered with the lease.
    Look,
    /// Drop the entries up to an index, which a stored snapshot covers, if the lease is still ours. Answered with the lease.
    Purge {
        /// Our epoch.
        epoch: u64,
        /// The last index that may go.
        to_index: u64,
    },
}

/// The lease as the database has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lease {
    /// Who took it last; 0 if nobody ever did.
    pub holder: NodeId,
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
    Appended,
    /// The lease is no longer ours: nothing was written.
    Deposed,
    /// The first index is taken: nothing was written.
    Conflict,
    /// A part of the log.
    Tail {
        /// The lease at the same moment.
        lease: Lease,
        /// The index before the first one still in the log: what a stored snapshot covers.
        purged_index: u64,
        /// The last index of the log.
        last_index: u64,
        /// Entries from the wanted index on, without gaps.
        entries: Vec<Entry>,
    },
    /// Nobody knows whether it happened, or will.
    Failed,
}
