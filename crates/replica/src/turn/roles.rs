//! What follows from a change of role: leader-only memory is derived or dropped, waiting legs find the new leader.

use ikada_consensus::{Role, RoleChange};

use crate::output::Now;
use crate::replica::Replica;

impl Replica {
    pub(crate) fn role_changed(&mut self, change: &RoleChange, now: Now) {
        self.events.push(change, now.wall_ms);
        self.outputs.roles.push(change.clone());
        self.tending.balance.moved_ms = now.mono_ms;
        let log_end = self.consensus.last_index(change.shard);
        let seat = &mut self.seats[usize::from(change.shard)];
        let led = seat.leads();
        if seat.role != change.role {
            seat.role_since_ms = now.wall_ms;
        }
        if seat.leader.is_some() && change.leader.is_none() {
            seat.leader_lost_ms = now.mono_ms;
        }
        let new_leader = change.leader.filter(|leader| seat.leader != Some(*leader));
        seat.role = change.role;
        seat.leader = change.leader;
        match (led, change.role == Role::Leader) {
            (false, true) => seat.take_lead(log_end, now.mono_ms),
            (true, false) => seat.clear_lead(),
            _ => {}
        }
        if let Some(leader) = new_leader {
            self.redirect_legs(change.shard, leader, now);
            self.claims_look_at(change.shard, now);
        }
    }

    /// Graceful stop: every shard led here is handed to its most caught-up voter.
    pub(crate) fn hand_over(&mut self) {
        if self.is_leased() {
            self.release_leases();
            return;
        }
        for position in 0..self.seats.len() {
            self.give_lead_away(position as u16);
        }
    }

    /// Begins to hand one shard over to the best voter that is up, if this node leads it.
    pub(crate) fn give_lead_away(&mut self, shard: u16) {
        if self.seats[usize::from(shard)].leads()
            && self.consensus.transferring(shard).is_none()
            && let Some(to) = self.best_successor(shard)
        {
            // A refusal (the node just lost the lead) leaves nothing to do.
            let _ = self.consensus.transfer(shard, to);
        }
    }

    /// Whether a graceful stop has nothing more to wait for.
    pub(crate) fn is_handed_over(&self, now: Now) -> bool {
        let Some(since) = self.stopping_since_ms else {
            return false;
        };
        // A lease is given back even if nobody is there to take it.
        let leads_with_successor = self.seats.iter().any(|seat| {
            seat.leads() && (self.is_leased() || self.best_successor(seat.shard).is_some())
        });
        !leads_with_successor || now.mono_ms.saturating_sub(since) >= self.config.stop_wait_ms
    }
}
