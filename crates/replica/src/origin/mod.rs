//! Calls, as the node that was asked looks after them: split over shards, collected, answered once.
//!
//! Invariant: every call is answered exactly once, at its deadline at the latest.

mod admin;
mod claim;
mod lease;
mod open;
mod read;
mod renew;
mod write;

use ikada_state::ShardId;

pub(crate) use lease::OpenLease;
pub(crate) use write::only_outcome;

use crate::call::{ClaimCall, Consistency, LeaseWatch, Outcome, Query, RenewOutcome};
use std::collections::{BTreeMap, VecDeque};

/// An unanswered call.
#[derive(Debug)]
pub(crate) struct OpenCall {
    pub deadline_ms: u64,
    pub kind: OpenKind,
}

/// What is collected for it.
#[derive(Debug)]
pub(crate) enum OpenKind {
    Write { outcomes: Vec<Option<Outcome>>, missing: usize },
    Renew { outcomes: Vec<Option<RenewOutcome>>, missing: usize },
    Claim(Box<OpenClaim>),
    Read(Box<OpenRead>),
    Lease(Box<OpenLease>),
    Watch(Box<LeaseWatch>),
    Admin,
}

/// A claim that looks for work: one shard at a time, so that a free slot is never offered twice.
#[derive(Debug)]
pub(crate) struct OpenClaim {
    pub wish: ClaimCall,
    /// When to answer with nothing.
    pub patience_ms: u64,
    /// Shards still to be tried in this round.
    pub round: VecDeque<ShardId>,
    /// Whether a shard is being asked right now.
    pub asking: bool,
    /// When to start a round of its own accord.
    pub again_ms: u64,
}

/// A read that waits until this node's state is new enough.
#[derive(Debug)]
pub(crate) struct OpenRead {
    pub query: Query,
    pub consistency: Consistency,
    /// Shard -> index that must be applied; none while the leader is being asked.
    pub needs: BTreeMap<ShardId, Option<u64>>,
    /// Number of shards and version of the map by which the needs were chosen.
    pub chosen_by: (u16, u64),
}
