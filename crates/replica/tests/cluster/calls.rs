//! Writes through any node: committed once, told truly.

use ikada_replica::call::{Answer, Outcome, Request, Routing, Unavailable};
use ikada_replica::state::{Command, Namespace, QueueName, RefusalCode, Reply, TaskId};

use crate::harness::{Cluster, enqueue, enqueue_as};

fn replies(answer: Answer) -> Vec<Reply> {
    let Answer::Written(outcomes) = answer else { panic!("not written: {answer:?}") };
    outcomes
        .into_iter()
        .map(|outcome| match outcome {
            Outcome::Reply { reply, .. } => reply,
            other => panic!("no reply: {other:?}"),
        })
        .collect()
}

#[test]
fn any_node_takes_any_write_over_all_shards() {
    let mut cluster = Cluster::new(3, 4);
    cluster.settle();
    for node in 1..=3 {
        let orders = (0..20).map(|n| enqueue(&format!("t-{node}-{n}"))).collect();
        let replies = replies(cluster.ask(node, Request::Write(orders)));
        assert_eq!(replies.len(), 20);
        assert!(replies.iter().all(|reply| matches!(reply, Reply::Enqueued { created: true, .. })));
    }
    cluster.pass(200);
    let hashes: Vec<Vec<u64>> = cluster
        .nodes
        .values()
        .map(|node| (0..4).map(|shard| node.shard(shard).expect("shard").hash()).collect())
        .collect();
    assert_eq!(hashes[0], hashes[1]);
    assert_eq!(hashes[1], hashes[2]);
}

#[test]
fn a_resend_through_another_node_gets_the_first_reply() {
    // TQ-21, Q9
    let mut cluster = Cluster::new(3, 4);
    cluster.settle();
    let first = replies(cluster.ask(1, Request::Write(vec![enqueue("once")])));
    let again = replies(cluster.ask(2, Request::Write(vec![enqueue("once")])));
    assert_eq!(first, again);
    let other = replies(cluster.ask(3, Request::Write(vec![enqueue_as("once", "other")])));
    assert!(matches!(other[0], Reply::Enqueued { created: false, .. }), "{other:?}");
    let mut wrong = enqueue_as("once", "third");
    if let Command::Enqueue(task) = &mut wrong.command {
        task.priority = Some(9);
    }
    let refused = replies(cluster.ask(1, Request::Write(vec![wrong])));
    assert_eq!(refused, [Reply::refused(RefusalCode::Conflict)]);
}

/// What no other node has heard of dies with its leader; sent again with the same id it becomes one task, also when the old
/// leader comes back with it in its log.
#[test]
fn tq_20_what_died_with_its_leader_is_sent_again_and_makes_one_task() {
    let mut cluster = Cluster::new(3, 1);
    cluster.settle();
    let old = cluster.leader(0).expect("leader");
    let others: Vec<u64> = (1..=3).filter(|node| *node != old).collect();
    cluster.cut.extend(others.iter().map(|other| (old, *other)));
    let before = cluster.records(old);
    let call = cluster.call(old, Request::Write(vec![enqueue("t")]));
    cluster.deliver();
    assert!(cluster.records(old) > before, "it is in the old leader's log");
    cluster.kill(old);
    cluster.cut.clear();
    cluster.settle();
    let id = TaskId::parse("t").expect("id");
    let namespace = Namespace::default();
    let new = cluster.leader(0).expect("leader");
    assert!(cluster.nodes[&new].shard(0).expect("shard").task(&namespace, &id).is_none());
    assert!(!cluster.answers.contains_key(&call), "its client hears nothing");
    let first = replies(cluster.ask(others[0], Request::Write(vec![enqueue("t")])));
    assert_eq!(first, [Reply::Enqueued { id, created: true }]);
    assert_eq!(replies(cluster.ask(others[1], Request::Write(vec![enqueue("t")]))), first);
    cluster.revive(old);
    cluster.pass(8_000);
    // Unknown, or the first reply; never that it did not happen.
    match cluster.answers.remove(&call) {
        Some(Answer::Written(outcomes)) => {
            let told = matches!(&outcomes[..], [Outcome::Unknown | Outcome::Reply { .. }]);
            assert!(told, "{outcomes:?}");
        }
        other => panic!("{other:?}"),
    }
    let queue = QueueName::parse("q").expect("queue");
    for replica in cluster.nodes.values() {
        let view = replica.shard(0).expect("shard").queue(&namespace, &queue).expect("queue");
        assert_eq!(view.counters.submitted, 1);
    }
}

