//! Leaders come and go: settled quickly, handed over on request, explained.

use ikada_replica::call::{Answer, Request};
use ikada_replica::output::Input;

use crate::harness::Cluster;

#[test]
fn a_cold_start_settles_on_one_leader_per_shard() {
    // B4-44
    let mut cluster = Cluster::new(3, 4);
    cluster.settle();
    for shard in 0..4 {
        let leader = cluster.leader(shard).expect("leader");
        for replica in cluster.nodes.values() {
            assert_eq!(replica.consensus().leader(shard), Some(leader));
        }
    }
}

#[test]
fn a_lone_node_leads() {
    // B4-51
    let mut cluster = Cluster::new(1, 2);
    cluster.settle();
    assert_eq!(cluster.leader(1), Some(1));
}

#[test]
fn mq_29_leadership_goes_to_the_chosen_node() {
    // MQ-29
    let mut cluster = Cluster::new(3, 1);
    cluster.settle();
    let old = cluster.leader(0).expect("leader");
    let to = old % 3 + 1;
    let ask = Request::Transfer { shard: 0, to: Some(to) };
    assert!(matches!(cluster.ask(to, ask), Answer::Accepted));
    cluster.pass(500);
    assert_eq!(cluster.leader(0), Some(to));
    let refused = cluster.ask(1, Request::Transfer { shard: 0, to: Some(99) });
    assert!(matches!(&refused, Answer::Refused { code, .. } if code == "node_not_found"));
    let refused = cluster.ask(1, Request::Transfer { shard: 9, to: None });
    assert!(matches!(&refused, Answer::Refused { code, .. } if code == "shard_not_found"));
}

#[test]
fn a_graceful_stop_hands_all_shards_over() {
    let mut cluster = Cluster::new(3, 4);
    cluster.settle();
    let node = cluster.leader(0).expect("leader");
    cluster.step(node, Input::Stop);
    cluster.pass(500);
    for shard in 0..4 {
        assert_ne!(cluster.leader(shard), Some(node));
        assert!(cluster.leader(shard).is_some());
    }
    let outputs = cluster.nodes.get_mut(&node).expect("node").poll(cluster.now);
    assert!(outputs.stopped);
}

#[test]
fn mq_27_every_role_change_has_a_reason() {
    // MQ-27
    let mut cluster = Cluster::new(3, 1);
    cluster.settle();
    let leader = cluster.leader(0).expect("leader");
    let events = cluster.nodes[&leader].events(0, 100);
    let won = events.iter().find(|event| event.leader == Some(leader)).expect("an event");
    assert_eq!(won.reason, "election won");
    let status = cluster.nodes[&leader].status(cluster.now);
    assert_eq!(status.shards[0].leader, Some(leader));
    assert_eq!(status.peers.len(), 2);
}
