//! Linearizable reads: answered by a confirmed leader only, after its first own commit, never by a stale one.

mod net;

use net::{Net, SHARD};

#[test]
fn a_read_is_answered_at_or_after_the_last_commit() {
    let mut net = Net::new(1, &[1, 2, 3]);
    let index = net.commit("written");
    let leader = net.settle();
    for id in 0..10 {
        net.at(leader).read(SHARD, id).expect("leads");
    }
    net.work(leader);
    assert!(net.nodes[&leader].reads.is_empty(), "a majority must confirm first");
    net.run(50);
    let ids: Vec<u64> = net.nodes[&leader].reads.iter().map(|(id, _)| *id).collect();
    assert_eq!(ids, (0..10).collect::<Vec<_>>());
    assert!(net.nodes[&leader].reads.iter().all(|(_, at)| *at >= index));
    let follower = (1..=3).find(|node| *node != leader).expect("three nodes");
    let refused = net.at(follower).read(SHARD, 1).expect_err("followers refuse");
    assert_eq!(refused.leader, Some(leader));
}

#[test]
fn a_lone_node_answers_reads() {
    let mut net = Net::new(1, &[1]);
    let index = net.commit("written");
    net.at(1).read(SHARD, 5).expect("leads");
    net.work(1);
    assert_eq!(net.nodes[&1].reads, vec![(5, index)]);
}

#[test]
fn a_read_waits_for_the_first_commit_of_the_term() {
    let mut net = Net::new(2, &[1, 2, 3]);
    let elected = net.run_until(10_000, |net| net.leader().is_some());
    assert!(elected);
    let leader = net.leader().expect("just seen");
    assert!(!net.see(leader).is_settled(SHARD));
    net.at(leader).read(SHARD, 1).expect("leads");
    net.work(leader);
    net.run(100);
    let reads = &net.nodes[&leader].reads;
    assert_eq!(reads.len(), 1);
    assert!(reads[0].1 >= net.see(leader).last_index(SHARD));
}

#[test]
fn a_stale_leader_never_answers() {
    // R10: the old leader still believes in itself while the others go on.
    let mut net = Net::new(3, &[1, 2, 3]);
    let old = net.settle();
    net.isolate(old);
    net.at(old).read(SHARD, 7).expect("it still believes");
    net.work(old);
    net.run(5_000);
    assert!(net.nodes[&old].reads.is_empty());
    assert_eq!(net.nodes[&old].reads_lost, vec![7]);
    net.heal();
    net.run(3_000);
    assert!(net.nodes[&old].reads.is_empty());
}

#[test]
fn reads_survive_lost_messages() {
    let mut net = Net::new(4, &[1, 2, 3]);
    net.loss = 30;
    let leader = net.settle();
    let term = net.see(leader).term(SHARD);
    for id in 0..50 {
        if net.see(leader).term(SHARD) == term && net.at(leader).read(SHARD, id).is_ok() {
            net.work(leader);
        }
        net.run(20);
    }
    net.loss = 0;
    net.run(3_000);
    let node = &net.nodes[&leader];
    assert_eq!(node.reads.len() + node.reads_lost.len(), 50, "every read has an outcome");
}
