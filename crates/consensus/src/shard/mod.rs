//! One shard: the engine and everything that makes it safe to use.
//!
//! Promises: after every call into the engine `settle` runs, so that timeouts come from our generator and every
//! change of role is reported; the engine is never called in a state in which it would panic.
//!
//! The parts: `open` builds it, `step` screens messages, `ready` moves work out, `persist` takes disk answers,
//! `notice` tells followers what is committed, `timers`, `roles` and `ballots` hold elections, `relieve` replaces a leader without a disk, `repair` mends a damaged
//! log, `reads` does read rounds, `change` membership,
//! `snapshot` snapshots, `ask` the queries.

mod ask;
mod ballots;
mod change;
mod notice;
mod open;
mod persist;
mod propose;
mod reads;
mod ready;
mod relieve;
mod repair;
mod roles;
mod snapshot;
mod step;
mod timers;

use std::collections::VecDeque;

use raft::RawNode;

pub use ask::{PeerProgress, PeerState, Standing};

use crate::conf::Conf;
use crate::config::{NodeId, ShardId};
use crate::log::MemoryLog;
use crate::message::Message;
use crate::outbox::{Fault, RoleChange};

/// One shard of this node.
pub(crate) struct Shard {
    id: ShardId,
    node: NodeId,
    keep_bytes: u64,
    raw: RawNode<MemoryLog>,
    rng: fastrand::Rng,
    /// Election timeout in ticks that we drew; the engine's own draw never counts.
    timeout_ticks: usize,
    /// Role, term and leader as last reported.
    seen: roles::View,
    /// Work handed out whose durability is not confirmed, oldest first.
    pending: VecDeque<persist::Pending>,
    /// Highest index handed out for applying.
    emitted: u64,
    /// Highest index that the caller has applied or installed.
    applied: u64,
    reads: reads::Reads,
    /// Present while the log is damaged.
    repair: Option<repair::Repair>,
    timers: timers::Timers,
    notice: notice::Notice,
    /// Answers to the campaign that is under way.
    ballots: ballots::Ballots,
    stall: relieve::Stall,
    /// Index of a snapshot that was accepted and is not installed yet.
    installing: Option<u64>,
    /// Memberships since the last snapshot point, by the index at which each took effect.
    confs: Vec<(u64, Conf)>,
    /// Term at which the process started, for a planted defect.
    opened_term: u64,
    /// Index of a change that a planted defect applied too early.
    changed_early: u64,
    /// Messages whose wait is over.
    released: Vec<Message>,
    /// Reported by the next drain.
    roles: Vec<RoleChange>,
    faults: Vec<Fault>,
    /// Whether anything happened since the last drain.
    is_dirty: bool,
}
