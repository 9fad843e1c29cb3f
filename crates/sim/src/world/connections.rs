//! Connections between processes, and what each side hears of them.
//!
//! A connection stands between two running processes whose wires are whole. When a process dies its peers are told at
//! once that it is gone (a reconnect is refused), unless a cut keeps that from them.

use ikada_consensus::NodeId;
use ikada_replica::output::Input;

use super::{Event, Notice, World};

impl World {
    /// Connects a node with every peer that it can reach.
    pub(super) fn connect_all(&mut self, node: NodeId) {
        let peers: Vec<NodeId> =
            self.machines.keys().copied().filter(|peer| *peer != node).collect();
        for peer in peers {
            self.connect(node, peer);
        }
    }

    /// Connects every pair that can reach each other.
    pub(crate) fn connect_everyone(&mut self) {
        let nodes: Vec<NodeId> = self.machines.keys().copied().collect();
        for (position, node) in nodes.iter().enumerate() {
            for peer in &nodes[position + 1..] {
                self.connect(*node, *peer);
            }
        }
    }

    fn connect(&mut self, one: NodeId, other: NodeId) {
        if self.network.is_cut(one, other) || self.network.is_cut(other, one) {
            return;
        }
        let up = |world: &World, node| world.machines.get(&node).is_some_and(|m| m.is_up());
        if !up(self, one) || !up(self, other) {
            return;
        }
        let delay_us = self.rng.u64(200..20_000);
        self.tell(one, other, delay_us, Notice::Up);
        self.tell(other, one, delay_us, Notice::Up);
    }

    /// A process has died: its peers notice.
    pub(super) fn disconnect_all(&mut self, node: NodeId) {
        let peers: Vec<NodeId> =
            self.machines.keys().copied().filter(|peer| *peer != node).collect();
        for peer in peers {
            if self.network.is_cut(node, peer) || self.network.is_cut(peer, node) {
                let delay_us = self.rng.u64(500_000..5_000_000);
                self.tell(peer, node, delay_us, Notice::Silent);
            } else {
                let delay_us = self.rng.u64(50..3_000);
                self.tell(peer, node, delay_us, Notice::Refused);
            }
        }
    }

    /// Two processes lose their connection and make a new one after a while.
    pub(super) fn drop_connection(&mut self, one: NodeId, other: NodeId) {
        self.tell(one, other, 100, Notice::Down);
        self.tell(other, one, 100, Notice::Down);
        let again_us = self.rng.u64(1_000..1_000_000);
        if !self.network.is_cut(one, other) && !self.network.is_cut(other, one) {
            self.tell(one, other, again_us, Notice::Up);
            self.tell(other, one, again_us, Notice::Up);
        }
    }

    /// After a cut, keep-alives run out on both sides.
    pub(crate) fn cut_noticed(&mut self) {
        let nodes: Vec<NodeId> = self.machines.keys().copied().collect();
        for node in &nodes {
            for peer in &nodes {
                if node != peer && self.network.is_cut(*peer, *node) {
                    let delay_us = self.rng.u64(500_000..5_000_000);
                    self.tell(*node, *peer, delay_us, Notice::Silent);
                }
            }
        }
    }

    fn tell(&mut self, node: NodeId, peer: NodeId, delay_us: u64, notice: Notice) {
        let generation_of = |of: NodeId| self.machines.get(&of).map(|machine| machine.generation);
        let (Some(generation), Some(peer_generation)) = (generation_of(node), generation_of(peer))
        else {
            return;
        };
        let event = Event::Peer { node, generation, peer, peer_generation, notice };
        self.schedule.after(delay_us, event);
    }

    /// A node hears of a connection, if what it would hear is still so.
    pub(super) fn noticed(
        &mut self,
        node: NodeId,
        generation: u64,
        peer: NodeId,
        peer_generation: u64,
        notice: Notice,
    ) {
        let Some(peer_now) = self.machines.get(&peer) else {
            return;
        };
        let peer_runs = peer_now.is_up() && peer_now.generation == peer_generation;
        let cut = self.network.is_cut(peer, node);
        let input = match notice {
            Notice::Up if peer_runs && !cut && !self.network.is_cut(node, peer) => {
                Input::PeerUp(peer)
            }
            Notice::Up => return,
            // A cut that was mended in time went unnoticed.
            Notice::Silent if peer_runs && !cut => return,
            Notice::Down | Notice::Silent => Input::PeerDown { peer, refused: false },
            // The peer is up again: the reconnect succeeds, which changes nothing.
            Notice::Refused if peer_now.is_up() => Input::PeerDown { peer, refused: false },
            Notice::Refused => Input::PeerDown { peer, refused: true },
        };
        self.note(node, "peer", (peer, notice as u64), |_| {});
        self.input(node, generation, input);
        if matches!(notice, Notice::Silent | Notice::Refused) {
            // Whoever can be reached is dialled again, and answers.
            self.connect(node, peer);
        }
    }
}
