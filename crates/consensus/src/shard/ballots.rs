//! Remembers who answered a campaign and how, so that a change of role can name the votes that decided it.
//!
//! Promise: it only looks; the engine counts, and what is noted here decides nothing. Answers that come after the
//! campaign has ended are not noted.

use raft::eraftpb;

use super::Shard;
use super::roles::View;
use crate::message::MessageKind;
use crate::outbox::{Ballot, Role};

/// Answers to the campaign that is under way.
#[derive(Default)]
pub(super) struct Ballots {
    pre_votes: Option<Ballot>,
    votes: Option<Ballot>,
}

impl Ballot {
    fn own(node: u64) -> Ballot {
        Ballot { granted: vec![node], refused: Vec::new() }
    }

    fn len(&self) -> usize {
        self.granted.len() + self.refused.len()
    }
}

impl Shard {
    /// Notes an answer that the engine is about to count.
    pub(super) fn note_answer(&mut self, kind: MessageKind, inner: &eraftpb::Message) {
        let ballot = match (kind, self.role()) {
            (MessageKind::PreVoteAnswer, Role::PreCandidate) => &mut self.ballots.pre_votes,
            (MessageKind::VoteAnswer, Role::Candidate) => &mut self.ballots.votes,
            _ => return,
        };
        let Some(ballot) = ballot else { return };
        let is_known = ballot.granted.contains(&inner.from) || ballot.refused.contains(&inner.from);
        // The engine drops answers of older terms; so do we. The bound: one answer per member.
        let is_member = self.raw.raft.prs().get(inner.from).is_some();
        if is_known || !is_member || inner.term < self.raw.raft.term {
            return;
        }
        match inner.reject {
            true => ballot.refused.push(inner.from),
            false => ballot.granted.push(inner.from),
        }
    }

    /// Follows the campaign from one view to the next; gives the ballots that the change ends.
    pub(super) fn count_ballots(
        &mut self,
        before: View,
        after: View,
    ) -> (Option<Ballot>, Option<Ballot>) {
        let has_changed = (before.term, before.role) != (after.term, after.role);
        let own = Some(Ballot::own(self.node));
        match after.role {
            Role::PreCandidate if has_changed || self.is_asked_anew() => {
                self.ballots = Ballots { pre_votes: own, votes: None };
                (None, None)
            }
            Role::Candidate if has_changed => {
                let pre_votes = match before.role {
                    Role::PreCandidate => self.ballots.pre_votes.take(),
                    _ => None,
                };
                self.ballots = Ballots { pre_votes: pre_votes.clone(), votes: own };
                (pre_votes, None)
            }
            Role::Leader if has_changed => {
                let Ballots { pre_votes, votes } = std::mem::take(&mut self.ballots);
                // A lone voter wins in the same step in which it asks.
                (pre_votes, votes.or(own))
            }
            Role::Follower => {
                let Ballots { pre_votes, votes } = std::mem::take(&mut self.ballots);
                (pre_votes, votes)
            }
            _ => (None, None),
        }
    }

    /// Whether the engine has begun the same campaign again: it knows of fewer answers than were noted.
    fn is_asked_anew(&self) -> bool {
        let (granted, refused, _) = self.raw.raft.prs().tally_votes();
        let noted = self.ballots.pre_votes.as_ref().map_or(0, Ballot::len);
        noted > 1 && granted + refused <= 1
    }
}
