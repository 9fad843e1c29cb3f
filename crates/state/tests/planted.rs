//! Every planted defect shows itself to an invariant, a reply or a comparison of replicas; and with
//! none chosen nothing shows. Runs only with the feature `planted`.
#![cfg(feature = "planted")]

mod common;
use common::*;
use ikada_state::planted::{self, Bug};
use ikada_state::*;

fn with<T>(bug: Bug, work: impl FnOnce() -> T) -> T {
    planted::set(Some(bug));
    let outcome = work();
    planted::set(None);
    outcome
}

/// Applies without the invariants of `World`, which some defects break.
fn apply(shard: &mut Shard, command: Command) -> Reply {
    let mut builder = BatchBuilder::new();
    builder.push(&order(command));
    let index = shard.applied().index + 1;
    let time_ms = shard.time_ms();
    shard.apply(Lsn { term: 1, index }, &builder.finish(time_ms)).replies.remove(0)
}

fn claimed() -> (World, Grant) {
    let mut world = World::new();
    world.add("a");
    let grant = world.take(1).remove(0);
    (world, grant)
}

#[test]
fn fences_can_be_ignored() {
    let (mut world, grant) = claimed();
    let expire = expire(grant.id.clone(), Fence(99));
    let reply = with(Bug::ExpireUnfenced, || world.run(expire));
    assert_eq!(reply, Reply::Expired { next: FailNext::Ready });
    world.take(1);
    let reply = with(Bug::CompleteStaleFence, || world.run(complete(&grant, "w")));
    assert_eq!(reply, Reply::Completed);
}

#[test]
fn a_cancel_can_lose() {
    let (mut world, grant) = claimed();
    world.run(Command::Cancel(Cancel { id: grant.id.clone() }));
    let reply =
        with(Bug::CancelLosesToCompletion, || apply(&mut world.shard, complete(&grant, "w")));
    assert_eq!(reply, Reply::Completed);
    assert!(invariants::accounting(&world.shard).is_err());
}

#[test]
fn snapshots_can_forget() {
    let (mut world, grant) = claimed();
    world.one(requested("r", Command::Enqueue(enqueue("b", "q"))));
    let reload = || Shard::restore(world.shard.freeze().chunks()).unwrap();
    let shard = with(Bug::DedupNotInSnapshot, reload);
    assert_eq!(shard.request(&Namespace::default(), &key("r")), None);
    assert_ne!(shard.hash(), world.shard.hash());
    let mut shard = with(Bug::GrantCounterNotInSnapshot, reload);
    let Reply::Claimed { tasks } = apply(&mut shard, Command::Claim(claim("w", &["q"], 1))) else {
        panic!("not claimed")
    };
    assert!(tasks[0].fence <= grant.fence);
}

#[test]
fn attempts_can_go_uncounted() {
    let mut world = World::new();
    world.add("a");
    with(Bug::AttemptsNotCounted, || {
        apply(&mut world.shard, Command::Claim(claim("w", &["q"], 1)))
    });
    assert!(invariants::attempts_bounded(&world.shard).is_err());
}

#[test]
fn instances_can_differ() {
    let (world, grant) = claimed();
    let (mut one, mut other) = (world.shard.clone(), world.reload().shard);
    let order = Command::Fail(fail(&grant, "w"));
    with(Bug::InstanceCounter, || {
        apply(&mut one, order.clone());
        apply(&mut other, order);
    });
    assert_ne!(one.hash(), other.hash());
}

#[test]
fn retention_can_remove_the_living() {
    let (mut world, grant) = claimed();
    world.add("b");
    let change = QueueChange { retention_count: Some(0), ..QueueChange::default() };
    let set = SetQueue { queue: queue("q"), change, expected_version: None };
    world.run(Command::SetQueue(set));
    with(Bug::RetentionRemovesLive, || apply(&mut world.shard, complete(&grant, "w")));
    assert!(invariants::accounting(&world.shard).is_err());
}

#[test]
fn dead_tasks_can_be_pushed_out() {
    let (mut world, grant) = claimed();
    world.run(Command::KeepDead(KeepDead { shard: 0 }));
    world.run(Command::Fail(Fail { retry: false, ..fail(&grant, "w") }));
    let change = QueueChange { retention_count: Some(0), ..QueueChange::default() };
    let set = SetQueue { queue: queue("q"), change, expected_version: None };
    world.run(Command::SetQueue(set));
    world.add("b");
    let grant = world.take(1).remove(0);
    with(Bug::DeadPushedOut, || apply(&mut world.shard, complete(&grant, "w")));
    let queue = world.shard.queue(&Namespace::default(), &queue("q")).unwrap();
    assert_eq!(queue.dead, 0);
}

#[test]
fn names_can_be_forgotten() {
    let (mut world, grant) = claimed();
    world.run(Command::KeepDead(KeepDead { shard: 0 }));
    let change = QueueChange { retention_count: Some(0), ..QueueChange::default() };
    let set = SetQueue { queue: queue("q"), change, expected_version: None };
    world.run(Command::SetQueue(set));
    with(Bug::GoneForgotten, || apply(&mut world.shard, complete(&grant, "w")));
    let again = Reply::Enqueued { id: task_id("a"), created: true };
    assert_eq!(world.run(Command::Enqueue(enqueue("a", "q"))), again);
}

