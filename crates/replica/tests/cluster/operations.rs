//! Operations over all shards and nodes: explanations, voids, sweeps, idle clusters.

use std::collections::BTreeSet;

use ikada_replica::call::{
    Answer, Consistency, Outcome, Query, RenewOutcome, Renewal, Request, RequestFate, Unavailable,
    View,
};
use ikada_replica::state::{
    Command, Label, Labels, Namespace, Order, QueueName, RefusalCode, Reply, RequestId, RequestKey,
    SlotMap, Sweep, SweepAction, TaskId, TaskOptions, Void, WaitReason, WorkerId,
};

use crate::harness::{Cluster, claim, enqueue, enqueue_as};

fn reasons(cluster: &mut Cluster, node: u64, id: &str) -> Vec<WaitReason> {
    let id = TaskId::parse(id).expect("id");
    match cluster.ask(node, Request::Explain(Namespace::default(), id)) {
        Answer::Explained(Some(explanation)) => explanation.reasons,
        other => panic!("not explained: {other:?}"),
    }
}

fn fate(cluster: &mut Cluster, node: u64, request: &str) -> RequestFate {
    let id = RequestId::parse(request).expect("id");
    let query = Query::Request(Namespace::default(), id, 0);
    match cluster.ask(node, Request::Read(query, Consistency::Linearizable)) {
        Answer::View { view: View::Request(fate), .. } => fate,
        other => panic!("not a fate: {other:?}"),
    }
}

fn replies(answer: Answer) -> Vec<Reply> {
    let Answer::Written(outcomes) = answer else { panic!("not written: {answer:?}") };
    let reply = |outcome| match outcome {
        Outcome::Reply { reply, .. } => reply,
        other => panic!("not decided: {other:?}"),
    };
    outcomes.into_iter().map(reply).collect()
}

fn void(shard: u16, request: &str) -> Order {
    let request = RequestId::parse(request).expect("id");
    let command = Command::Void(Void { shard, request });
    Order { namespace: Namespace::default(), request: None, command }
}

#[test]
fn any_node_tells_whether_workers_ask() {
    let mut cluster = Cluster::new(3, 2);
    cluster.settle();
    cluster.ask(1, Request::Write(vec![enqueue("a")]));
    cluster.pass(6_000);
    for node in 1..=3 {
        let seen = reasons(&mut cluster, node, "a");
        assert_eq!(seen, [WaitReason::NextInLine, WaitReason::NoWorkerAsked { ago_ms: None }]);
    }
    let answer = cluster.ask(2, claim("w", 1, 0, "c1"));
    assert!(matches!(answer, Answer::Claimed(grants) if grants.len() == 1));
    assert!(matches!(&reasons(&mut cluster, 3, "a")[..], [WaitReason::Claimed { .. }]));
    // The shard of b is among those that the worker asks, and it asked a moment ago.
    cluster.ask(2, claim("w", 1, 0, "c2"));
    cluster.ask(1, Request::Write(vec![enqueue("b")]));
    assert_eq!(reasons(&mut cluster, 1, "b"), [WaitReason::NextInLine]);
    let gone = Request::Explain(Namespace::default(), TaskId::parse("gone").expect("id"));
    assert!(matches!(cluster.ask(1, gone), Answer::Explained(None)));
}

#[test]
fn a_worker_without_the_wanted_labels_is_told_from_none() {
    let mut cluster = Cluster::new(3, 1);
    cluster.settle();
    let label = |text: &str| Label::parse(text).expect("label");
    let gpu = Labels::new(vec![(label("gpu"), label("a100"))]).expect("labels");
    let mut order = enqueue("a");
    if let Command::Enqueue(task) = &mut order.command {
        let options = TaskOptions { labels: gpu.clone(), ..TaskOptions::default() };
        task.options = Some(Box::new(options));
    }
    cluster.ask(1, Request::Write(vec![order]));
    let ask = |cluster: &mut Cluster, labels: &Labels, request: &str| {
        let mut wish = claim("w", 1, 0, request);
        if let Request::Claim(wish) = &mut wish {
            wish.labels = labels.clone();
        }
        cluster.ask(2, wish)
    };
    cluster.pass(6_000);
    let none = WaitReason::NoWorkerAsked { ago_ms: None };
    assert_eq!(reasons(&mut cluster, 1, "a"), [WaitReason::NextInLine, none]);
    ask(&mut cluster, &Labels::default(), "c1");
    let wanted = WaitReason::NoWorkerWithLabels { labels: gpu.clone() };
    assert_eq!(reasons(&mut cluster, 1, "a"), [WaitReason::NextInLine, wanted]);
    let answer = ask(&mut cluster, &gpu, "c2");
    assert!(matches!(answer, Answer::Claimed(grants) if grants.len() == 1));
}

