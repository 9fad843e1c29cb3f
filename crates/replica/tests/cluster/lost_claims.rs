//! Claims whose answers got lost: returned by roll call, never taken from a worker that holds them; and what a new
//! leader owes to claims and to idle workers.

use ikada_replica::call::{Answer, Outcome, RenewOutcome, Renewal, Request, Routing};
use ikada_replica::state::{
    Command, Complete, Fence, Grant, Namespace, Order, Reply, SessionId, TaskId, TaskState,
    WorkerId,
};

use crate::harness::{Cluster, claim, enqueue};

fn renew(worker: &str, session: u64, claims: &[(TaskId, Fence)]) -> Request {
    Request::Renew(Renewal {
        namespace: Namespace::default(),
        worker: WorkerId::parse(worker).expect("id"),
        session: Some(SessionId(session)),
        claims: claims.to_vec(),
        progress: Vec::new(),
    })
}

fn grants(answer: Answer) -> Vec<Grant> {
    let Answer::Claimed(grants) = answer else { panic!("not a claim: {answer:?}") };
    grants
}

fn held(grants: &[Grant]) -> Vec<(TaskId, Fence)> {
    grants.iter().map(|grant| (grant.id.clone(), grant.fence)).collect()
}

/// State and counted attempts of a task, wherever it lives.
fn look(cluster: &Cluster, id: &TaskId) -> (TaskState, u16) {
    let found = (0..cluster.shards).find_map(|shard| {
        let leader = cluster.leader(shard).expect("leader");
        cluster.nodes[&leader].shard(shard)?.task(&Namespace::default(), id)
    });
    let view = found.expect("task");
    (view.state, view.attempt)
}

#[test]
fn a_grant_that_its_worker_never_names_is_returned_and_not_counted() {
    // Q7
    let mut cluster = Cluster::new(3, 4);
    cluster.settle();
    cluster.ask(1, Request::Write((0..8).map(|n| enqueue(&format!("t{n}"))).collect()));
    let kept = grants(cluster.ask(1, claim("w", 1, 0, "kept")));
    let lost = grants(cluster.ask(1, claim("w", 1, 0, "lost")));
    let other = grants(cluster.ask(1, claim("other", 1, 0, "other")));
    for _ in 0..2 {
        cluster.ask(2, renew("w", 1, &held(&kept)));
        cluster.pass(50);
        assert_eq!(look(&cluster, &lost[0].id), (TaskState::Claimed, 1), "too early");
        cluster.pass(1_000);
    }
    cluster.ask(3, renew("w", 1, &held(&kept)));
    cluster.pass(50);
    assert_eq!(look(&cluster, &lost[0].id), (TaskState::Ready, 0));
    assert_eq!(look(&cluster, &kept[0].id), (TaskState::Claimed, 1));
    assert_eq!(look(&cluster, &other[0].id), (TaskState::Claimed, 1), "another worker's");
}

#[test]
fn an_empty_list_is_a_roll_call_too_also_at_a_new_leader() {
    let mut cluster = Cluster::new(3, 1);
    cluster.settle();
    cluster.ask(1, Request::Write(vec![enqueue("t")]));
    let lost = grants(cluster.ask(1, claim("w", 1, 0, "lost")));
    let leader = cluster.leader(0).expect("leader");
    cluster.kill(leader);
    cluster.pass(3_000);
    let node = (1..=3).find(|node| *node != leader).expect("another");
    cluster.ask(node, renew("w", 2, &[]));
    cluster.pass(2_100);
    cluster.ask(node, renew("w", 2, &[]));
    cluster.pass(50);
    assert_eq!(look(&cluster, &lost[0].id), (TaskState::Claimed, 1), "not of that session");
    cluster.ask(node, renew("w", 1, &[]));
    cluster.pass(2_100);
    cluster.ask(node, renew("w", 1, &[]));
    cluster.pass(50);
    assert_eq!(look(&cluster, &lost[0].id), (TaskState::Ready, 0));
}

#[test]
fn a_confirmed_claim_is_left_to_its_ttl() {
    let mut cluster = Cluster::new(3, 1);
    cluster.settle();
    cluster.ask(1, Request::Write(vec![enqueue("t")]));
    let grants = grants(cluster.ask(1, claim("w", 1, 0, "c")));
    cluster.ask(1, renew("w", 1, &held(&grants)));
    for _ in 0..5 {
        cluster.pass(2_100);
        cluster.ask(1, renew("w", 1, &[]));
    }
    assert_eq!(look(&cluster, &grants[0].id), (TaskState::Claimed, 1));
    cluster.pass(20_000);
    assert_eq!(look(&cluster, &grants[0].id).1, 1, "it expired, and counts");
    assert_ne!(look(&cluster, &grants[0].id).0, TaskState::Claimed);
}

