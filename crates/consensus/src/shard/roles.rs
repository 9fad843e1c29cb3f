//! Notices every change of role, term or leader, names its reason, and draws election timeouts.
//!
//! Promises: `settle` runs after each call into the engine. It replaces the engine's own random timeout by one
//! from our generator, so that runs repeat; it loses the reads of a deposed leader; it reports (MQ-27).

use raft::StateRole;

use super::Shard;
use crate::config::NodeId;
use crate::message::MessageKind;
use crate::outbox::{Reason, Role, RoleChange};

/// What others are told of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct View {
    pub(super) term: u64,
    pub(super) role: Role,
    pub(super) leader: NodeId,
    /// Node that leadership is being handed to; 0 if none. Not reported, but it explains a step-down.
    pub(super) transferee: NodeId,
}

impl Default for View {
    fn default() -> Self {
        View { term: 0, role: Role::Follower, leader: 0, transferee: 0 }
    }
}

/// What was done to the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    Tick,
    ShortTimer,
    Request,
    Message(MessageKind),
    PeerGone,
    Change,
    Other,
}

impl Shard {
    pub(super) fn view(&self) -> View {
        let raft = &self.raw.raft;
        View {
            term: raft.term,
            role: self.role(),
            leader: raft.leader_id,
            transferee: raft.lead_transferee.unwrap_or(0),
        }
    }

    /// Draws a new election timeout. Called when the engine's own may have changed and a new wait begins.
    pub(super) fn draw_timeout(&mut self) {
        let least = self.raw.raft.election_timeout();
        self.timeout_ticks = self.rng.usize(least..2 * least);
        self.raw.raft.set_randomized_election_timeout(self.timeout_ticks);
    }

    /// Brings our view up to date after the engine was called for `cause`.
    pub(super) fn settle(&mut self, cause: Cause) {
        self.is_dirty = true;
        let before = self.seen;
        let after = self.view();
        if (before.term, before.role) != (after.term, after.role) {
            self.draw_timeout();
        } else {
            // The engine may have drawn on its own in between: ours holds.
            self.raw.raft.set_randomized_election_timeout(self.timeout_ticks);
        }
        self.seen = after;
        if before.role == Role::Leader && (after.role != Role::Leader || before.term != after.term)
        {
            self.notice.forget();
            self.reads.lose_all();
        }
        if after.leader != 0 {
            self.timers.stop();
        }
        self.finish_repair();
        let (pre_votes, votes) = self.count_ballots(before, after);
        let is_reported = (before.term, before.role, before.leader);
        if is_reported != (after.term, after.role, after.leader) {
            self.roles.push(RoleChange {
                shard: self.id,
                term: after.term,
                role: after.role,
                leader: self.leader(),
                vote: self.vote(),
                reason: reason(before, after, cause, self.is_stalled()),
                pre_votes,
                votes,
            });
        }
    }

    pub(crate) fn role(&self) -> Role {
        match self.raw.raft.state {
            StateRole::Follower => Role::Follower,
            StateRole::PreCandidate => Role::PreCandidate,
            StateRole::Candidate => Role::Candidate,
            StateRole::Leader => Role::Leader,
        }
    }

    pub(super) fn is_leader(&self) -> bool {
        self.raw.raft.state == StateRole::Leader
    }
}

fn reason(before: View, after: View, cause: Cause, is_stalled: bool) -> Reason {
    match (after.role, cause) {
        (Role::Leader, _) => Reason::ElectionWon,
        (Role::Candidate, Cause::Message(MessageKind::TimeoutNow)) => Reason::Transferred,
        (Role::Candidate, _) => Reason::PreVoteWon,
        (Role::PreCandidate, Cause::ShortTimer) => Reason::LeaderConnectionLost,
        (Role::PreCandidate, Cause::Request) => Reason::Requested,
        (Role::PreCandidate, _) => Reason::NoHeartbeat,
        (Role::Follower, Cause::Tick) => Reason::QuorumLost,
        (Role::Follower, Cause::PeerGone) => Reason::LeaderConnectionLost,
        (Role::Follower, Cause::Change) => Reason::Removed,
        (Role::Follower, _) if after.term > before.term && before.transferee != 0 => {
            if is_stalled {
                Reason::DiskStalled
            } else {
                Reason::Transferred
            }
        }
        (Role::Follower, _) if after.term > before.term => Reason::HigherTerm,
        (Role::Follower, _) if after.leader != 0 => Reason::LeaderHeard,
        (Role::Follower, _) => Reason::ElectionLost,
    }
}
