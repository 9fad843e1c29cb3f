//! Workers: work from all shards through any node, no more than asked, nothing lost when a leader goes.

use ikada_replica::call::{Answer, Outcome, RenewOutcome, Renewal, Request};
use ikada_replica::output::Input;
use ikada_replica::state::{
    Command, Complete, Grant, Namespace, Order, Progress, QueueChange, QueueName, RefusalCode,
    Reply, SetQueue, TaskState, Unclaim, WorkerId,
};

use crate::harness::{Cluster, claim, enqueue};

fn grants(answer: Answer) -> Vec<Grant> {
    let Answer::Claimed(grants) = answer else { panic!("not a claim: {answer:?}") };
    grants
}

pub fn complete(grant: &Grant, worker: &str) -> Order {
    let command = Command::Complete(Complete {
        keeps_digest: None,
        id: grant.id.clone(),
        fence: grant.fence,
        worker: WorkerId::parse(worker).expect("id"),
        result: Some(b"ok".to_vec().into()),
        then: None,
        outputs: Vec::new(),
    });
    Order { namespace: Namespace::default(), request: None, command }
}

fn renew(grant: &Grant, worker: &str) -> Request {
    Request::Renew(Renewal {
        namespace: Namespace::default(),
        worker: WorkerId::parse(worker).expect("id"),
        session: None,
        claims: vec![(grant.id.clone(), grant.fence)],
        progress: Vec::new(),
    })
}

#[test]
fn one_worker_drains_all_shards() {
    let mut cluster = Cluster::new(3, 4);
    cluster.settle();
    let orders = (0..50).map(|n| enqueue(&format!("t{n}"))).collect();
    cluster.ask(1, Request::Write(orders));
    let mut done = std::collections::BTreeSet::new();
    for round in 0..100 {
        let node = round % 3 + 1;
        let grants = grants(cluster.ask(node, claim("w", 4, 0, &format!("c{round}"))));
        assert!(grants.len() <= 4, "never more than asked for");
        if grants.is_empty() {
            break;
        }
        for grant in &grants {
            assert!(done.insert(grant.id.as_str().to_owned()), "granted twice");
        }
        let orders = grants.iter().map(|grant| complete(grant, "w")).collect();
        cluster.ask(node, Request::Write(orders));
    }
    assert_eq!(done.len(), 50);
}

#[test]
fn a_parked_claim_gets_new_work_at_once() {
    let mut cluster = Cluster::new(3, 4);
    cluster.settle();
    for node in 1..=3 {
        let call = cluster.call(node, claim("w", 1, 4_000, &format!("c{node}")));
        cluster.pass(300);
        assert!(!cluster.answers.contains_key(&call), "parked");
        let other = node % 3 + 1;
        cluster.ask(other, Request::Write(vec![enqueue(&format!("t{node}"))]));
        cluster.deliver();
        let answer = cluster.answers.remove(&call).expect("woken without a retry interval");
        assert_eq!(grants(answer).len(), 1);
    }
}

#[test]
fn a_parked_claim_goes_into_the_log_with_the_task_that_it_waits_for() {
    let mut cluster = Cluster::new(3, 1);
    cluster.settle();
    let leader = cluster.leader(0).expect("leader");
    // Two wait at the same node; the second must not be forgotten when the first is served.
    let calls = ["a", "b"].map(|request| cluster.call(leader, claim("w", 1, 4_000, request)));
    cluster.pass(300);
    for (number, call) in calls.into_iter().enumerate() {
        let before = cluster.nodes[&leader].consensus().commit(0);
        cluster.ask(leader, Request::Write(vec![enqueue(&format!("t{number}"))]));
        let answer = cluster.answers.remove(&call).expect("granted in the commit of its task");
        assert_eq!(grants(answer).len(), 1);
        assert_eq!(cluster.nodes[&leader].consensus().commit(0), before + 1, "one entry for both");
    }
    let before = cluster.nodes[&leader].consensus().commit(0);
    cluster.ask(leader, Request::Write(vec![enqueue("t2")]));
    assert_eq!(
        cluster.nodes[&leader].consensus().commit(0),
        before + 1,
        "nobody waits, nobody claims"
    );
}

