//! Handing a leg to its shard's leader: our own gate, or a peer.

use ikada_consensus::NodeId;

use crate::leg::{Leg, LegState};
use crate::output::Now;
use crate::peer::{Ask, PeerMessage, Told};
use crate::replica::Replica;
use crate::seat::Asker;

/// While no leader is known a leg looks again this often (it is also woken when one appears).
const LOOK_AGAIN_MS: u64 = 100;

impl Replica {
    /// Starts a leg.
    pub(crate) fn open_leg(&mut self, leg: Leg, now: Now) {
        let id = self.legs.insert(leg);
        self.dispatch(id, now);
    }

    /// Hands a leg to whoever leads its shard now.
    pub(crate) fn dispatch(&mut self, id: u64, now: Now) {
        let id = self.reroute(id);
        let Some(leg) = self.legs.get_mut(id) else {
            return;
        };
        match self.consensus.leader(leg.shard) {
            None => self.wait_for_leader(id, now),
            Some(leader) if leader == self.config.node => self.hand_to_gate(id, now),
            Some(leader) => self.hand_to_peer(id, leader, now),
        }
    }

    fn hand_to_peer(&mut self, id: u64, leader: NodeId, now: Now) {
        let Some(leg) = self.legs.get_mut(id) else {
            return;
        };
        let (shard, ask) = (leg.shard, std::mem::replace(&mut leg.ask, Ask::ReadIndex));
        // Whoever does not understand the question could not even read the frame that it is in.
        let refused = self.refuse_newer(&ask);
        let message = PeerMessage::Ask { leg: id, shard, ask };
        if refused.is_none() {
            self.send(leader, &message);
        }
        if let (PeerMessage::Ask { ask, .. }, Some(leg)) = (message, self.legs.get_mut(id)) {
            leg.ask = ask;
            if refused.is_none() {
                leg.begin_try(LegState::Sent { to: leader, at_ms: now.mono_ms });
            }
        }
        if let Some(told) = refused {
            self.leg_told(id, told, now);
        }
    }

    fn hand_to_gate(&mut self, id: u64, now: Now) {
        let Some(leg) = self.legs.get_mut(id) else {
            return;
        };
        leg.begin_try(LegState::Local);
        let (shard, ask) = (leg.shard, std::mem::replace(&mut leg.ask, Ask::ReadIndex));
        let told = self.gate(shard, Asker::Local(id), &ask, now);
        if let Some(leg) = self.legs.get_mut(id) {
            leg.ask = ask;
        }
        if let Some(told) = told {
            self.leg_told(id, told, now);
        }
    }

    /// A claim does not wait for a shard without a leader while other shards may have work; all else does.
    fn wait_for_leader(&mut self, id: u64, now: Now) {
        let Some(leg) = self.legs.get_mut(id) else {
            return;
        };
        leg.state = LegState::Waiting { again_ms: now.mono_ms + LOOK_AGAIN_MS };
        let skips = matches!(leg.ask, Ask::Claim(_)) && !leg.handed_over;
        if skips {
            self.resolve(id, Told::NotLeader { leader: None }, now);
        }
    }
}
