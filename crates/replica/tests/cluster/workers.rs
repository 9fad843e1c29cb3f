//! Workers over three replicas: they register through any node, beat without entries, outlive leaders, are called dead by
//! the leader's clock, and reopen their tasks when they are removed (B4-15 to B4-25).

use ikada_replica::call::{Answer, Outcome, Request};
use ikada_replica::peer::WorkerTold;
use ikada_replica::state::{
    Command, DrainWorker, Grant, Labels, Namespace, Order, QueueName, RegisterWorker, RemoveWorker,
    Reply, SessionId, WorkerId, WorkerStanding,
};
use ikada_replica::{WORKER_BEAT_MS, WORKER_DEAD_MS};

use crate::harness::{Cluster, claim, enqueue};

fn worker(name: &str) -> WorkerId {
    WorkerId::parse(name).expect("id")
}

fn beat(name: &str, session: u64, leaving: bool) -> Request {
    let worker = RegisterWorker {
        id: worker(name),
        session: SessionId(session),
        slots: 4,
        labels: Labels::default(),
        queues: vec![QueueName::parse("q").expect("queue")],
        version: "1".into(),
        replaces: None,
    };
    Request::Beat { namespace: Namespace::default(), worker, busy: 1, leaving }
}

fn standing(answer: Answer) -> WorkerStanding {
    match answer {
        Answer::Beat { standing, .. } => standing,
        other => panic!("not heard: {other:?}"),
    }
}

fn workers(cluster: &mut Cluster, node: u64) -> Vec<WorkerTold> {
    match cluster.ask(node, Request::Workers) {
        Answer::Workers { workers, .. } => workers,
        other => panic!("not workers: {other:?}"),
    }
}

fn order(cluster: &mut Cluster, command: Command) -> Reply {
    let order = Order { namespace: Namespace::default(), request: None, command };
    match cluster.ask(1, Request::Write(vec![order])) {
        Answer::Written(mut outcomes) => match outcomes.remove(0) {
            Outcome::Reply { reply, .. } => reply,
            other => panic!("not decided: {other:?}"),
        },
        other => panic!("not written: {other:?}"),
    }
}

fn grants(answer: Answer) -> Vec<Grant> {
    match answer {
        Answer::Claimed(grants) => grants,
        other => panic!("not claimed: {other:?}"),
    }
}

#[test]
fn b4_22_workers_register_through_any_node_and_beat_without_entries() {
    let mut cluster = Cluster::new(3, 2);
    cluster.settle();
    // What a new cluster tells its shards once is written by then.
    cluster.pass(2_500);
    for node in 1..=3 {
        let name = format!("w{node}");
        assert_eq!(standing(cluster.ask(node, beat(&name, 1, false))), WorkerStanding::Active);
    }
    cluster.pass(100);
    let before: Vec<u64> = (1..=3).map(|node| cluster.records(node)).collect();
    for _ in 0..6 {
        cluster.pass(WORKER_BEAT_MS);
        for node in 1..=3 {
            standing(cluster.ask(node % 3 + 1, beat(&format!("w{node}"), 1, false)));
        }
    }
    let after: Vec<u64> = (1..=3).map(|node| cluster.records(node)).collect();
    assert_eq!(before, after, "an idle cluster writes nothing");
    let seen = workers(&mut cluster, 2);
    assert_eq!(seen.len(), 3);
    assert!(seen.iter().all(|worker| worker.alive && worker.busy == 1));
}

#[test]
fn b4_16_a_silent_worker_is_dead_and_comes_back() {
    let mut cluster = Cluster::new(3, 1);
    cluster.settle();
    cluster.ask(1, beat("w", 1, false));
    cluster.pass(WORKER_DEAD_MS - 500);
    assert!(workers(&mut cluster, 1)[0].alive);
    cluster.pass(1_000);
    assert!(!workers(&mut cluster, 1)[0].alive);
    cluster.ask(2, beat("w", 1, false));
    assert!(workers(&mut cluster, 3)[0].alive);
    // B4-22: a new session takes the place of a dead one.
    cluster.pass(WORKER_DEAD_MS + 500);
    assert_eq!(standing(cluster.ask(2, beat("w", 2, false))), WorkerStanding::Active);
    assert_eq!(workers(&mut cluster, 3)[0].record.session, SessionId(2));
}