#[test]
fn a_paused_queue_costs_no_claims_although_workers_wait() {
    let mut cluster = Cluster::new(3, 1);
    cluster.settle();
    let leader = cluster.leader(0).expect("leader");
    let queue = QueueName::parse("q").expect("queue");
    let change = QueueChange { paused: Some(true), ..QueueChange::default() };
    let command = Command::SetQueue(SetQueue { queue, change, expected_version: None });
    let pause = Order { namespace: Namespace::default(), request: None, command };
    cluster.ask(leader, Request::Write(vec![pause]));
    cluster.call(leader, claim("w", 1, 4_000, "c"));
    cluster.pass(300);
    let before = cluster.nodes[&leader].consensus().commit(0);
    cluster.ask(leader, Request::Write(vec![enqueue("held")]));
    cluster.pass(100);
    assert_eq!(cluster.nodes[&leader].consensus().commit(0), before + 1);
}

#[test]
fn a_task_that_is_there_already_keeps_nobody_from_the_next() {
    let mut cluster = Cluster::new(3, 1);
    cluster.settle();
    let leader = cluster.leader(0).expect("leader");
    let other = leader % 3 + 1;
    cluster.ask(leader, Request::Write(vec![enqueue("old")]));
    let held = grants(cluster.ask(other, claim("w", 1, 0, "first")));
    cluster.ask(other, Request::Write(vec![complete(&held[0], "w")]));
    for node in [leader, other] {
        let call = cluster.call(node, claim("w", 1, 4_000, &format!("c{node}")));
        cluster.pass(300);
        for _ in 0..3 {
            cluster.ask(other, Request::Write(vec![enqueue("old")]));
        }
        assert!(!cluster.answers.contains_key(&call), "nothing new came");
        cluster.ask(other, Request::Write(vec![enqueue(&format!("new{node}"))]));
        cluster.deliver();
        let answer = cluster.answers.remove(&call).expect("woken without a retry interval");
        assert_eq!(grants(answer).len(), 1);
    }
}

#[test]
fn an_idle_worker_gets_work_after_a_leader_change() {
    let mut cluster = Cluster::new(3, 1);
    cluster.settle();
    let leader = cluster.leader(0).expect("leader");
    let node = (1..=3).find(|node| *node != leader).expect("another");
    let call = cluster.call_with(
        node,
        claim("w", 1, 20_000, "c"),
        ikada_replica::call::Routing::Forward,
        20_000,
    );
    cluster.pass(500);
    cluster.kill(leader);
    cluster.pass(3_000);
    cluster.ask(node, Request::Write(vec![enqueue("after")]));
    cluster.pass(50);
    let answer = cluster.answers.remove(&call).expect("woken");
    assert_eq!(grants(answer).len(), 1);
}

#[test]
fn an_unrenewed_claim_expires_and_a_renewed_one_does_not() {
    // TQ-12, Q6: the default ttl is 30 s.
    let mut cluster = Cluster::new(3, 1);
    cluster.settle();
    cluster.ask(1, Request::Write(vec![enqueue("a"), enqueue("b")]));
    let grants = grants(cluster.ask(1, claim("w", 2, 0, "c")));
    for _ in 0..5 {
        cluster.pass(9_000);
        let answer = cluster.ask(2, renew(&grants[0], "w"));
        let Answer::Renewed(outcomes) = answer else { panic!("{answer:?}") };
        assert_eq!(outcomes, vec![RenewOutcome::Renewed { ttl_ms: 30_000 }]);
    }
    let answer = cluster.ask(2, renew(&grants[1], "w"));
    let Answer::Renewed(outcomes) = answer else { panic!("{answer:?}") };
    assert_eq!(outcomes, vec![RenewOutcome::Refused(RefusalCode::StaleFence)]);
    let answer = cluster.ask(2, renew(&grants[0], "someone-else"));
    let Answer::Renewed(outcomes) = answer else { panic!("{answer:?}") };
    assert_eq!(outcomes, vec![RenewOutcome::Refused(RefusalCode::NotOwner)]);
    // TQ-18: the late completion of the expired claim is refused by its fence.
    let answer = cluster.ask(3, Request::Write(vec![complete(&grants[1], "w")]));
    let Answer::Written(outcomes) = answer else { panic!("{answer:?}") };
    let stale = matches!(
        &outcomes[0],
        Outcome::Reply { reply: Reply::Refused { code: RefusalCode::StaleFence }, .. }
    );
    assert!(stale, "{outcomes:?}");
}