// TQ-20
#[test]
fn tq_20_a_void_counts_once_every_shard_has_it() {
    let mut cluster = Cluster::new(3, 4);
    cluster.settle();
    assert_eq!(fate(&mut cluster, 1, "late"), RequestFate::NotYet);
    let some = (0..3).map(|shard| void(shard, "late")).collect();
    let told = replies(cluster.ask(2, Request::Write(some)));
    assert!(told.iter().all(|reply| *reply == Reply::Voided), "{told:?}");
    assert_eq!(fate(&mut cluster, 3, "late"), RequestFate::NotYet, "one shard may yet take it");
    cluster.ask(1, Request::Write(vec![void(3, "late")]));
    assert!(matches!(fate(&mut cluster, 3, "late"), RequestFate::Voided { .. }));
    let old = cluster.leader(0).expect("leader");
    cluster.kill(old);
    let node = old % 3 + 1;
    cluster.pass(5_000);
    for n in 0..8 {
        let order = enqueue_as(&format!("t{n}"), "late");
        let refused = Reply::refused(RefusalCode::RequestVoided);
        assert_eq!(replies(cluster.ask(node, Request::Write(vec![order]))), [refused]);
    }
}

// TQ-21: the fate of a committed request is known on every node.
#[test]
fn tq_21_a_committed_request_is_found_in_whatever_shard_it_lies() {
    let mut cluster = Cluster::new(3, 4);
    cluster.settle();
    for n in 0..12 {
        let request = format!("r{n}");
        cluster.ask(1, Request::Write(vec![enqueue_as(&format!("t{n}"), &request)]));
        let everywhere = (0..4).map(|shard| void(shard, &request)).collect();
        cluster.ask(2, Request::Write(everywhere));
        let seen = fate(&mut cluster, n % 3 + 1, &request);
        assert!(matches!(seen, RequestFate::Committed(_)), "{seen:?}");
    }
}

// TQ-29: a node may hear of a new shard later than whoever asks it. It cannot know that there will be none, so it says
// that nobody leads it, and refuses nothing.
#[test]
fn tq_29_an_order_for_a_shard_that_is_not_open_yet_waits_for_it() {
    let mut cluster = Cluster::new(3, 2);
    cluster.settle();
    let request = RequestId::parse("late").expect("id");
    let queue = QueueName::parse("q").expect("queue");
    let sweep = Sweep { shard: 2, queue, action: SweepAction::CancelWaiting, from: 0 };
    for command in [Command::Void(Void { shard: 2, request }), Command::Sweep(sweep)] {
        let order = Order { namespace: Namespace::default(), request: None, command };
        let answer = cluster.ask(1, Request::Write(vec![order]));
        let waits = |outcomes: &[Outcome]| {
            matches!(outcomes, [Outcome::Unavailable(Unavailable::NoLeader { shard: 2 })])
        };
        assert!(matches!(&answer, Answer::Written(outcomes) if waits(outcomes)), "{answer:?}");
    }
}

#[test]
fn a_sweep_reaches_every_shard_through_any_node() {
    let mut cluster = Cluster::new(3, 4);
    cluster.settle();
    let orders = (0..40).map(|n| enqueue(&format!("t{n}"))).collect();
    cluster.ask(1, Request::Write(orders));
    let queue = QueueName::parse("q").expect("queue");
    let step = |shard: u16| Order {
        namespace: Namespace::default(),
        request: Some(RequestKey {
            id: RequestId::parse("purge").expect("id"),
            item: u32::from(shard),
        }),
        command: Command::Sweep(Sweep {
            shard,
            queue: queue.clone(),
            action: SweepAction::CancelWaiting,
            from: 0,
        }),
    };
    let steps: Vec<Order> = (0..4).map(step).collect();
    let first = replies(cluster.ask(2, Request::Write(steps.clone())));
    let counts = first.iter().map(|reply| match reply {
        Reply::Swept { count, next: None } => *count,
        other => panic!("not swept: {other:?}"),
    });
    assert_eq!(counts.sum::<u32>(), 40);
    cluster.ask(1, Request::Write(vec![enqueue("late")]));
    assert_eq!(replies(cluster.ask(3, Request::Write(steps))), first, "a resend changes nothing");
    assert_eq!(reasons(&mut cluster, 1, "late"), [WaitReason::NextInLine]);
}