#[test]
fn b4_20_an_impostor_is_kept_out_with_both_named() {
    let mut cluster = Cluster::new(3, 1);
    cluster.settle();
    cluster.ask(1, beat("w", 0xa1, false));
    let answer = cluster.ask(2, beat("w", 0xb2, false));
    let Answer::Refused { code, detail } = answer else { panic!("{answer:?}") };
    assert_eq!(code, "worker_exists");
    assert!(detail.contains("a1") && detail.contains("b2"), "{detail}");
    let seen = workers(&mut cluster, 1);
    assert_eq!((seen.len(), seen[0].impostor), (1, Some(SessionId(0xb2))));
    assert_eq!(standing(cluster.ask(1, beat("w", 0xa1, false))), WorkerStanding::Active);
}

#[test]
fn b4_25_b4_58_workers_outlive_their_leader_and_get_a_whole_time_from_the_next() {
    let mut cluster = Cluster::new(3, 1);
    cluster.settle();
    let leader = cluster.leader(0).expect("leader");
    let node = (1..=3).find(|node| *node != leader).expect("another");
    cluster.ask(node, beat("w", 1, false));
    cluster.pass(WORKER_DEAD_MS - 2_000);
    cluster.kill(leader);
    cluster.pass(3_000);
    assert!(workers(&mut cluster, node)[0].alive, "a new leader has heard nobody yet");
    let before = cluster.ask(node, beat("w", 1, false));
    let Answer::Beat { term, .. } = before else { panic!("{before:?}") };
    assert!(term > 1, "orders bear the term of the leader");
}

#[test]
fn b4_18_drain_and_removal_are_told_with_the_next_beat() {
    let mut cluster = Cluster::new(3, 3);
    cluster.settle();
    cluster.ask(1, beat("w", 1, false));
    let drain = Command::DrainWorker(DrainWorker { id: worker("w") });
    assert_eq!(order(&mut cluster, drain), Reply::WorkerDraining);
    assert_eq!(standing(cluster.ask(2, beat("w", 1, false))), WorkerStanding::Draining);
    // B4-19: what it holds in any shard is reopened within a cycle.
    cluster.ask(1, Request::Write((0..9).map(|n| enqueue(&format!("t{n}"))).collect()));
    let mut held = 0;
    for round in 0..9 {
        held += grants(cluster.ask(1, claim("w", 3, 0, &format!("c{round}")))).len();
    }
    assert_eq!(held, 9);
    let remove = RemoveWorker { id: worker("w"), session: None, forget: false };
    assert_eq!(order(&mut cluster, Command::RemoveWorker(remove)), Reply::WorkerGone);
    cluster.pass(200);
    let mut taken = 0;
    for round in 0..9 {
        taken += grants(cluster.ask(2, claim("v", 3, 0, &format!("d{round}")))).len();
    }
    assert_eq!(taken, 9);
    assert_eq!(standing(cluster.ask(2, beat("w", 1, false))), WorkerStanding::Removed);
    assert!(workers(&mut cluster, 1).is_empty());
}

