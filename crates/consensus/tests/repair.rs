//! A damaged log: no votes and no campaigns until a leader has refilled it (R11).

mod net;

use ikada_consensus::Role;
use net::{Net, SHARD};

/// Commits some entries, then damages and restarts one follower, and kills the rest.
fn damaged(seed: u64) -> (Net, u64, Vec<u64>) {
    let mut net = Net::new(seed, &[1, 2, 3]);
    let leader = net.settle();
    for number in 0..10 {
        net.commit(&format!("entry {number}"));
    }
    let last = net.commit("last");
    net.agree(last);
    let hurt = (1..=3).find(|node| *node != leader).expect("three nodes");
    net.kill(hurt);
    net.nodes.get_mut(&hurt).expect("known").disk.damage(4);
    let others = (1..=3).filter(|node| *node != hurt).collect();
    (net, hurt, others)
}

#[test]
fn a_damaged_node_is_repaired_by_a_leader() {
    for seed in 0..10 {
        let (mut net, hurt, _) = damaged(seed);
        net.start(hurt);
        assert!(net.see(hurt).is_repairing(SHARD));
        let repaired = net.run_until(5_000, |net| !net.see(hurt).is_repairing(SHARD));
        assert!(repaired, "seed {seed}");
        let last = net.commit("after");
        net.agree(last);
    }
}

#[test]
fn a_leader_that_counted_the_lost_entries_sends_them_again() {
    // The leader of the same term still believes that the node holds everything.
    let (mut net, hurt, others) = damaged(3);
    let leader = net.settle();
    let term = net.see(leader).term(SHARD);
    net.start(hurt);
    net.at(leader).peer_unreachable(hurt);
    net.work(leader);
    let repaired = net.run_until(5_000, |net| !net.see(hurt).is_repairing(SHARD));
    assert!(repaired);
    assert!(others.contains(&leader));
    assert_eq!(net.see(leader).term(SHARD), term);
    net.run(1_000);
    assert_eq!(net.see(hurt).last_index(SHARD), net.see(leader).last_index(SHARD));
}

#[test]
fn a_damaged_node_neither_votes_nor_campaigns() {
    let (mut net, hurt, others) = damaged(1);
    // One healthy node and the damaged one: a majority by number, not by knowledge.
    net.kill(others[0]);
    net.kill(others[1]);
    net.start(hurt);
    net.start(others[0]);
    let from = net.leaders.len();
    net.run(20_000);
    assert_eq!(net.see(hurt).role(SHARD), Some(Role::Follower));
    assert_eq!(net.see(hurt).vote(SHARD), net.nodes[&hurt].disk.state.vote.into_option());
    assert_eq!(net.leaders.len(), from, "nobody may be elected");
    net.at(hurt).campaign(SHARD);
    net.work(hurt);
    net.run(1_000);
    assert_eq!(net.see(hurt).role(SHARD), Some(Role::Follower));
    // The second healthy node returns: both elect, the damaged one is repaired, and all is well.
    net.start(others[1]);
    let last = net.commit("after");
    net.agree(last);
    assert!(!net.see(hurt).is_repairing(SHARD));
}

#[test]
fn a_damaged_lone_node_waits_for_its_operator() {
    let mut net = Net::new(1, &[1]);
    net.commit("kept");
    net.commit("lost");
    net.kill(1);
    net.nodes.get_mut(&1).expect("known").disk.damage(1);
    net.start(1);
    net.run(10_000);
    assert_eq!(net.leader(), None);
    assert!(net.see(1).is_repairing(SHARD));
}

/// Nodes on disk: 0 is nobody.
trait IntoOption {
    fn into_option(self) -> Option<u64>;
}

impl IntoOption for u64 {
    fn into_option(self) -> Option<u64> {
        Some(self).filter(|node| *node != 0)
    }
}
