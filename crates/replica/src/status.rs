//! How a node describes itself: roles, positions, peers, and the ring of role changes (MQ-27, B4-52).
//!
//! Plain values copied out of the replica; nothing here decides anything.

use ikada_consensus::{Ballot, NodeId, Role};
use ikada_state::{GrowthView, Lsn, Member, Roster, ShardId};

use crate::origin::OpenKind;
use crate::output::{DatabaseHealth, Now};
use crate::replica::Replica;
use crate::seat::Seat;

/// One node's view of itself and its peers.
#[derive(Debug, Clone)]
pub struct NodeStatus {
    /// This node.
    pub node: NodeId,
    /// The cluster's id.
    pub cluster: u64,
    /// Every shard of this node, in order.
    pub shards: Vec<ShardStatus>,
    /// The growth that runs, as this node knows of it.
    pub growth: Option<GrowthView>,
    /// Shards that the cluster has, also those that are not open here yet.
    pub shard_count: u16,
    /// Every other member, in id order.
    pub peers: Vec<PeerStatus>,
    /// All members as shard 0 records them.
    pub members: Vec<Member>,
    /// The change under way and how leadership is steered; none if nothing was ever asked for.
    pub roster: Option<Roster>,
    /// What every member's program understands.
    pub level: u32,
    /// What this node's program understands.
    pub own_level: u32,
    /// The least silence before an election and the time between heartbeats, as this node keeps them; none where logs
    /// live in a database.
    pub elections_ms: Option<(u64, u64)>,
    /// How the database that holds the logs takes writes; none where they live on the nodes.
    pub database: Option<DatabaseHealth>,
    /// Our wall clock minus the voters' median, in ms.
    pub clock_offset_ms: i64,
    /// Calls waiting for an answer.
    pub calls_waiting: usize,
    /// Claims parked for want of work.
    pub claims_parked: usize,
    /// Whether a graceful stop has begun.
    pub stopping: bool,
}

/// One shard on one node.
#[derive(Debug, Clone)]
pub struct ShardStatus {
    /// Which shard.
    pub shard: ShardId,
    /// What this node is in it.
    pub role: Role,
    /// The current term.
    pub term: u64,
    /// The proven leader, if any (B4-47: never a mere candidate).
    pub leader: Option<NodeId>,
    /// Whom this node voted for in this term.
    pub voted_for: Option<NodeId>,
    /// Highest index known to be committed.
    pub commit: u64,
    /// Position of the state.
    pub applied: Lsn,
    /// Log time of the state.
    pub log_time_ms: u64,
    /// Last index in the log.
    pub last_index: u64,
    /// The log begins after this index.
    pub start_index: u64,
    /// Hash of the state at `applied`.
    pub hash: u64,
    /// Voting members.
    pub voters: Vec<NodeId>,
    /// Members that do not vote.
    pub learners: Vec<NodeId>,
    /// Whether a membership change is under way.
    pub joint: bool,
    /// Whether the log was damaged and is being fetched again (R11).
    pub repairing: bool,
    /// When the role last changed, wall clock.
    pub role_since_ms: u64,
    /// Tasks scheduled, ready, claimed; finished ones still kept.
    pub scheduled: u64,
    /// Ready to be claimed.
    pub ready: u64,
    /// Being worked on.
    pub claimed: u64,
    /// Finished and still listed.
    pub finished: u64,
    /// Submissions that are remembered, so that they make no second task.
    pub submits: u64,
    /// How old the oldest of them is, in log time; none if none is remembered.
    pub oldest_submit_age_ms: Option<u64>,
    /// Every other member with the highest index that it is known to have stored, or to have read from a database; empty
    /// unless this node leads.
    pub followers: Vec<(NodeId, u64)>,
}

/// One peer as this node sees it.
#[derive(Debug, Clone)]
pub struct PeerStatus {
    /// Which node.
    pub node: NodeId,
    /// Whether a connection stands.
    pub connected: bool,
    /// Milliseconds since anything was heard from it; absent if never.
    pub heard_ms_ago: Option<u64>,
    /// Its wall clock minus ours, as far as frames tell.
    pub clock_offset_ms: Option<i64>,
    /// What its program understands; absent if it cannot be reached or has not said.
    pub level: Option<u32>,
}

