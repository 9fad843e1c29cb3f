//! Asking again, and giving up in time.

use ikada_consensus::NodeId;
use ikada_state::ShardId;

use crate::call::CallId;
use crate::leg::{GIVE_BACK_MS, LegState, Owner};
use crate::output::Now;
use crate::peer::{Ask, Told};
use crate::planted::{self, Bug};
use crate::replica::Replica;

impl Replica {
    /// Looks after all legs: deadlines first, then those due to be asked again.
    pub(crate) fn tend_legs(&mut self, now: Now) {
        for id in self.legs.matching(|leg| leg.deadline_ms <= now.mono_ms) {
            let handed_over = self.legs.get_mut(id).is_some_and(|leg| leg.handed_over);
            if planted::active(Bug::UnknownToldAsFailed) {
                if let Some(leg) = self.legs.get_mut(id) {
                    leg.handed_over = false;
                }
                self.resolve(id, Told::NotLeader { leader: None }, now);
                continue;
            }
            let told = if handed_over { Told::Unknown } else { Told::NotLeader { leader: None } };
            self.resolve(id, told, now);
        }
        let again_ms = self.config.ask_again_ms;
        let due = self.legs.matching(|leg| match leg.state {
            LegState::Waiting { again_ms } => again_ms <= now.mono_ms,
            LegState::Sent { at_ms, .. } => {
                at_ms + again_ms * u64::from(leg.tries.min(4)) <= now.mono_ms
            }
            LegState::Local => false,
        });
        for id in due {
            self.dispatch(id, now);
        }
    }

    /// A shard has a (new) leader: its legs go there at once. Those that this node's own gate took while it led are
    /// asked again elsewhere; the request ids keep them from happening twice.
    pub(crate) fn redirect_legs(&mut self, shard: ShardId, leader: NodeId, now: Now) {
        let node = self.config.node;
        let moved = self.legs.matching(|leg| {
            leg.shard == shard
                && match leg.state {
                    LegState::Waiting { .. } => true,
                    LegState::Local => leader != node,
                    LegState::Sent { to, .. } => to != leader,
                }
        });
        for id in moved {
            self.dispatch(id, now);
        }
    }

    /// The connection to a peer broke: what it was asked is asked again, wherever the leader is now.
    pub(crate) fn unsent_legs(&mut self, peer: NodeId, now: Now) {
        let broken =
            self.legs.matching(|leg| matches!(leg.state, LegState::Sent { to, .. } if to == peer));
        for id in broken {
            if let Some(leg) = self.legs.get_mut(id) {
                leg.state = LegState::Waiting { again_ms: now.mono_ms };
            }
        }
    }

    /// The caller has gone or given up: its legs end silently, except that a claim under way is given back when it
    /// is granted after all.
    pub(crate) fn forget_call_legs(&mut self, call: CallId, now: Now) {
        for id in self.legs.matching(|leg| matches!(leg.owner, Owner::Call(c, _) if c == call)) {
            let Some(leg) = self.legs.get_mut(id) else {
                continue;
            };
            match &leg.ask {
                Ask::Claim(order) if leg.handed_over => {
                    leg.owner = Owner::GiveBack(order.namespace.clone());
                    leg.deadline_ms = now.mono_ms + GIVE_BACK_MS;
                }
                _ => drop(self.legs.remove(id)),
            }
        }
    }
}
