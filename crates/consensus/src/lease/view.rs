//! What can be asked of a leased shard, and what is reported of it.

use super::{LeaseShard, Stand};
use crate::conf::{Change, Conf};
use crate::config::NodeId;
use crate::errors::ChangeError;
use crate::outbox::{Reason, Role, RoleChange};

/// Role, epoch and leader as last reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct View(Option<(Role, u64, Option<NodeId>)>);

impl LeaseShard {
    /// Reports a change of role, epoch or leader, if there is one.
    pub(super) fn report(&mut self, reason: Reason) {
        let (role, term, leader) = (self.role(), self.epoch_max, self.leader());
        let view = View(Some((role, term, leader)));
        if view != self.reported {
            self.reported = view;
            self.roles.push(RoleChange {
                shard: self.id,
                term,
                role,
                leader,
                vote: None,
                reason,
                pre_votes: None,
                votes: None,
            });
        }
    }

    pub(crate) fn role(&self) -> Role {
        match self.stand {
            Stand::Follows => Role::Follower,
            Stand::CatchesUp(_) => Role::Candidate,
            Stand::Leads(_) => Role::Leader,
        }
    }

    pub(crate) fn term(&self) -> u64 {
        self.epoch_max
    }

    /// Who holds the lease, as far as its time is not over by our clock.
    pub(crate) fn leader(&self) -> Option<NodeId> {
        match self.stand {
            Stand::Leads(_) => Some(self.node),
            Stand::CatchesUp(_) => None,
            Stand::Follows => {
                let (lease, at_ms) = self.seen?;
                let is_fresh = self.now_ms < at_ms.saturating_add(lease.remaining_ms);
                Some(lease.holder).filter(|holder| is_fresh && *holder != self.node)
            }
        }
    }

    pub(crate) fn commit(&self) -> u64 {
        self.last.index
    }

    /// The last index, written or not.
    pub(crate) fn last_index(&self) -> u64 {
        self.queue.back().map_or(self.last.index, |entry| entry.index)
    }

    pub(crate) fn first_index(&self) -> u64 {
        self.start.index + 1
    }

    pub(crate) fn conf(&self) -> Conf {
        self.conf.clone()
    }

    pub(crate) fn conf_applied(&self) -> &Conf {
        &self.conf
    }

    /// Who the members are is not in this log; whoever knows says so.
    pub(crate) fn set_conf(&mut self, conf: Conf) {
        self.conf = conf;
    }

    pub(crate) fn set_priority(&mut self, priority: i64) {
        self.priority = priority;
    }

    pub(crate) fn set_turn(&mut self, turn_ms: u64) {
        self.turn_ms = turn_ms;
    }

    pub(crate) fn transferring(&self) -> Option<NodeId> {
        self.leaving.filter(|to| *to != 0)
    }

    /// Whether a leader has written in its own epoch.
    pub(crate) fn is_settled(&self) -> bool {
        matches!(self.stand, Stand::Leads(hold) if self.last.term == hold.epoch)
    }

    pub(crate) fn term_at(&self, index: u64) -> Option<u64> {
        let points = [self.start, self.last];
        points.iter().find(|point| point.index == index).map(|point| point.term)
    }

    /// Membership is not changed through the log here.
    pub(crate) fn change(&self, _: &Change) -> Result<(u64, u64), ChangeError> {
        self.check_leads()?;
        Err(ChangeError::Leased)
    }
}
