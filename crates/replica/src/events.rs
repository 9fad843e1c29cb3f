//! The ring of role changes (MQ-27): every change of role or leader, with its reason, numbered.

use std::collections::VecDeque;

use ikada_consensus::{Reason, RoleChange};

use crate::status::RoleEvent;

/// Events kept; older ones are dropped first.
const EVENTS_MAX: usize = 4_096;

/// The ring.
#[derive(Debug, Default)]
pub(crate) struct Events {
    ring: VecDeque<RoleEvent>,
    count: u64,
}

impl Events {
    pub fn push(&mut self, change: &RoleChange, wall_ms: u64) {
        self.count += 1;
        if self.ring.len() >= EVENTS_MAX {
            self.ring.pop_front();
        }
        self.ring.push_back(RoleEvent {
            sequence: self.count,
            wall_ms,
            shard: change.shard,
            term: change.term,
            role: change.role,
            leader: change.leader,
            vote: change.vote,
            reason: reason_text(change.reason),
            pre_votes: change.pre_votes.clone(),
            votes: change.votes.clone(),
        });
    }

    pub fn after(&self, sequence: u64, count_max: usize) -> Vec<RoleEvent> {
        let fresh = self.ring.iter().filter(|event| event.sequence > sequence);
        fresh.take(count_max).cloned().collect()
    }
}

/// The reason in stable words.
pub fn reason_text(reason: Reason) -> &'static str {
    match reason {
        Reason::Started => "started",
        Reason::NoHeartbeat => "no heartbeat from the leader",
        Reason::LeaderConnectionLost => "connection to the leader refused",
        Reason::Requested => "campaign requested",
        Reason::PreVoteWon => "pre-vote won",
        Reason::ElectionWon => "election won",
        Reason::ElectionLost => "election lost",
        Reason::HigherTerm => "higher term seen",
        Reason::LeaderHeard => "leader heard",
        Reason::QuorumLost => "quorum lost",
        Reason::Transferred => "leadership transferred",
        Reason::DiskStalled => "the disk stood still, leadership transferred",
        Reason::Removed => "removed from the members",
        Reason::LeaseTaken => "took the lease",
        Reason::LeaseLost => "somebody else has the lease",
        Reason::LeaseRanOut => "could not renew the lease in time",
    }
}
