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

#[cfg(test)]
mod tests {
    use ikada_consensus::lease::LeaseConfig;
    use ikada_consensus::{Conf, Recovered, Start};
    use ikada_state::{Lsn, Member, Shard};

    use super::*;
    use crate::ReplicaConfig;
    use crate::gate::Decision;
    use crate::output::Input;
    use crate::peer::{Framer, Header, Told, decode};

    /// Where the log ends for the node below.
    const END: u64 = 20_000;
    /// A node that has said this is as far behind as it may be.
    const NEAR: u64 = END - 10_000;
    const NOW: Now = Now { mono_ms: 1_000, wall_ms: 1_700_000_000_000 };

    /// Node 2 of four, all of which are there, with one shard whose log lives in a database.
    fn node() -> Replica {
        let member = |node: u64| Member {
            node,
            incarnation: node * 7,
            peer_addr: format!("peer{node}"),
            client_addr: format!("client{node}"),
        };
        let mut state = Shard::genesis(0, 1, &(1..=4).map(member).collect::<Vec<_>>());
        state.apply(Lsn { term: 2, index: END }, &[]);
        let (start, conf) = (Start { term: 2, index: END }, Conf::of_voters(1..=4));
        let recovered = Recovered { term: 2, commit: END, start, conf, ..Recovered::default() };
        let mut config = ReplicaConfig::new(2, 14, 42, 1_002);
        config.consensus.lease = Some(LeaseConfig::default());
        let mut replica = Replica::new(config, vec![(recovered, state)], NOW).expect("opens");
        for peer in [1, 3, 4] {
            replica.step(Input::PeerUp(peer), NOW);
        }
        replica
    }

    /// A node says how far it is, in a frame as it goes over the wire.
    fn says(replica: &mut Replica, from: NodeId, reach: &[u64]) {
        let mut framer = Framer::new();
        framer.push(&PeerMessage::Reach(reach.to_vec()));
        let header = Header {
            cluster: 42,
            from,
            from_incarnation: from * 7,
            to: 2,
            to_incarnation: 14,
            wall_ms: NOW.wall_ms,
        };
        let frame = framer.finish(&header);
        let (_, read) = decode(frame.clone()).expect("it is read");
        assert!(matches!(&read[..], [PeerMessage::Reach(read)] if *read == reach), "{read:?}");
        replica.step(Input::Frame(from, frame), NOW);
    }

    #[test]
    fn mq_29_a_lease_is_handed_to_the_next_node_that_is_not_far_behind() {
        let mut node = node();
        assert_eq!(node.next_holder(0), Some(3), "nothing is known of anybody");
        says(&mut node, 3, &[NEAR]);
        assert_eq!(node.next_holder(0), Some(3), "it catches up soon");
        says(&mut node, 3, &[NEAR - 1]);
        assert_eq!(node.next_holder(0), Some(4));
        says(&mut node, 4, &[0]);
        assert_eq!(node.next_holder(0), Some(1), "after the last comes the first");
        says(&mut node, 1, &[0]);
        assert_eq!(node.next_holder(0), Some(3), "rather one that is behind than nobody");
        node.step(Input::PeerDown { peer: 3, refused: true }, NOW);
        assert_eq!(node.next_holder(0), Some(4), "nobody is handed a lease who is not there");
        says(&mut node, 1, &[END]);
        assert_eq!(node.next_holder(0), Some(1));
    }

    #[test]
    fn mq_29_a_transfer_to_a_node_far_behind_is_refused_by_its_own_word() {
        let mut node = node();
        let told = |node: &mut Replica, to| match node.decide_transfer(0, Some(to)) {
            Decision::Reply(told) => told,
            _ => panic!("no answer at once"),
        };
        says(&mut node, 3, &[NEAR - 1]);
        let refused = told(&mut node, 3);
        let Told::Refused { code, detail } = &refused else { panic!("{refused:?}") };
        assert_eq!(code, "node_lagging");
        assert!(detail.contains("10001 entries behind in shard 0"), "{detail}");
        says(&mut node, 3, &[NEAR]);
        // This node does not lead: nothing else is in the way.
        assert!(matches!(told(&mut node, 3), Told::NotLeader { .. }));
        assert!(matches!(told(&mut node, 4), Told::NotLeader { .. }), "it has said nothing");
    }

    #[test]
    fn b4_52_what_is_said_is_taken_for_known_shards_of_members_alone() {
        let mut node = node();
        says(&mut node, 3, &[7, 8, 9]);
        assert_eq!((node.reached(0, 3), node.reached(1, 3)), (Some(7), None));
        says(&mut node, 3, &[]);
        assert_eq!(node.reached(0, 3), None);
        node.reach_heard(9, vec![7]);
        assert_eq!(node.reached(0, 9), None, "a stranger");
        says(&mut node, 4, &[5]);
        node.step(Input::PeerDown { peer: 4, refused: false }, NOW);
        assert_eq!(node.reached(0, 4), Some(5), "it reads nothing while it is away");
    }
}
