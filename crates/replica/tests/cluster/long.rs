//! What takes hours, or hundreds of kills, where time is real: a long task under a short claim, idle workers through many
//! leaders, many duplicates at one time.

use std::collections::BTreeSet;

use ikada_replica::call::{Answer, Outcome, RenewOutcome, Renewal, Request, Routing};
use ikada_replica::output::Input;
use ikada_replica::state::{
    Grant, Namespace, QueueName, Reply, TaskId, TaskState, TaskView, WorkerId,
};

use crate::claims::complete;
use crate::harness::{Cluster, claim, enqueue, enqueue_as};

/// Lets time pass in steps of 100 ms: fine enough for heartbeats, and hours are over soon.
fn doze(cluster: &mut Cluster, ms: u64) {
    for _ in 0..ms / 100 {
        cluster.now.mono_ms += 100;
        cluster.now.wall_ms += 100;
        let ids: Vec<u64> = cluster.nodes.keys().copied().collect();
        for node in ids {
            cluster.step(node, Input::Tick);
        }
        cluster.deliver();
    }
}

fn granted(answer: Answer) -> Vec<Grant> {
    let Answer::Claimed(grants) = answer else { panic!("not a claim: {answer:?}") };
    grants
}

fn view(cluster: &Cluster, id: &str) -> TaskView {
    let leader = cluster.leader(0).expect("a leader");
    let shard = cluster.nodes[&leader].shard(0).expect("a shard");
    shard.task(&Namespace::default(), &TaskId::parse(id).expect("id")).expect("a task")
}

fn submitted(cluster: &Cluster) -> u64 {
    let leader = cluster.leader(0).expect("a leader");
    let shard = cluster.nodes[&leader].shard(0).expect("a shard");
    let queue = QueueName::parse("q").expect("queue");
    shard.queue(&Namespace::default(), &queue).expect("the queue").counters.submitted
}

/// Two hours of work under a claim that lives for 30 s, with another leader after the first: others work all the time and
/// never get it. F-24: nor does it keep the log from being cut.
#[test]
fn tq_12_tq_19_two_hours_of_work_under_a_claim_of_thirty_seconds_run_once() {
    let mut cluster = Cluster::with(3, 1, |config| {
        config.snapshot_entries = 20;
        config.consensus.keep_bytes = 0;
    });
    cluster.settle();
    cluster.ask(1, Request::Write(vec![enqueue("long")]));
    let grant = granted(cluster.ask(1, claim("w", 1, 0, "c"))).remove(0);
    assert_eq!((grant.attempt, grant.ttl_ms), (1, 30_000));
    let granted_at = cluster.nodes[&1].consensus().commit(0);
    let mut node = 1;
    for round in 0..720 {
        doze(&mut cluster, 10_000);
        if round == 360 {
            let leader = cluster.leader(0).expect("a leader");
            cluster.kill(leader);
            cluster.pass(3_000);
            node = leader % 3 + 1;
        }
        let answer = cluster.ask(node, renew(&grant));
        let Answer::Renewed(outcomes) = answer else { panic!("{answer:?}") };
        assert_eq!(outcomes, [RenewOutcome::Renewed { ttl_ms: 30_000 }], "round {round}");
        if round % 10 == 0 {
            cluster.ask(node, Request::Write(vec![enqueue(&format!("short{round}"))]));
            let others = granted(cluster.ask(node, claim("other", 9, 0, &format!("o{round}"))));
            assert_eq!(others.len(), 1, "round {round}");
            settle(&mut cluster, node, &others[0], "other");
        }
    }
    settle(&mut cluster, node, &grant, "w");
    let task = view(&cluster, "long");
    assert_eq!((task.state, task.attempt, task.attempts.len()), (TaskState::Done, 1, 1));
    let first = cluster.nodes[&node].consensus().first_index(0);
    assert!(
        first > granted_at + 50,
        "the log begins at {first}, the claim was made at {granted_at}"
    );
}

