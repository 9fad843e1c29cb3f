//! The level of the cluster: what every member's program understands (`state/members/raise_level.rs`).
//!
//! Promise: no order of a higher level than the recorded one is proposed or handed to another node, so that during a rolling
//! upgrade a node of the older version never meets what it does not know. Nodes say every second what they understand; the
//! leader of shard 0 raises the level once every member, reachable now, has said so. A node that says nothing understands
//! level 0. What a peer said is forgotten with the connection: it may come back with another program. What each shard is
//! told once because of a level (`KeepDead`) is told here too.

use ikada_consensus::NodeId;
use ikada_state::{Command, KeepDead, Namespace, Order, RaiseLevel};

use crate::output::Now;
use crate::peer::{Ask, PeerMessage, Told};
use crate::planted::{self, Bug};
use crate::replica::Replica;
use crate::seat::Asker;

/// How often a node says what it understands.
const TELL_EVERY_MS: u64 = 1_000;

/// The level from which on shards keep their dead tasks apart.
const KEEP_DEAD_LEVEL: u32 = 1;

impl Ask {
    /// The level that understands this question and what is asked for.
    fn level(&self) -> u32 {
        let highest = |orders: &[Order]| orders.iter().map(|order| order.command.level()).max();
        match self {
            Ask::Write(orders) => highest(orders).unwrap_or(0),
            Ask::Claim(order) => order.command.level(),
            Ask::Lease(order) => order.command.level(),
            Ask::Renew { .. } | Ask::RenewLease { .. } | Ask::Beat { .. } | Ask::Workers => 0,
            Ask::ReadIndex | Ask::Explain { .. } => 0,
            Ask::Grow { .. } | Ask::Transfer { .. } | Ask::Change { .. } => 0,
        }
    }
}

impl Replica {
    /// Says now and then what this node understands, and raises the cluster's level if it may.
    pub(crate) fn tend_level(&mut self, now: Now) {
        if self.tending.level_told_ms + TELL_EVERY_MS <= now.mono_ms {
            self.tending.level_told_ms = now.mono_ms;
            let message = PeerMessage::Level(self.config.level);
            let up: Vec<NodeId> =
                self.peers.iter().filter(|(_, peer)| peer.up).map(|(node, _)| *node).collect();
            for node in up {
                self.send(node, &message);
            }
            self.keep_dead();
        }
        if self.seats[0].leads() {
            self.raise_level();
        }
    }

    /// What a node understands, as far as this one knows; none if it cannot be reached or has not said.
    pub(crate) fn level_of(&self, node: NodeId) -> Option<u32> {
        match node == self.config.node {
            true => Some(self.config.level),
            false => self.peers.get(&node).filter(|peer| peer.up).and_then(|peer| peer.level),
        }
    }

    fn raise_level(&mut self) {
        // Somebody who is about to become a member may not know the order: behind that it would be refused, but also met.
        if !self.seats[0].knows_its_members() {
            return;
        }
        let nodes: Vec<NodeId> = self.members().iter().map(|member| member.node).collect();
        let mut levels: Vec<u32> =
            nodes.iter().map(|node| self.level_of(*node).unwrap_or(0)).collect();
        levels.sort_unstable();
        let waited_for =
            if planted::active(Bug::LevelRaisedByMajority) { levels.len() / 2 } else { 0 };
        let Some(level) = levels.get(waited_for).copied() else { return };
        if level > self.seats[0].state.level() {
            let command = Command::RaiseLevel(RaiseLevel { level, nodes });
            let order = Order { namespace: Namespace::default(), request: None, command };
            // Not through the gate: it is of the level that it brings about.
            self.enqueue_orders(0, Asker::Nobody, std::slice::from_ref(&order));
        }
    }

    /// Once all members understand it, has the shards that this node leads keep their dead tasks apart.
    fn keep_dead(&mut self) {
        if self.seats[0].state.level() < KEEP_DEAD_LEVEL {
            return;
        }
        for position in 0..self.seats.len() {
            let seat = &self.seats[position];
            if seat.leads() && !seat.state.keeps_dead() {
                let shard = position as u16;
                let command = Command::KeepDead(KeepDead { shard });
                let order = Order { namespace: Namespace::default(), request: None, command };
                self.enqueue_orders(shard, Asker::Nobody, std::slice::from_ref(&order));
            }
        }
    }

    /// The refusal of a question that not every member understands, as far as this node knows.
    pub(crate) fn refuse_newer(&self, ask: &Ask) -> Option<Told> {
        let needed = ask.level();
        let level = self.seats[0].state.level();
        let refused = needed > level && !planted::active(Bug::LevelNotAsked);
        refused.then_some(Told::LevelTooLow { needed, level })
    }
}