/// Q6: an expiry that waited in line behind a log that stood still once overruled a renewal that was confirmed meanwhile.
#[test]
fn a_renewal_counts_as_long_as_the_expiry_cannot_be_proposed() {
    let mut cluster = Cluster::with(3, 1, |config| config.entries_in_flight_max = 1);
    cluster.settle();
    let leader = cluster.leader(0).expect("leader");
    cluster.ask(leader, Request::Write(vec![enqueue("a")]));
    let grant = grants(cluster.ask(leader, claim("w", 1, 0, "c"))).remove(0);
    cluster.pass(29_800);
    // Nobody answers the leader: one entry is in flight, and no other can follow.
    for other in (1..=3).filter(|node| *node != leader) {
        cluster.cut.insert((other, leader));
    }
    cluster.call(leader, Request::Write(vec![enqueue("b")]));
    cluster.pass(400);
    let answer = cluster.ask(leader, renew(&grant, "w"));
    let Answer::Renewed(outcomes) = answer else { panic!("{answer:?}") };
    assert_eq!(outcomes, vec![RenewOutcome::Renewed { ttl_ms: 30_000 }]);
    cluster.cut.clear();
    cluster.pass(2_000);
    let answer = cluster.ask(leader, Request::Write(vec![complete(&grant, "w")]));
    let Answer::Written(outcomes) = answer else { panic!("{answer:?}") };
    let done = matches!(&outcomes[0], Outcome::Reply { reply: Reply::Completed, .. });
    assert!(done, "{outcomes:?}");
}

#[test]
fn a_claim_whose_caller_has_gone_is_given_back() {
    let mut cluster = Cluster::new(3, 1);
    cluster.settle();
    cluster.ask(1, Request::Write(vec![enqueue("t")]));
    let leader = cluster.leader(0).expect("leader");
    let node = (1..=3).find(|node| *node != leader).expect("another");
    let call = cluster.call(node, claim("w", 1, 0, "c"));
    cluster.step(node, Input::CallGone(call));
    cluster.pass(500);
    assert!(!cluster.answers.contains_key(&call));
    let shard = cluster.nodes[&leader].shard(0).expect("shard");
    let id = ikada_replica::state::TaskId::parse("t").expect("id");
    let view = shard.task(&Namespace::default(), &id).expect("task");
    assert_eq!((view.state, view.attempt), (TaskState::Ready, 0));
}

/// A claim that the leader granted and answered, before anybody else could apply it or hear that it is committed.
fn granted_unheard(cluster: &mut Cluster, leader: u64) -> Grant {
    cluster.ask(leader, Request::Write(vec![enqueue("a")]));
    cluster.pass(100);
    let call = cluster.call(leader, claim("w", 1, 0, "c"));
    cluster.deliver();
    grants(cluster.answers.remove(&call).expect("granted")).remove(0)
}

/// Q6, F-9: the claim is in the new leader's log, and committed, but not yet in its state.
#[test]
fn a_leader_that_is_behind_its_log_refuses_no_renewal() {
    let mut cluster = Cluster::new(3, 1);
    cluster.settle();
    let leader = cluster.leader(0).expect("leader");
    let grant = granted_unheard(&mut cluster, leader);
    cluster.kill(leader);
    let others: Vec<u64> = (1..=3).filter(|node| *node != leader).collect();
    // They wait at both nodes and are asked the moment that one of them leads.
    let calls: Vec<u64> =
        others.iter().map(|node| cluster.call(*node, renew(&grant, "w"))).collect();
    cluster.pass(4_000);
    for call in calls {
        let answer = cluster.answers.remove(&call).expect("an answer");
        let Answer::Renewed(outcomes) = answer else { panic!("{answer:?}") };
        assert_eq!(outcomes, vec![RenewOutcome::Renewed { ttl_ms: 30_000 }]);
    }
}

/// Q6, F-9: a leader that slept while another one granted the claim.
#[test]
fn a_leader_that_was_replaced_refuses_no_renewal() {
    let mut cluster = Cluster::new(3, 1);
    cluster.settle();
    let old = cluster.leader(0).expect("leader");
    cluster.kill(old);
    cluster.pass(4_000);
    let leader = cluster.leader(0).expect("another leader");
    let grant = granted_unheard(&mut cluster, leader);
    for other in (1..=3).filter(|node| *node != old) {
        cluster.cut.insert((other, old));
    }
    cluster.revive(old);
    let call = cluster.call(old, renew(&grant, "w"));
    cluster.deliver();
    let early = cluster.answers.remove(&call);
    assert!(early.is_none(), "it cannot know: {early:?}");
    cluster.cut.clear();
    cluster.pass(2_000);
    let answer = cluster.answers.remove(&call).expect("an answer");
    let Answer::Renewed(outcomes) = answer else { panic!("{answer:?}") };
    assert_eq!(outcomes, vec![RenewOutcome::Renewed { ttl_ms: 30_000 }]);
}

