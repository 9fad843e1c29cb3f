//! Disks that are slow or stand still: who leads then, and that nothing acknowledged is lost (F-10, F-11).

mod net;

use ikada_consensus::{NodeId, Reason};
use net::{Net, SHARD};

fn set_sync_ms(net: &mut Net, node: NodeId, sync_ms: u64) {
    net.nodes.get_mut(&node).expect("known node").sync_ms = sync_ms;
}

/// Proposes at whoever leads, every 20 ms, and keeps the network busy for so long.
fn work_for(net: &mut Net, for_ms: u64) {
    for round in 0..for_ms / 20 {
        if let Some(leader) = net.leader() {
            let _ = net.propose(leader, &format!("work {round}"));
        }
        net.run(20);
    }
}

#[test]
fn f_10_a_leader_whose_disk_hangs_gives_the_lead_away_once() {
    for seed in 0..50 {
        let mut net = Net::new(seed, &[1, 2, 3]);
        let old = net.settle();
        let before = net.commit("before");
        set_sync_ms(&mut net, old, 20_000);
        let hung = net.commit("hung");
        assert!(hung > before);
        let new = net.settle();
        assert_ne!(new, old, "seed {seed}");
        let reasons = net.nodes[&old].roles.iter().map(|change| change.reason);
        assert!(reasons.clone().any(|reason| reason == Reason::DiskStalled), "seed {seed}");
        let after = net.commit("after");
        work_for(&mut net, 10_000);
        assert_eq!(net.leaders.len(), 2, "one change, seed {seed}: {:?}", net.leaders);
        // The disk comes back; what was on its way gets there.
        set_sync_ms(&mut net, old, 1);
        net.run(21_000);
        net.agree(after);
        assert_eq!(net.leaders.len(), 2, "seed {seed}: {:?}", net.leaders);
    }
}

#[test]
fn f_10_a_disk_that_gets_on_slowly_changes_no_leader() {
    for seed in 0..20 {
        let mut net = Net::new(seed, &[1, 2, 3]);
        let leader = net.settle();
        set_sync_ms(&mut net, leader, 200);
        work_for(&mut net, 10_000);
        let last = net.commit("last");
        net.agree(last);
        assert_eq!(net.leaders.len(), 1, "seed {seed}: {:?}", net.leaders);
    }
}

#[test]
fn f_11_slow_disks_of_followers_change_no_leader() {
    for (seed, slow) in [(1, 1), (2, 2), (3, 1), (4, 2)] {
        let mut net = Net::new(seed, &[1, 2, 3]);
        let leader = net.settle();
        for node in [1, 2, 3].into_iter().filter(|node| *node != leader).take(slow) {
            set_sync_ms(&mut net, node, 2_000);
        }
        work_for(&mut net, 10_000);
        net.read(leader);
        net.run(100);
        assert!(!net.nodes[&leader].reads.is_empty(), "a read waits for no disk, seed {seed}");
        assert_eq!(net.leaders.len(), 1, "seed {seed}: {:?}", net.leaders);
    }
}

#[test]
fn f_10_disks_that_are_all_slow_change_no_leader() {
    for seed in 0..20 {
        let mut net = Net::new(seed, &[1, 2, 3]);
        let leader = net.settle();
        for node in [1, 2, 3] {
            set_sync_ms(&mut net, node, 3_000);
        }
        work_for(&mut net, 20_000);
        assert_eq!(net.leaders.len(), 1, "seed {seed}: {:?}", net.leaders);
        assert_eq!(net.see(leader).leader(SHARD), Some(leader));
    }
}