fn renew(grant: &Grant) -> Request {
    Request::Renew(Renewal {
        namespace: Namespace::default(),
        worker: WorkerId::parse("w").expect("id"),
        session: None,
        claims: vec![(grant.id.clone(), grant.fence)],
        progress: Vec::new(),
    })
}

/// Completes a task; it must count.
fn settle(cluster: &mut Cluster, node: u64, grant: &Grant, worker: &str) {
    let answer = cluster.ask(node, Request::Write(vec![complete(grant, worker)]));
    let Answer::Written(outcomes) = answer else { panic!("{answer:?}") };
    assert!(matches!(outcomes[..], [Outcome::Reply { reply: Reply::Completed, .. }]));
}

/// A hundred leaders die while workers wait for work, each with one call that it made before: what comes afterwards finds
/// them at once.
#[test]
fn tq_16_idle_workers_get_work_at_once_through_a_hundred_leader_kills() {
    let mut cluster = Cluster::new(3, 1);
    cluster.settle();
    for round in 0..100 {
        let leader = cluster.leader(0).expect("a leader");
        let others: Vec<u64> = (1..=3).filter(|node| *node != leader).collect();
        let parked: Vec<u64> = others
            .iter()
            .map(|node| {
                let wish = claim(&format!("w{node}"), 1, 30_000, &format!("c{round}-{node}"));
                cluster.call_with(*node, wish, Routing::Forward, 30_000)
            })
            .collect();
        cluster.pass(200);
        cluster.kill(leader);
        for _ in 0..100 {
            cluster.pass(100);
            if cluster.leader(0).is_some() {
                break;
            }
        }
        let orders = (0..2).map(|number| enqueue(&format!("t{round}-{number}"))).collect();
        cluster.ask(others[round % 2], Request::Write(orders));
        cluster.pass(50);
        let mut taken = BTreeSet::new();
        for call in parked {
            let answer = cluster.answers.remove(&call).expect("woken by the work");
            for grant in granted(answer) {
                let worker = worker_of(&cluster, &grant);
                settle(&mut cluster, others[0], &grant, &worker);
                taken.insert(grant.id);
            }
        }
        assert_eq!(taken.len(), 2, "round {round}: both tasks went to workers that waited");
        cluster.revive(leader);
        cluster.pass(300);
    }
    assert_eq!(submitted(&cluster), 200);
}

fn worker_of(cluster: &Cluster, grant: &Grant) -> String {
    let task = view(cluster, grant.id.as_str());
    task.attempts.last().expect("an attempt").worker.as_str().to_owned()
}

/// A hundred times the same submission on its way at one time, through all nodes: one task, and everybody hears the same.
/// The same with a hundred keys and one id: one of them made it.
#[test]
fn tq_21_a_hundred_duplicates_at_one_time_make_one_task() {
    let mut cluster = Cluster::new(3, 4);
    cluster.settle();
    let send = |cluster: &mut Cluster, key: &dyn Fn(u64) -> String, id: &str| {
        let calls: Vec<u64> = (0..100)
            .map(|number| {
                let order = enqueue_as(id, &key(number));
                cluster.call(number % 3 + 1, Request::Write(vec![order]))
            })
            .collect();
        cluster.pass(500);
        let created = |call: u64| match cluster.answers.remove(&call) {
            Some(Answer::Written(outcomes)) => match &outcomes[..] {
                [Outcome::Reply { reply: Reply::Enqueued { created, .. }, .. }] => *created,
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        };
        calls.into_iter().map(created).filter(|created| *created).count()
    };
    assert_eq!(send(&mut cluster, &|_| "same".to_owned(), "a"), 100, "each hears the first reply");
    assert_eq!(send(&mut cluster, &|number| format!("key-{number}"), "b"), 1, "one made it");
    let tasks: u64 = (0..4)
        .map(|shard| {
            let leader = cluster.leader(shard).expect("a leader");
            let state = cluster.nodes[&leader].shard(shard).expect("a shard");
            state.queues(None).map(|queue| queue.counters.submitted).sum::<u64>()
        })
        .sum();
    assert_eq!(tasks, 2);
}