/// Q6: the caller gave up one call and sent the same claim again, which reached its grant; the first is not given back.
#[test]
fn a_grant_that_a_resend_was_told_of_is_not_given_back() {
    let mut cluster = Cluster::new(3, 1);
    cluster.settle();
    cluster.ask(1, Request::Write(vec![enqueue("t")]));
    let leader = cluster.leader(0).expect("leader");
    let others: Vec<u64> = (1..=3).filter(|node| *node != leader).collect();
    for (first, second) in [(others[0], others[1]), (others[0], others[0]), (leader, others[0])] {
        let key = format!("c-{first}-{second}");
        let gone = cluster.call(first, claim("w", 1, 0, &key));
        cluster.step(first, Input::CallGone(gone));
        let again = cluster.call(second, claim("w", 1, 0, &key));
        cluster.pass(500);
        let grant = grants(cluster.answers.remove(&again).expect("granted")).remove(0);
        let answer = cluster.ask(second, renew(&grant, "w"));
        let Answer::Renewed(outcomes) = answer else { panic!("{answer:?}") };
        assert_eq!(outcomes, vec![RenewOutcome::Renewed { ttl_ms: 30_000 }], "{key}");
        let done = cluster.ask(1, Request::Write(vec![complete(&grant, "w")]));
        assert!(matches!(done, Answer::Written(_)), "{done:?}");
        cluster.ask(1, Request::Write(vec![enqueue(&format!("t-{key}"))]));
    }
}

/// Q6: a leader that was not there when a claim was granted does not know whether its worker has it.
#[test]
fn a_grant_of_an_earlier_leader_is_not_given_back() {
    let mut cluster = Cluster::new(3, 1);
    cluster.settle();
    let old = cluster.leader(0).expect("leader");
    let grant = granted_unheard(&mut cluster, old);
    cluster.kill(old);
    cluster.pass(4_000);
    let leader = cluster.leader(0).expect("another leader");
    let unclaim = Command::Unclaim(Unclaim { id: grant.id.clone(), fence: grant.fence });
    let order = Order { namespace: Namespace::default(), request: None, command: unclaim };
    cluster.ask(leader, Request::Write(vec![order]));
    let answer = cluster.ask(leader, renew(&grant, "w"));
    let Answer::Renewed(outcomes) = answer else { panic!("{answer:?}") };
    assert_eq!(outcomes, vec![RenewOutcome::Renewed { ttl_ms: 30_000 }]);
}

/// TQ-19: what a worker says with a renewal is told by every node, costs no log entry, and goes with the attempt. A new
/// leader hears it with the next renewal.
#[test]
fn tq_19_progress_comes_with_renewals_and_costs_no_log_entry() {
    let mut cluster = Cluster::new(3, 2);
    cluster.settle();
    cluster.ask(1, Request::Write(vec![enqueue("a"), enqueue("b")]));
    let mut held = Vec::new();
    for round in 0..10 {
        held.extend(grants(cluster.ask(2, claim("w", 2, 0, &format!("c{round}")))));
    }
    assert_eq!(held.len(), 2);
    cluster.pass(2_000);
    let told = |cluster: &mut Cluster, node: u64, grant: &Grant| {
        let request = Request::Explain(Namespace::default(), grant.id.clone());
        match cluster.ask(node, request) {
            Answer::Explained(Some(explanation)) => explanation.progress,
            other => panic!("not explained: {other:?}"),
        }
    };
    assert_eq!(told(&mut cluster, 1, &held[0]), None);
    let entries = |cluster: &Cluster| [1, 2, 3].map(|node| cluster.records(node));
    let before = entries(&cluster);
    let worker = WorkerId::parse("w").expect("id");
    let claims: Vec<_> = held.iter().map(|grant| (grant.id.clone(), grant.fence)).collect();
    let renewal = |progress: Vec<(u32, Progress)>| {
        let (namespace, worker, claims) = (Namespace::default(), worker.clone(), claims.clone());
        Request::Renew(Renewal { namespace, worker, session: None, claims, progress })
    };
    // Only the second of the two says something; what it said stays until it says more.
    let half = Progress::new(500, "half");
    cluster.ask(3, renewal(vec![(1, half.clone())]));
    cluster.ask(3, renewal(Vec::new()));
    for node in 1..=3 {
        assert_eq!(told(&mut cluster, node, &held[0]), None);
        assert_eq!(told(&mut cluster, node, &held[1]), Some(half.clone()));
    }
    assert_eq!(entries(&cluster), before, "nothing was written");
    let done = cluster.ask(1, Request::Write(vec![complete(&held[1], "w")]));
    assert!(matches!(done, Answer::Written(_)));
    assert_eq!(told(&mut cluster, 1, &held[1]), None, "it goes with the attempt");
}
