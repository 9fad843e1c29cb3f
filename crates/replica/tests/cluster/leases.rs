//! Leases over three replicas: one holder, waiters woken in turn through any node, leaders that die, growth that carries
//! them along, and no entry for whoever only renews or waits.

use ikada_replica::call::{
    Answer, Consistency, LeaseCall, LeaseWatch, Outcome, Query, RenewOutcome, Request, Routing,
    View,
};
use ikada_replica::state::{
    AcquireLease, Command, Fence, HolderName, LeaseKey, LeaseName, Namespace, Order, RefusalCode,
    ReleaseLease, Reply, RequestId, RequestKey,
};

use crate::harness::Cluster;

const TTL_MS: u32 = 3_000;

fn key(name: &str) -> LeaseKey {
    (Namespace::default(), LeaseName::parse(name).expect("name"))
}

fn holder(name: &str) -> HolderName {
    HolderName::parse(name).expect("holder")
}

fn acquire(name: &str, who: &str, wait_ms: u64) -> Request {
    let (namespace, name) = key(name);
    let (holder, wait) = (holder(who), wait_ms > 0);
    let wish = AcquireLease { name, holder, ttl_ms: TTL_MS, wait, task: None };
    Request::Lease(LeaseCall { namespace, wish, wait_ms })
}

fn renew(name: &str, who: &str, fence: Fence) -> Request {
    Request::RenewLease { key: key(name), holder: holder(who), fence }
}

fn release(name: &str, who: &str) -> Request {
    let (namespace, name) = key(name);
    let release = ReleaseLease { name, holder: holder(who), fence: None };
    let command = Command::ReleaseLease(release);
    Request::Write(vec![Order { namespace, request: None, command }])
}

fn reply(answer: Answer) -> Reply {
    let Answer::Written(mut outcomes) = answer else { panic!("not written: {answer:?}") };
    match outcomes.remove(0) {
        Outcome::Reply { reply, .. } => reply,
        other => panic!("not decided: {other:?}"),
    }
}

fn fence(answer: Answer) -> Fence {
    match reply(answer) {
        Reply::LeaseGranted { fence, .. } => fence,
        other => panic!("not granted: {other:?}"),
    }
}

fn renewed(answer: Answer) -> RenewOutcome {
    match answer {
        Answer::Renewed(mut outcomes) => outcomes.remove(0),
        other => panic!("not renewed: {other:?}"),
    }
}

fn who_holds(cluster: &mut Cluster, node: u64, name: &str) -> Option<String> {
    let read = Request::Read(Query::Lease(key(name)), Consistency::Linearizable);
    match cluster.ask(node, read) {
        Answer::View { view: View::Lease(lease), .. } => {
            lease.map(|lease| lease.holding.holder.to_string())
        }
        other => panic!("not a lease: {other:?}"),
    }
}

#[test]
fn ls_waiters_are_served_in_order_through_any_node_and_at_once() {
    let mut cluster = Cluster::new(3, 2);
    cluster.settle();
    // What a new cluster tells its shards once is written by then.
    cluster.pass(2_500);
    let first = fence(cluster.ask(1, acquire("l", "a", 0)));
    let refused = reply(cluster.ask(2, acquire("l", "b", 0)));
    assert_eq!(refused, Reply::refused(RefusalCode::LeaseHeld));
    let second = cluster.call_with(2, acquire("l", "b", 60_000), Routing::Forward, 60_000);
    cluster.pass(100);
    let third = cluster.call_with(3, acquire("l", "c", 60_000), Routing::Forward, 60_000);
    cluster.pass(100);
    // Both wait for longer than their ttl: the nodes prove their life, and write nothing.
    let before: Vec<u64> = (1..=3).map(|node| cluster.records(node)).collect();
    for _ in 0..6 {
        cluster.pass(1_000);
        let outcome = renewed(cluster.ask(3, renew("l", "a", first)));
        assert_eq!(outcome, RenewOutcome::Renewed { ttl_ms: u64::from(TTL_MS) });
    }
    let after: Vec<u64> = (1..=3).map(|node| cluster.records(node)).collect();
    assert_eq!(before, after, "renewals and waits write nothing");
    assert!(cluster.answers.is_empty());
    assert_eq!(reply(cluster.ask(1, release("l", "a"))), Reply::LeaseReleased);
    // As soon as its node has heard of it, long before it would ask again.
    cluster.pass(10);
    let next = fence(cluster.answers.remove(&second).expect("woken at once"));
    assert!(next > first && !cluster.answers.contains_key(&third), "only the first in line");
    assert_eq!(reply(cluster.ask(2, release("l", "b"))), Reply::LeaseReleased);
    cluster.pass(100);
    assert!(fence(cluster.answers.remove(&third).expect("woken")) > next);
}