// TQ-20, TQ-21: what is in the log is not said to be nowhere, however much waits behind it.
#[test]
fn tq_21_a_leader_that_turns_callers_away_does_not_deny_what_it_took_before() {
    let mut cluster = Cluster::with(3, 1, |config| {
        config.entries_in_flight_max = 1;
        config.pending_bytes_max = 1;
        config.ask_again_ms = 50;
    });
    cluster.settle();
    cluster.pass(3_000);
    let leader = cluster.leader(0).expect("leader");
    let origin = (1..=3).find(|node| *node != leader).expect("another");
    (1..=3).for_each(|node| cluster.hold_disk(node, true));
    let one = cluster.call(origin, Request::Write(vec![enqueue("one")]));
    let many = (0..3).map(|number| enqueue(&format!("many-{number}"))).collect();
    cluster.deliver();
    // The one is in the log, which goes on once the disks do; these wait for the next entry.
    let many = cluster.call(origin, Request::Write(many));
    cluster.deliver();
    let Answer::Written(late) = cluster.ask(origin, Request::Write(vec![enqueue("late")])) else {
        panic!("not written");
    };
    let turned_away = matches!(late[..], [Outcome::Unavailable(Unavailable::Overloaded { .. })]);
    assert!(turned_away, "nothing of it was taken: {late:?}");
    cluster.pass(300);
    for call in [one, many] {
        let answer = cluster.answers.get(&call);
        assert!(answer.is_none(), "asked again, and it may be in the log: {answer:?}");
    }
    (1..=3).for_each(|node| cluster.hold_disk(node, false));
    cluster.pass(500);
    for (call, count) in [(one, 1), (many, 3)] {
        let replies = replies(cluster.answers.remove(&call).expect("answered"));
        assert_eq!(replies.len(), count);
        assert!(replies.iter().all(|reply| matches!(reply, Reply::Enqueued { created: true, .. })));
    }
}

#[test]
fn writes_survive_the_leaders_death() {
    let mut cluster = Cluster::new(3, 2);
    cluster.settle();
    for round in 0..5 {
        let victim = cluster.leader(0).expect("leader");
        let origin = (1..=3).find(|node| *node != victim).expect("another");
        let orders = (0..10).map(|n| enqueue(&format!("r{round}-{n}"))).collect();
        let call = cluster.call(origin, Request::Write(orders));
        cluster.kill(victim);
        let mut waited = 0;
        while !cluster.answers.contains_key(&call) {
            cluster.pass(10);
            waited += 10;
            assert!(waited < 6_000, "answered by its deadline");
        }
        let replies = replies(cluster.answers.remove(&call).expect("answered"));
        assert!(replies.iter().all(|reply| matches!(reply, Reply::Enqueued { .. })));
        cluster.down.remove(&victim);
        cluster.pass(3_000);
    }
}

#[test]
fn without_a_quorum_nothing_is_promised() {
    let mut cluster = Cluster::new(3, 1);
    cluster.settle();
    let leader = cluster.leader(0).expect("leader");
    for node in 1..=3 {
        if node != leader {
            cluster.kill(node);
        }
    }
    // Handed to the leader's log, never committed: its fate is open.
    let answer = cluster.ask(leader, Request::Write(vec![enqueue("lonely")]));
    let Answer::Written(outcomes) = answer else { panic!("{answer:?}") };
    assert!(matches!(outcomes[0], Outcome::Unknown), "{outcomes:?}");
    cluster.pass(3_000);
    // By now the leader has stepped down: nothing is even tried.
    let answer = cluster.ask(leader, Request::Write(vec![enqueue("late")]));
    let Answer::Written(outcomes) = answer else { panic!("{answer:?}") };
    assert!(
        matches!(outcomes[0], Outcome::Unavailable(Unavailable::NoLeader { shard: 0 })),
        "{outcomes:?}"
    );
}

#[test]
fn b4_53_redirects_name_the_leader() {
    // B4-53
    let mut cluster = Cluster::new(3, 1);
    cluster.settle();
    let leader = cluster.leader(0).expect("leader");
    for node in 1..=3 {
        let request = Request::Write(vec![enqueue(&format!("x{node}"))]);
        let call = cluster.call_with(node, request, Routing::Redirect, 1_000);
        cluster.pass(50);
        match cluster.answers.remove(&call) {
            Some(Answer::Redirect(target)) => assert!(node != leader && target == leader),
            Some(Answer::Written(_)) => assert_eq!(node, leader),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn an_idle_cluster_writes_nothing() {
    // TQ-13
    let mut cluster = Cluster::new(3, 4);
    cluster.settle();
    cluster.pass(2_000);
    let before: Vec<u64> = (1..=3).map(|node| cluster.records(node)).collect();
    cluster.pass(30_000);
    let after: Vec<u64> = (1..=3).map(|node| cluster.records(node)).collect();
    assert_eq!(before, after);
}