#[test]
fn a_resend_through_another_node_meets_its_own_grant_first() {
    let mut cluster = Cluster::new(3, 4);
    cluster.settle();
    cluster.ask(1, Request::Write((0..40).map(|n| enqueue(&format!("t{n}"))).collect()));
    for round in 0..8 {
        let request = format!("c{round}");
        let first = grants(cluster.ask(1, claim("w", 1, 0, &request)));
        let again = grants(cluster.ask(2, claim("w", 1, 0, &request)));
        assert_eq!(held(&first), held(&again), "one slot, one claim");
    }
}

#[test]
fn tq_12_a_new_leader_restarts_every_ttl() {
    let mut cluster = Cluster::new(3, 1);
    cluster.settle();
    cluster.ask(1, Request::Write((0..20).map(|n| enqueue(&format!("t{n}"))).collect()));
    let grants = grants(cluster.ask(1, claim("w", 20, 0, "c")));
    cluster.pass(25_000);
    let leader = cluster.leader(0).expect("leader");
    cluster.kill(leader);
    cluster.pass(3_000);
    // 30 s after the grants, 27 s and less after the election.
    cluster.pass(20_000);
    let node = cluster.leader(0).expect("leader");
    for grant in &grants {
        assert_eq!(look(&cluster, &grant.id), (TaskState::Claimed, 1));
    }
    let answer = cluster.ask(node, renew("w", 1, &held(&grants[..10])));
    let Answer::Renewed(outcomes) = answer else { panic!("{answer:?}") };
    assert!(outcomes.iter().all(|outcome| *outcome == RenewOutcome::Renewed { ttl_ms: 30_000 }));
    cluster.pass(15_000);
    assert_eq!(look(&cluster, &grants[0].id).0, TaskState::Claimed, "renewed");
    assert_ne!(look(&cluster, &grants[19].id).0, TaskState::Claimed, "its whole ttl has passed");
}

#[test]
fn tq_12_a_stalled_leader_expires_nothing_on_waking() {
    let mut cluster = Cluster::new(1, 1);
    cluster.settle();
    cluster.ask(1, Request::Write((0..50).map(|n| enqueue(&format!("t{n}"))).collect()));
    let grants = grants(cluster.ask(1, claim("w", 50, 0, "c")));
    cluster.pass(1_000);
    cluster.now.mono_ms += 600_000;
    cluster.now.wall_ms += 600_000;
    cluster.pass(29_000);
    for grant in &grants {
        assert_eq!(look(&cluster, &grant.id), (TaskState::Claimed, 1));
    }
    cluster.pass(2_000);
    assert_ne!(look(&cluster, &grants[0].id).0, TaskState::Claimed);
}

#[test]
fn tq_17_a_crashed_workers_task_runs_again_after_a_whole_ttl_of_the_new_leader() {
    let mut cluster = Cluster::new(3, 1);
    cluster.settle();
    cluster.ask(1, Request::Write(vec![enqueue("t")]));
    let first = grants(cluster.ask(1, claim("crashed", 1, 0, "c1")));
    cluster.pass(5_000);
    let leader = cluster.leader(0).expect("leader");
    cluster.kill(leader);
    cluster.pass(1_000);
    let node = (1..=3).find(|node| *node != leader).expect("another");
    cluster.pass(28_000);
    assert!(grants(cluster.ask(node, claim("next", 1, 0, "c2"))).is_empty(), "its ttl runs");
    cluster.pass(10_000);
    let second = grants(cluster.ask(node, claim("next", 1, 0, "c3")));
    assert_eq!((second[0].id.as_str(), second[0].attempt), ("t", 2));
    for (grant, worker, counts) in [(&first[0], "crashed", false), (&second[0], "next", true)] {
        let command = Command::Complete(Complete {
            keeps_digest: None,
            then: None,
            id: grant.id.clone(),
            fence: grant.fence,
            worker: WorkerId::parse(worker).expect("id"),
            result: None,
            outputs: Vec::new(),
        });
        let order = Order { namespace: Namespace::default(), request: None, command };
        let Answer::Written(outcomes) = cluster.ask(node, Request::Write(vec![order])) else {
            panic!("not written")
        };
        let is_done = matches!(&outcomes[0], Outcome::Reply { reply: Reply::Completed, .. });
        assert_eq!(is_done, counts, "{worker}: {outcomes:?}");
    }
}

#[test]
fn an_idle_worker_gets_work_of_every_shard_after_a_leader_change() {
    let mut cluster = Cluster::new(3, 4);
    cluster.settle();
    let leader = cluster.leader(0).expect("leader");
    let node = (1..=3).find(|node| *node != leader).expect("another");
    let parked: Vec<u64> = (0..4)
        .map(|n| {
            let wish = claim(&format!("w{n}"), 1, 20_000, &format!("c{n}"));
            cluster.call_with(node, wish, Routing::Forward, 20_000)
        })
        .collect();
    cluster.pass(500);
    cluster.kill(leader);
    cluster.pass(3_000);
    let mut taken = 0;
    for number in 0..4 {
        cluster.ask(node, Request::Write(vec![enqueue(&format!("after{number}"))]));
        cluster.pass(50);
        taken += parked.iter().filter(|call| cluster.answers.remove(call).is_some()).count();
        assert_eq!(taken, number + 1, "each task finds a parked worker at once");
    }
}