#[test]
fn ls_a_silent_holder_is_followed_after_its_ttl_and_not_before() {
    let mut cluster = Cluster::new(3, 1);
    cluster.settle();
    let first = fence(cluster.ask(1, acquire("l", "a", 0)));
    let waits = cluster.call_with(2, acquire("l", "b", 60_000), Routing::Forward, 60_000);
    cluster.pass(u64::from(TTL_MS) - 100);
    assert!(!cluster.answers.contains_key(&waits));
    cluster.pass(300);
    assert!(fence(cluster.answers.remove(&waits).expect("the turn has come")) > first);
    let late = renewed(cluster.ask(1, renew("l", "a", first)));
    assert_eq!(late, RenewOutcome::Refused(RefusalCode::StaleFence));
}

#[test]
fn ls_a_new_leader_gives_the_holder_a_whole_ttl() {
    let mut cluster = Cluster::new(3, 1);
    cluster.settle();
    let leader = cluster.leader(0).expect("leader");
    let node = (1..=3).find(|node| *node != leader).expect("another");
    let held = fence(cluster.ask(node, acquire("l", "a", 0)));
    let waits = cluster.call_with(node, acquire("l", "b", 60_000), Routing::Forward, 60_000);
    cluster.pass(u64::from(TTL_MS) - 500);
    cluster.kill(leader);
    cluster.pass(2_000);
    let outcome = renewed(cluster.ask(node, renew("l", "a", held)));
    assert_eq!(outcome, RenewOutcome::Renewed { ttl_ms: u64::from(TTL_MS) });
    assert!(!cluster.answers.contains_key(&waits));
    cluster.pass(u64::from(TTL_MS) + 300);
    assert!(fence(cluster.answers.remove(&waits).expect("the place outlived its leader")) > held);
}

#[test]
fn ls_one_who_stops_waiting_loses_the_place() {
    let mut cluster = Cluster::new(3, 1);
    cluster.settle();
    let first = fence(cluster.ask(1, acquire("l", "a", 0)));
    assert_eq!(reply(cluster.ask(1, acquire("l", "b", 1))), Reply::LeaseWaiting { ahead: 0 });
    for _ in 0..4 {
        cluster.pass(1_000);
        renewed(cluster.ask(3, renew("l", "a", first)));
    }
    assert_eq!(reply(cluster.ask(2, acquire("l", "c", 1))), Reply::LeaseWaiting { ahead: 0 });
}

#[test]
fn ls_a_watch_ends_with_news_and_with_its_time() {
    let mut cluster = Cluster::new(3, 1);
    cluster.settle();
    let watch = |seen| Request::WatchLease(LeaseWatch { key: key("l"), seen, wait_ms: 2_000 });
    let news = cluster.call(2, watch(None));
    cluster.pass(100);
    assert!(!cluster.answers.contains_key(&news));
    let held = fence(cluster.ask(1, acquire("l", "a", 0)));
    cluster.pass(200);
    assert!(cluster.answers.remove(&news).is_some(), "a new holder is news");
    let nothing = cluster.call(2, watch(Some(held)));
    cluster.pass(1_900);
    assert!(!cluster.answers.contains_key(&nothing));
    cluster.pass(200);
    assert!(cluster.answers.remove(&nothing).is_some());
}

#[test]
fn ls_growth_carries_leases_along() {
    let mut cluster = Cluster::new(3, 1);
    cluster.settle();
    let names: Vec<String> = (0..24).map(|number| format!("l{number}")).collect();
    let fences: Vec<Fence> =
        names.iter().map(|name| fence(cluster.ask(1, acquire(name, "a", 0)))).collect();
    let waits: Vec<u64> = names
        .iter()
        .map(|name| cluster.call_with(2, acquire(name, "b", 60_000), Routing::Forward, 60_000))
        .collect();
    let request = RequestKey { id: RequestId::parse("g").expect("id"), item: 0 };
    cluster.ask(1, Request::Grow { shards: 4, request: Some(request) });
    for _ in 0..40 {
        cluster.pass(700);
        for (name, held) in names.iter().zip(&fences) {
            let outcome = renewed(cluster.ask(3, renew(name, "a", *held)));
            assert!(matches!(outcome, RenewOutcome::Renewed { .. }), "{name}: {outcome:?}");
        }
    }
    let moved = (1..4).map(|shard| cluster.nodes[&1].shard(shard).expect("shard").sizes().leases);
    assert!(moved.sum::<u64>() > 4, "some leases have moved");
    for ((name, held), call) in names.iter().zip(&fences).zip(&waits) {
        assert_eq!(reply(cluster.ask(1, release(name, "a"))), Reply::LeaseReleased);
        cluster.pass(50);
        let next = cluster.answers.remove(call).expect("the place moved along");
        assert!(fence(next) > *held, "{name}");
        assert_eq!(who_holds(&mut cluster, 3, name).as_deref(), Some("b"));
    }
}