fn refused(answer: Answer) -> String {
    match answer {
        Answer::Refused { code, detail } if detail.contains("worker w was removed") => code,
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn b4_19_a_removed_session_claims_nothing_and_a_new_one_does() {
    let mut cluster = Cluster::new(3, 3);
    cluster.settle();
    cluster.ask(1, beat("w", 1, false));
    let remove = RemoveWorker { id: worker("w"), session: None, forget: false };
    assert_eq!(order(&mut cluster, Command::RemoveWorker(remove)), Reply::WorkerGone);
    cluster.pass(200);
    cluster.ask(1, Request::Write((0..9).map(|n| enqueue(&format!("t{n}"))).collect()));
    for node in 1..=3 {
        let told = refused(cluster.ask(node, claim("w", 3, 1_000, &format!("c{node}"))));
        assert_eq!(told, "worker_removed");
    }
    assert_eq!(standing(cluster.ask(2, beat("w", 2, false))), WorkerStanding::Active);
    cluster.pass(200);
    // Its name is not refused, and neither is a worker that never said who it is; the old session stays refused.
    let mut anew = claim("w", 1, 0, "again");
    if let Request::Claim(wish) = &mut anew {
        wish.session = SessionId(2);
    }
    assert_eq!(grants(cluster.ask(3, anew)).len(), 1);
    assert_eq!(refused(cluster.ask(3, claim("w", 1, 0, "old"))), "worker_removed");
    assert_eq!(grants(cluster.ask(3, claim("v", 1, 0, "other"))).len(), 1);
}

// The worker's node hears that there is work before it hears of the removal that brought it.
#[test]
fn b4_19_a_parked_claim_of_a_removed_session_is_granted_nothing() {
    let mut cluster = Cluster::new(3, 3);
    cluster.settle();
    cluster.ask(1, beat("w", 1, false));
    cluster.ask(1, Request::Write((0..9).map(|n| enqueue(&format!("t{n}"))).collect()));
    let mut held = 0;
    for round in 0..9 {
        held += grants(cluster.ask(1, claim("w", 3, 0, &format!("c{round}")))).len();
    }
    assert_eq!(held, 9);
    let parked: Vec<u64> = (1..=3)
        .map(|node| cluster.call(node, claim("w", 3, 60_000, &format!("parked{node}"))))
        .collect();
    cluster.pass(500);
    let remove = RemoveWorker { id: worker("w"), session: None, forget: false };
    assert_eq!(order(&mut cluster, Command::RemoveWorker(remove)), Reply::WorkerGone);
    cluster.pass(1_000);
    for call in parked {
        assert_eq!(refused(cluster.answers.remove(&call).expect("an answer")), "worker_removed");
    }
    let mut taken = 0;
    for round in 0..9 {
        taken += grants(cluster.ask(2, claim("v", 3, 0, &format!("d{round}")))).len();
    }
    assert_eq!(taken, 9, "all are there for others");
}

// Its claim is in the log behind the removal, before anybody knows of it.
#[test]
fn b4_19_a_claim_on_its_way_when_its_worker_is_removed_is_given_back() {
    let mut cluster = Cluster::new(3, 1);
    cluster.settle();
    cluster.ask(1, beat("w", 1, false));
    cluster.ask(1, Request::Write(vec![enqueue("t")]));
    let leader = cluster.leader(0).expect("leader");
    let remove =
        Command::RemoveWorker(RemoveWorker { id: worker("w"), session: None, forget: false });
    let remove = Order { namespace: Namespace::default(), request: None, command: remove };
    cluster.call(leader, Request::Write(vec![remove]));
    cluster.call(leader, claim("w", 1, 60_000, "late"));
    cluster.pass(1_000);
    let taken = grants(cluster.ask(leader, claim("v", 1, 0, "other")));
    assert_eq!(taken.len(), 1, "nobody waits for a ttl");
    assert_eq!(taken[0].attempt, 1, "and the attempt does not count");
}

#[test]
fn b4_22_one_that_leaves_is_forgotten_at_once() {
    let mut cluster = Cluster::new(3, 1);
    cluster.settle();
    cluster.ask(1, beat("w", 1, false));
    cluster.ask(1, beat("w", 1, true));
    cluster.pass(100);
    assert!(workers(&mut cluster, 1).is_empty());
    assert_eq!(standing(cluster.ask(1, beat("w", 2, false))), WorkerStanding::Active);
}