// TQ-28: a worker that knows one node only is handed the tasks of all groups.
#[test]
fn tq_28_any_worker_serves_any_group() {
    let mut cluster = Cluster::new(3, 16);
    cluster.settle();
    let map = SlotMap::balanced(16);
    for node in 1..=3 {
        let ids: Vec<String> = (0..160).map(|n| format!("n{node}-{n}")).collect();
        let groups: BTreeSet<u16> =
            ids.iter().map(|id| map.route(&Namespace::default(), id)).collect();
        assert_eq!(groups.len(), 16, "there is work in every group");
        let orders = ids.iter().map(|id| enqueue(id)).collect();
        // Submitted elsewhere, as if the worker's node had nothing to do with it.
        cluster.ask(node % 3 + 1, Request::Write(orders));
        let mut served = BTreeSet::new();
        for round in 0..200 {
            let key = format!("c{node}-{round}");
            let claimed = cluster.ask(node, claim("w", 16, 0, &key));
            let Answer::Claimed(grants) = claimed else { panic!("{claimed:?}") };
            if grants.is_empty() {
                break;
            }
            served.extend(grants.iter().map(|grant| grant.id.as_str().to_owned()));
        }
        assert_eq!(served, ids.into_iter().collect(), "node {node}");
    }
}

/// When a task was taken in, by log time, as its leader knows it.
fn taken_ms(cluster: &Cluster, id: &str) -> u64 {
    let leader = cluster.leader(0).expect("a leader");
    let shard = cluster.nodes[&leader].shard(0).expect("a shard");
    shard.task(&Namespace::default(), &TaskId::parse(id).expect("id")).expect(id).enqueued_ms
}

// TQ-14: a new leader with an older clock does not turn the time back, and what waits does not wait again.
#[test]
fn tq_14_a_new_leader_with_an_older_clock_keeps_log_time() {
    let mut cluster = Cluster::new(3, 1);
    cluster.settle();
    cluster.ask(1, Request::Write(vec![enqueue("before")]));
    let before_ms = taken_ms(&cluster, "before");
    let old = cluster.leader(0).expect("a leader");
    cluster.kill(old);
    // Every clock that is left is a day behind.
    cluster.now.wall_ms -= 24 * 60 * 60 * 1_000;
    cluster.settle();
    let new = cluster.leader(0).expect("a leader");
    assert_ne!(new, old);
    let mut last_ms = before_ms;
    for id in ["one", "two", "three"] {
        cluster.ask(new, Request::Write(vec![enqueue(id)]));
        cluster.pass(1_000);
        let now_ms = taken_ms(&cluster, id);
        assert!(now_ms >= last_ms, "{id}: {now_ms} comes before {last_ms}");
        last_ms = now_ms;
    }
}

// TQ-13
#[test]
fn tq_13_an_idle_cluster_writes_nothing() {
    let mut cluster = Cluster::new(3, 2);
    cluster.settle();
    cluster.ask(1, Request::Write(vec![enqueue("a")]));
    let Answer::Claimed(grants) = cluster.ask(2, claim("w", 1, 0, "c")) else { panic!("no claim") };
    cluster.pass(2_000);
    let before: Vec<u64> = (1..=3).map(|node| cluster.records(node)).collect();
    // Sweepers, renewals and reads write nothing, though the claim outlives its ttl twice.
    for _ in 0..65 {
        cluster.pass(1_000);
        let renewal = Renewal {
            namespace: Namespace::default(),
            worker: WorkerId::parse("w").expect("id"),
            session: None,
            claims: vec![(grants[0].id.clone(), grants[0].fence)],
            progress: Vec::new(),
        };
        let renewed = cluster.ask(1, Request::Renew(renewal));
        let expected = vec![RenewOutcome::Renewed { ttl_ms: 30_000 }];
        assert!(matches!(renewed, Answer::Renewed(seen) if seen == expected));
        let queue = QueueName::parse("q").expect("queue");
        let query = Query::Queue(Namespace::default(), queue);
        cluster.ask(3, Request::Read(query, Consistency::Linearizable));
        reasons(&mut cluster, 3, "a");
    }
    let after: Vec<u64> = (1..=3).map(|node| cluster.records(node)).collect();
    assert_eq!(before, after);
}
