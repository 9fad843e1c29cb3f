//! One shard's seat on this node: its state, and what only its leader keeps (gathered orders, tickets, claim lifetimes,
//! interests).
//!
//! Invariants: tickets are in index order, one per proposed entry; leader-only parts are empty unless this node leads.

mod asked;
mod gone;
mod granted;
mod interest;
mod pending;
mod waiting;

pub(crate) use asked::Asked;
pub(crate) use gone::Gone;
pub(crate) use granted::Granted;
pub(crate) use interest::Interest;
pub(crate) use pending::{Asker, Pending, Ticket};
pub(crate) use waiting::{Round, Waiting};

use std::collections::{BTreeMap, VecDeque};

use ikada_consensus::{Entry, NodeId, Role, Start};
use ikada_state::{Order, Shard, ShardId};

use crate::beats::Beats;
use crate::clock::LogClock;
use crate::holdings::Holdings;
use crate::liveness::Liveness;
use crate::peer::Told;
use crate::planted::{self, Bug};

/// One shard on this node.
#[derive(Debug)]
pub(crate) struct Seat {
    pub shard: ShardId,
    pub state: Shard,
    pub role: Role,
    pub leader: Option<NodeId>,
    /// When the role changed, wall clock.
    pub role_since_ms: u64,
    /// When the leader was last lost, monotonic.
    pub leader_lost_ms: u64,
    /// Orders gathered for the next entries.
    pub pending: Pending,
    /// Entries proposed by this node and not yet applied.
    pub tickets: VecDeque<Ticket>,
    /// Questions that a quorum's word is awaited for, by the id given to the engine, and what is answered with it; the
    /// index of the read if that is all that is asked for.
    pub reads: BTreeMap<u64, (Asker, Option<Told>)>,
    pub clock: LogClock,
    pub liveness: Liveness,
    pub granted: Granted,
    pub gone: Gone,
    pub holdings: Holdings,
    /// Who beats; only for shard 0.
    pub beats: Beats,
    pub interest: Interest,
    /// When workers last asked for each queue.
    pub asked: Asked,
    /// Workers that have free slots.
    pub waiting: Waiting,
    /// When this node last became leader, monotonic.
    pub led_since_ms: u64,
    /// The end of the log when this node last became leader.
    pub led_from: u64,
    /// Targets to which outbox messages are on their way or not yet acknowledged, or that refused some: not tried again
    /// before this time.
    pub delivering: BTreeMap<ShardId, u64>,
    /// Set while a received snapshot is being loaded; entries wait meanwhile.
    pub loading: Option<Loading>,
    pub snapshot: SnapshotProgress,
    /// Orders that add members are gathered (`u64::MAX`), or on their way up to this entry.
    pub adds_until: u64,
    /// When a node under repair last asked for an entry.
    pub nudged_ms: u64,
}

/// A snapshot being loaded into the state.
#[derive(Debug)]
pub(crate) struct Loading {
    pub start: Start,
    pub conf: ikada_consensus::Conf,
    pub waiting: Vec<Entry>,
}

/// How far the next snapshot is.
#[derive(Debug, Default)]
pub(crate) struct SnapshotProgress {
    pub saving: bool,
    pub log_bytes: u64,
    pub entries: u64,
    pub last_bytes: u64,
}

impl Seat {
    pub fn new(shard: ShardId, state: Shard) -> Self {
        Seat {
            shard,
            state,
            role: Role::Follower,
            leader: None,
            role_since_ms: 0,
            leader_lost_ms: 0,
            pending: Pending::default(),
            tickets: VecDeque::new(),
            reads: BTreeMap::new(),
            clock: LogClock::default(),
            liveness: Liveness::default(),
            granted: Granted::default(),
            gone: Gone::default(),
            holdings: Holdings::default(),
            beats: Beats::default(),
            interest: Interest::default(),
            asked: Asked::default(),
            waiting: Waiting::default(),
            led_since_ms: 0,
            led_from: 0,
            delivering: BTreeMap::new(),
            loading: None,
            snapshot: SnapshotProgress::default(),
            adds_until: 0,
            nudged_ms: 0,
        }
    }

    pub fn leads(&self) -> bool {
        self.role == Role::Leader
    }

    /// Whether this leader's state holds all that earlier leaders may have committed. Before that it lacks claims whose
    /// holders were told of them already, and must not answer from memory.
    pub fn is_whole(&self) -> bool {
        self.state.applied().index >= self.led_from || planted::active(Bug::RefusedFromMemory)
    }

    /// Whether nobody becomes a member by what is gathered or on its way into the log.
    pub fn knows_its_members(&self) -> bool {
        self.is_whole() && self.state.applied().index >= self.adds_until
    }

    /// Becoming leader: what followers do not keep is derived from the state. Every live claim gets a fresh ttl.
    pub fn take_lead(&mut self, log_end: u64, now_ms: u64) {
        self.clear_lead();
        self.led_from = log_end;
        self.led_since_ms = now_ms;
        for claim in self.state.claims() {
            let stale = planted::active(Bug::TtlNotRestarted);
            let ttl_ms = if stale { 0 } else { u64::from(claim.ttl_ms) };
            let timeout_ms = u64::from(claim.timeout_ms);
            let (slot, fence, session) = (claim.slot, claim.fence, claim.session);
            self.liveness.grant(slot, fence, session, ttl_ms, timeout_ms, now_ms);
        }
        for worker in self.state.workers() {
            self.beats.heard(worker.key(), worker.session, 0, now_ms);
        }
        for lease in self.state.leases() {
            for (mark, ttl_ms) in lease.marks() {
                self.holdings.start(lease.key(), mark, u64::from(ttl_ms), now_ms);
            }
        }
    }

    /// A claim goes into the log for somebody.
    pub fn note_asked(&mut self, order: &Order, asker: Asker) {
        if let Some(key) = &order.request {
            self.granted.asked(&order.namespace, key, asker);
        }
    }

    /// No longer leader. Tickets stay: the entries behind them may yet be committed.
    pub fn clear_lead(&mut self) {
        self.clock.reset();
        self.liveness.clear();
        self.granted.clear();
        self.gone.clear();
        self.holdings.clear();
        self.beats.clear();
        self.interest.clear();
        self.asked.clear();
        self.waiting.clear();
        self.delivering.clear();
        self.adds_until = 0;
    }
}
