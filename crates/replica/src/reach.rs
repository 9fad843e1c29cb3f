//! How far nodes are in logs that live in a database: each reads for itself there, and nobody else could know.
//!
//! Promises: every node tells all others about once a second; whoever leads a shard shows it of those who follow (B4-52), and
//! hands its lease to nobody who is far behind as long as another is not (MQ-29). What a node said last stays known while it is
//! away: it reads nothing then. Of one that has said nothing to this process nothing is known. Leaves out: logs on the nodes' own
//! disks, whose leaders know by Raft.

use ikada_consensus::NodeId;
use ikada_state::ShardId;

use crate::output::Now;
use crate::peer::PeerMessage;
use crate::replica::Replica;

/// How often a node says how far it is.
const TELL_EVERY_MS: u64 = 1_000;

impl Replica {
    /// Says now and then how far this node's copies are.
    pub(crate) fn tell_reach(&mut self, now: Now) {
        if !self.is_leased() || self.tending.reach_told_ms + TELL_EVERY_MS > now.mono_ms {
            return;
        }
        self.tending.reach_told_ms = now.mono_ms;
        let reach = self.seats.iter().map(|seat| seat.state.applied().index).collect();
        let message = PeerMessage::Reach(reach);
        let up: Vec<NodeId> =
            self.peers.iter().filter(|(_, peer)| peer.up).map(|(node, _)| *node).collect();
        for node in up {
            self.send(node, &message);
        }
    }

    /// A node says how far it is in each shard, in their order.
    pub(crate) fn reach_heard(&mut self, from: NodeId, mut reach: Vec<u64>) {
        if self.members().iter().any(|member| member.node == from) {
            reach.truncate(self.seats.len());
            self.reaches.insert(from, reach);
        }
    }

    /// How far a node is in a shard, by its own word.
    pub(crate) fn reached(&self, shard: ShardId, node: NodeId) -> Option<u64> {
        self.reaches.get(&node)?.get(usize::from(shard)).copied()
    }

    /// Every other member that is known to be so far; none unless this node leads the shard.
    pub(crate) fn followers_of(&self, shard: ShardId) -> Vec<(NodeId, u64)> {
        if !self.is_leased() {
            let progress = self.consensus.progress(shard).into_iter();
            return progress.map(|peer| (peer.node, peer.matched)).collect();
        }
        if !self.seats[usize::from(shard)].leads() {
            return Vec::new();
        }
        let others = self.members().iter().map(|member| member.node);
        let others = others.filter(|node| *node != self.config.node);
        others.filter_map(|node| Some((node, self.reached(shard, node)?))).collect()
    }
}