#[test]
fn messages_can_be_applied_twice() {
    let mut away = World::of(Shard::genesis(1, 2, &[]));
    let deliver = |sequence, version, paused| {
        let settings = QueueSettings { version, paused, ..QueueSettings::default() };
        let (namespace, queue) = (Namespace::default(), queue("q"));
        let message = Message::QueueSettings { namespace, queue, settings };
        Command::Deliver(Deliver { source: 0, sequence, message })
    };
    away.run(deliver(1, 1, true));
    away.run(deliver(2, 2, false));
    with(Bug::OutboxAppliedTwice, || away.run(deliver(1, 1, true)));
    assert!(away.shard.queue(&Namespace::default(), &queue("q")).unwrap().settings.paused);
}

#[test]
fn a_paused_queue_can_drop_tasks() {
    let mut world = World::new();
    let change = QueueChange { paused: Some(true), ..QueueChange::default() };
    let set = SetQueue { queue: queue("q"), change, expected_version: None };
    world.run(Command::SetQueue(set));
    with(Bug::PausedEnqueueDropped, || world.add("a"));
    assert!(world.shard.task(&Namespace::default(), &task_id("a")).is_none());
}

#[test]
fn operations_can_go_wrong() {
    let (mut world, grant) = claimed();
    world.run(Command::Void(Void { shard: 0, request: key("r").id }));
    let reload = || Shard::restore(world.shard.freeze().chunks()).unwrap();
    let shard = with(Bug::VoidNotInSnapshot, reload);
    assert_eq!(shard.voided_ms(&Namespace::default(), &key("r").id), None);
    let (action, from) = (SweepAction::CancelWaiting, 0);
    let purge = Command::Sweep(Sweep { shard: 0, queue: queue("q"), action, from });
    let reply = with(Bug::PurgeTakesClaimed, || world.run(purge));
    assert_eq!(reply, Reply::Swept { count: 1, next: None });
    assert_eq!(world.state(grant.id.as_str()), TaskState::Cancelled);
    let retry = Command::Retry(Retry { id: grant.id });
    with(Bug::RetryKeepsAttempts, || apply(&mut world.shard, retry));
    assert!(invariants::attempts_bounded(&world.shard).is_err());
}

#[test]
fn a_key_can_lose_its_order() {
    let mut world = World::new();
    world.add("u:a");
    world.add("u:b");
    let grants = with(Bug::KeyOrderLostOnRetry, || {
        let grant = world.take(1).remove(0);
        world.run(Command::Fail(fail(&grant, "w")));
        world.take(1)
    });
    assert_eq!(grants[0].id.as_str(), "u:b");
}

#[test]
fn labels_can_be_ignored() {
    let mut world = World::new();
    world.put(enqueue_with("a", "q", |options| options.labels = labels(&[("gpu", "yes")])));
    assert_eq!(with(Bug::LabelsIgnored, || world.take(1)).len(), 1);
}

#[test]
fn follow_ups_can_be_doubled() {
    let mut world = World::new();
    let next = encode_then(&[enqueue("a:next", "q")]);
    world.put(enqueue_with("a", "q", |options| options.then = Some(next)));
    let grant = world.take(1).remove(0);
    world.run(complete(&grant, "w"));
    with(Bug::ThenDoubledOnResend, || world.run(complete(&grant, "w")));
    assert_eq!(world.shard.sizes().ready, 2);
}

#[test]
fn an_instant_can_be_decided_twice() {
    let mut world = World::new();
    let name = ScheduleName::parse("s").unwrap();
    let spec = ScheduleSpec {
        timing: Timing::Every { every_ms: 1_000, anchor_ms: 0 },
        task: enqueue("s", "q"),
        missed: Missed::All,
        overlap: Overlap::Allow,
        grace_ms: 0,
        paused: false,
    };
    let spec = Some(Box::new(spec));
    let set = SetSchedule { name: name.clone(), spec, paused: None, expected_version: None };
    world.run(Command::SetSchedule(set));
    world.tick(2_000);
    let (instant_ms, after_ms) = (2_000, 1_000);
    let fire = Fire { name, version: 1, instant_ms, run: true, missed: 0, overlapped: 0, after_ms };
    for _ in 0..2 {
        with(Bug::FireNotDeduplicated, || world.run(Command::Fire(fire.clone())));
    }
    assert_eq!(world.shard.sizes().ready, 2);
}

#[test]
fn leases_can_be_passed_on_wrongly() {
    let (name, mark) = (LeaseName::parse("l").unwrap(), LeaseMark::Held(Fence(1)));
    let wish = |who: &str| {
        let holder = HolderName::parse(who).unwrap();
        let (name, task) = (name.clone(), None);
        Command::AcquireLease(AcquireLease { name, holder, ttl_ms: 1_000, wait: true, task })
    };
    let passed = |bug: Bug, mark: LeaseMark| {
        let mut world = World::new();
        ["a", "b", "c"].iter().for_each(|who| drop(world.run(wish(who))));
        let expire = Command::ExpireLease(ExpireLease { name: name.clone(), mark });
        with(bug, || apply(&mut world.shard, expire));
        let lease = world.shard.lease(&(Namespace::default(), name.clone())).unwrap();
        (lease.holding.holder.to_string(), lease.holding.fence)
    };
    assert_eq!(passed(Bug::LeaseLastWaiterFirst, mark).0, "c");
    assert_eq!(passed(Bug::LeaseFenceReused, mark), ("b".to_owned(), Fence(1)));
    assert_eq!(passed(Bug::LeaseExpireUnfenced, LeaseMark::Held(Fence(9))).0, "b");
}