/// One role change.
#[derive(Debug, Clone)]
pub struct RoleEvent {
    /// Counts up from 1 in this process.
    pub sequence: u64,
    /// When, by this node's wall clock.
    pub wall_ms: u64,
    /// Which shard.
    pub shard: ShardId,
    /// In which term.
    pub term: u64,
    /// What this node became.
    pub role: Role,
    /// Whom it follows or is.
    pub leader: Option<NodeId>,
    /// Whom it voted for in that term.
    pub vote: Option<NodeId>,
    /// Why, in a few stable words.
    pub reason: &'static str,
    /// Who answered the pre-vote that this change ends or that led to it.
    pub pre_votes: Option<Ballot>,
    /// Who answered the vote that this change ends.
    pub votes: Option<Ballot>,
}

impl Replica {
    /// This node's view of itself and its peers.
    pub fn status(&self, now: Now) -> NodeStatus {
        let node = self.config.node;
        let voters = self.consensus.conf(0).voters;
        let median = self.clocks.median(node, &voters, now) as i64;
        let parked = self.calls.values().filter(|open| matches!(open.kind, OpenKind::Claim(_)));
        let others = self.members().iter().map(|member| member.node).filter(|peer| *peer != node);
        NodeStatus {
            node,
            cluster: self.config.cluster,
            shards: self.seats.iter().map(|seat| self.shard_status(seat)).collect(),
            growth: self.seats[0].state.growth_view(),
            shard_count: self.seats[0].state.shards(),
            peers: others.map(|peer| self.peer_status(peer, now)).collect(),
            members: self.members().to_vec(),
            roster: self.roster().cloned(),
            level: self.seats[0].state.level(),
            own_level: self.config.level,
            elections_ms: (!self.is_leased()).then(|| self.elections_ms()),
            database: self.database_health(),
            clock_offset_ms: now.wall_ms as i64 - median,
            calls_waiting: self.calls_waiting(),
            claims_parked: parked.count(),
            stopping: self.stopping_since_ms.is_some(),
        }
    }

    /// The least silence before an election and the time between heartbeats.
    fn elections_ms(&self) -> (u64, u64) {
        let own = &self.config.consensus;
        let timeout_ms = self.wanted_election_ms();
        let heartbeats = own.heartbeat_ticks as u64;
        (timeout_ms, timeout_ms * heartbeats / own.election_ticks as u64)
    }

    /// Role changes after the given number, oldest first.
    pub fn events(&self, after: u64, count_max: usize) -> Vec<RoleEvent> {
        self.events.after(after, count_max)
    }

    fn peer_status(&self, peer: NodeId, now: Now) -> PeerStatus {
        let known = self.peers.get(&peer).copied().unwrap_or_default();
        PeerStatus {
            node: peer,
            connected: known.up,
            heard_ms_ago: known.heard_ms.map(|heard| now.mono_ms.saturating_sub(heard)),
            clock_offset_ms: self.clocks.offset(peer, now),
            level: self.level_of(peer),
        }
    }

    fn shard_status(&self, seat: &Seat) -> ShardStatus {
        let shard = seat.shard;
        let conf = self.consensus.conf(shard);
        let sizes = seat.state.sizes();
        ShardStatus {
            shard,
            role: seat.role,
            term: self.consensus.term(shard),
            leader: self.consensus.leader(shard),
            voted_for: self.consensus.vote(shard),
            commit: self.consensus.commit(shard),
            applied: seat.state.applied(),
            log_time_ms: seat.state.time_ms(),
            last_index: self.consensus.last_index(shard),
            start_index: self.consensus.first_index(shard).saturating_sub(1),
            hash: seat.state.hash(),
            joint: conf.is_joint(),
            voters: conf.voters,
            learners: conf.learners,
            repairing: self.consensus.is_repairing(shard),
            role_since_ms: seat.role_since_ms,
            scheduled: sizes.scheduled,
            ready: sizes.ready,
            claimed: sizes.claimed,
            finished: sizes.finished,
            submits: sizes.submits,
            oldest_submit_age_ms: seat
                .state
                .oldest_submit_ms()
                .map(|submit_ms| seat.state.time_ms().saturating_sub(submit_ms)),
            followers: self.followers_of(shard),
        }
    }
}
