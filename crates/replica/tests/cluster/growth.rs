//! Growth over three replicas: under load, with leaders that die in the middle (TQ-29).

use std::collections::BTreeSet;

use ikada_replica::call::{
    Answer, Consistency, Outcome, Query, RenewOutcome, Renewal, Request, View,
};
use ikada_replica::state::{
    Command, Complete, Grant, Namespace, Order, Reply, RequestId, RequestKey, SessionId, TaskId,
    TaskState, WorkerId,
};

use crate::harness::{Cluster, claim, enqueue};

fn grow(shards: u16, request: &str) -> Request {
    let id = RequestId::parse(request).expect("id");
    Request::Grow { shards, request: Some(RequestKey { id, item: 0 }) }
}

fn reply(answer: Answer) -> Reply {
    let Answer::Written(mut outcomes) = answer else { panic!("not written: {answer:?}") };
    match outcomes.remove(0) {
        Outcome::Reply { reply, .. } => reply,
        other => panic!("not decided: {other:?}"),
    }
}

fn complete(grant: &Grant) -> Order {
    let worker = WorkerId::parse("w").expect("id");
    let (id, fence) = (grant.id.clone(), grant.fence);
    let command = Command::Complete(Complete {
        keeps_digest: None,
        id,
        fence,
        worker,
        result: None,
        then: None,
        outputs: Vec::new(),
    });
    Order { namespace: Namespace::default(), request: None, command }
}

fn state(cluster: &mut Cluster, node: u64, id: &str) -> Option<TaskState> {
    let query = Query::Task(Namespace::default(), TaskId::parse(id).expect("id"));
    match cluster.ask(node, Request::Read(query, Consistency::Linearizable)) {
        Answer::View { view: View::Task(task), .. } => task.map(|task| task.state),
        other => panic!("not a task: {other:?}"),
    }
}

fn is_growing(cluster: &mut Cluster, node: u64) -> bool {
    match cluster.ask(node, Request::Read(Query::Shards, Consistency::Linearizable)) {
        Answer::View { view: View::Shards { growth, .. }, .. } => growth.is_some(),
        other => panic!("not shards: {other:?}"),
    }
}

/// The node to ask: the first that is up.
fn alive(cluster: &Cluster) -> u64 {
    (1..=3).find(|node| !cluster.down.contains(node)).expect("a node")
}

fn grow_under_load(kills: &[u16]) {
    let mut cluster = Cluster::new(3, 2);
    cluster.settle();
    let mut held = Vec::new();
    for number in 0..120 {
        let answer =
            cluster.ask(1 + number % 3, Request::Write(vec![enqueue(&format!("t{number}"))]));
        assert!(matches!(reply(answer), Reply::Enqueued { created: true, .. }));
    }
    for round in 0..10 {
        match cluster.ask(1 + round % 3, claim("w", 6, 1_000, &format!("c{round}"))) {
            Answer::Claimed(grants) => held.extend(grants),
            other => panic!("not claimed: {other:?}"),
        }
    }
    assert!(held.len() >= 30);
    let begun = reply(cluster.ask(2, grow(3, "g")));
    assert_eq!(begun, Reply::Growing { shards: 3, slots: 1365 });
    assert_eq!(
        reply(cluster.ask(3, grow(3, "g"))),
        begun,
        "a resend is answered as the first time"
    );
    // Slow enough that the growth is under way at every kill.
    cluster.frames_max = 12;
    let mut kills = kills.iter();
    let (mut number, mut done) = (120, BTreeSet::new());
    for round in 0.. {
        assert!(round < 3_000, "the growth takes too long");
        let node = alive(&cluster);
        if round % 6 == 3
            && let Some(shard) = kills.next()
        {
            cluster.down.clear();
            cluster.pass(1_000);
            if let Some(leader) = cluster.leader(*shard) {
                cluster.kill(leader);
            }
            continue;
        }
        let id = format!("t{number}");
        number += 1;
        let answer = cluster.ask(node, Request::Write(vec![enqueue(&id)]));
        assert!(matches!(reply(answer), Reply::Enqueued { created: true, .. }), "{id}");
        if round % 5 == 0
            && let Some(grant) = held.pop()
        {
            assert_eq!(
                reply(cluster.ask(node, Request::Write(vec![complete(&grant)]))),
                Reply::Completed
            );
            done.insert(grant.id);
        }
        if round % 10 == 0 && !is_growing(&mut cluster, node) {
            assert!(round >= 30 && kills.next().is_none(), "over after {round} rounds");
            break;
        }
        cluster.pass(20);
    }
    cluster.frames_max = usize::MAX;
    cluster.down.clear();
    cluster.pass(5_000);
    // Claims that nobody finished are still their worker's.
    let claims = held.iter().map(|grant| (grant.id.clone(), grant.fence)).collect();
    let (namespace, worker) = (Namespace::default(), WorkerId::parse("w").expect("id"));
    let session = Some(SessionId(1));
    let progress = Vec::new();
    let renewal = Renewal { namespace, worker, session, claims, progress };
    let Answer::Renewed(renewed) = cluster.ask(1, Request::Renew(renewal)) else {
        panic!("renewed")
    };
    assert!(renewed.iter().all(|outcome| matches!(outcome, RenewOutcome::Renewed { .. })));
    for place in 0..number {
        let id = format!("t{place}");
        let node = 1 + place % 3;
        let seen = state(&mut cluster, node, &id).expect("no task is lost");
        assert_eq!(seen == TaskState::Done, done.contains(&TaskId::parse(&id).expect("id")));
        // Q8
        let again = reply(cluster.ask(node, Request::Write(vec![enqueue(&id)])));
        assert!(matches!(again, Reply::Enqueued { created: true, .. }), "{again:?}");
    }
    for node in 1..=3 {
        let total: u64 = (0..3)
            .map(|shard| cluster.nodes[&node].shard(shard).expect("open").sizes())
            .map(|sizes| sizes.ready + sizes.claimed + sizes.finished)
            .sum();
        assert_eq!(total, number, "node {node}");
    }
}

#[test]
fn tq_29_growth_under_load_loses_nothing() {
    grow_under_load(&[]);
}

#[test]
fn tq_29_growth_survives_the_death_of_leaders() {
    grow_under_load(&[0, 2, 1, 0, 2]);
}

#[test]
fn a_node_that_was_down_opens_the_new_shard_when_it_returns() {
    let mut cluster = Cluster::new(3, 1);
    cluster.settle();
    let node = (1..=3).find(|node| Some(*node) != cluster.leader(0)).expect("a follower");
    cluster.kill(node);
    let asked = alive(&cluster);
    reply(cluster.ask(asked, grow(2, "g")));
    for _ in 0..2_000 {
        if !is_growing(&mut cluster, asked) {
            break;
        }
        cluster.pass(50);
    }
    assert!(cluster.nodes[&node].shard(1).is_none());
    cluster.down.clear();
    cluster.pass(3_000);
    assert!(cluster.nodes[&node].shard(1).is_some());
    for number in 0..20 {
        let answer = cluster.ask(node, Request::Write(vec![enqueue(&format!("t{number}"))]));
        assert!(matches!(reply(answer), Reply::Enqueued { .. }));
    }
    cluster.pass(1_000);
    let hash = |node: u64, shard| cluster.nodes[&node].shard(shard).map(|shard| shard.hash());
    for shard in 0..2 {
        assert_eq!(hash(node, shard), hash(asked, shard));
    }
}
