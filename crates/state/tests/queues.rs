//! Queues, retention, messages between shards, members.

mod common;
use common::*;
use ikada_state::*;

fn set(line: &str, change: QueueChange) -> Command {
    Command::SetQueue(SetQueue { queue: queue(line), change, expected_version: None })
}

fn pause(paused: bool) -> QueueChange {
    QueueChange { paused: Some(paused), ..QueueChange::default() }
}

#[test]
fn a_paused_queue_takes_but_does_not_give() {
    let mut world = World::new();
    assert_eq!(world.run(set("q", pause(true))), Reply::QueueSet { version: 1 });
    world.add("a");
    assert!(!world.effects.iter().any(|effect| matches!(effect, Effect::Ready { .. })));
    assert!(world.take(1).is_empty());
    assert_eq!(world.shard.ready_count(&Namespace::default(), &queue("q")), 1);
    assert!(!world.shard.is_claimable(&Namespace::default(), &queue("q"), &Labels::default()));
    let mut world = world.reload();
    assert_eq!(world.run(set("q", pause(false))), Reply::QueueSet { version: 2 });
    let handle = world.shard.queue_handle(&Namespace::default(), &queue("q")).unwrap();
    assert!(world.effects.contains(&Effect::Ready { queue: handle }));
    assert_eq!(world.take(1).len(), 1);
}

#[test]
fn settings_are_versioned_checked_and_inherited() {
    let mut world = World::new();
    let change = QueueChange {
        max_attempts: Some(1),
        ttl_ms: Some(500),
        backoff: Some(Backoff { base_ms: 0, cap_ms: 0 }),
        ..QueueChange::default()
    };
    world.run(set("q", change));
    world.add("a");
    let grant = world.take(1).remove(0);
    assert_eq!((grant.max_attempts, grant.ttl_ms), (1, 500));
    let bad = QueueChange { max_attempts: Some(0), ..QueueChange::default() };
    assert_eq!(world.run(set("q", bad)), refused(RefusalCode::BadValue));
    let stale = SetQueue { queue: queue("q"), change: pause(true), expected_version: Some(7) };
    assert_eq!(world.run(Command::SetQueue(stale)), refused(RefusalCode::VersionConflict));
    let first = world.one(requested("s", set("q", pause(true))));
    assert_eq!(world.one(requested("s", set("q", pause(true)))), first);
    let view = world.shard.queue(&Namespace::default(), &queue("q")).unwrap();
    assert_eq!((view.settings.version, view.claimed), (2, 1));
}

// Q13
#[test]
fn bounds_refuse_and_never_drop() {
    let limits = Limits { queues_max: 2, pending_bytes_max: 40, ..limits_small() };
    let mut world = World::with(limits);
    world.run(set("q", QueueChange { pending_max: Some(1), ..QueueChange::default() }));
    world.add("a");
    let full = refused(RefusalCode::QueueFull);
    assert_eq!(world.run(Command::Enqueue(enqueue("b", "q"))), full);
    world.run(Command::Enqueue(enqueue("c", "p")));
    let reply = world.run(Command::Enqueue(enqueue("d", "r")));
    assert_eq!(reply, refused(RefusalCode::TooManyQueues));
    let large = Enqueue { payload: vec![0; 39].into(), ..enqueue("e", "p") };
    assert_eq!(world.run(Command::Enqueue(large)), full);
    assert_eq!(world.shard.sizes().ready, 2);
}

// TQ-25: by count, then by age, then by the shard's own bounds; counters stay.
#[test]
fn tq_25_finished_tasks_are_removed_by_count_and_age() {
    let mut world = World::with(limits_small());
    let change = QueueChange {
        retention_count: Some(5),
        retention_ms: Some(1_000),
        ..QueueChange::default()
    };
    world.run(set("q", change));
    for number in 0..8 {
        world.add(&format!("t{number}"));
        let grant = world.take(1).remove(0);
        world.run(complete(&grant, "w"));
    }
    let counters =
        |world: &World| world.shard.queue(&Namespace::default(), &queue("q")).unwrap().counters;
    assert_eq!((counters(&world).done, counters(&world).removed), (8, 3));
    assert!(world.shard.task(&Namespace::default(), &task_id("t2")).is_none());
    let mut world = world.reload();
    world.tick(1_000);
    assert_eq!(counters(&world).removed, 7, "at most four per entry");
    world.tick(0);
    assert_eq!((counters(&world).removed, world.shard.sizes().finished), (8, 0));
    // A lowered count is caught up with.
    for number in 0..5 {
        world.add(&format!("u{number}"));
        let grant = world.take(1).remove(0);
        world.run(complete(&grant, "w"));
    }
    world.run(set("q", QueueChange { retention_count: Some(0), ..QueueChange::default() }));
    world.tick(0);
    world.tick(0);
    assert_eq!(world.shard.sizes().finished, 0);
}

#[test]
fn the_shard_bounds_all_finished_tasks() {
    let limits = Limits { finished_bytes_max: 100, finished_tasks_max: 5, ..limits_small() };
    let mut world = World::with(limits);
    for number in 0..20 {
        world.run(Command::Enqueue(enqueue(&format!("t{number}"), &format!("q{}", number % 4))));
        world.run(Command::Cancel(Cancel { id: task_id(&format!("t{number}")) }));
    }
    assert_eq!(world.shard.sizes().finished, 5);
    world.run(Command::Enqueue(Enqueue { payload: vec![0; 99].into(), ..enqueue("x", "q0") }));
    world.run(Command::Cancel(Cancel { id: task_id("x") }));
    assert_eq!(world.shard.sizes().finished, 1);
}

/// A line held up by a task for a full shard must let the order through that makes room there.
#[test]
fn settings_overtake_what_cannot_be_taken_yet() {
    let limits = Limits { pending_tasks_max: 1, ..limits_small() };
    let mut away = World::of(Shard::genesis_with(1, 2, &[], limits));
    let message = |paused, version| Message::QueueSettings {
        namespace: Namespace::default(),
        queue: queue("q"),
        settings: QueueSettings { paused, version, ..QueueSettings::default() },
    };
    let deliver = |sequence, message| Command::Deliver(Deliver { source: 0, sequence, message });
    let submit = |id| {
        let (namespace, task) = (Namespace::default(), Box::new(enqueue(id, "q")));
        Message::Submit { namespace, task }
    };
    away.run(deliver(1, message(true, 1)));
    assert_eq!(away.run(deliver(2, submit("a"))), Reply::Delivered { fresh: true });
    assert_eq!(away.run(deliver(3, submit("b"))), refused(RefusalCode::QueueFull));
    let settings =
        |world: &World| world.shard.queue(&Namespace::default(), &queue("q")).unwrap().settings;
    assert_eq!(away.run(deliver(5, message(false, 3))), refused(RefusalCode::OutboxGap));
    assert!(!settings(&away).paused, "resumed although it is not its turn");
    assert_eq!(away.shard.inbox_applied(0), 2, "and its turn is still to come");
    assert_eq!(away.run(deliver(4, submit("c"))), refused(RefusalCode::OutboxGap));
    let mut away = away.reload();
    away.run(Command::Cancel(Cancel { id: task_id("a") }));
    assert_eq!(away.run(deliver(3, submit("b"))), Reply::Delivered { fresh: true });
    assert_eq!(away.run(deliver(4, message(true, 2))), Reply::Delivered { fresh: true });
    assert_eq!(away.run(deliver(5, message(false, 3))), Reply::Delivered { fresh: true });
    assert!(!settings(&away).paused, "what is older changes nothing");
}

#[test]
fn settings_reach_the_other_shards_once_and_in_order() {
    let mut home = World::of(Shard::genesis(0, 3, &[]));
    let mut away = World::of(Shard::genesis(2, 3, &[]));
    assert_eq!(away.run(set("q", pause(true))), refused(RefusalCode::WrongShard));
    home.run(set("q", pause(true)));
    assert!(home.effects.contains(&Effect::OutboxPut { target: 2, sequence: 1 }));
    home.run(set("q", pause(false)));
    let mut home = home.reload();
    assert!(home.shard.outbox_targets().eq([1, 2]));
    assert!(!home.shard.queue_settled(&Namespace::default(), &queue("q")));
    let items = home.shard.outbox_pending(2, 0, 10);
    assert_eq!(items.len(), 2);
    let deliver = |item: &OutboxItem| {
        let (sequence, message) = (item.sequence, item.message.clone());
        Command::Deliver(Deliver { source: 0, sequence, message })
    };
    assert_eq!(away.run(deliver(&items[0])), Reply::Delivered { fresh: true });
    let mut away = away.reload();
    assert_eq!(away.run(deliver(&items[0])), Reply::Delivered { fresh: false });
    let settings =
        |world: &World| world.shard.queue(&Namespace::default(), &queue("q")).unwrap().settings;
    assert!(settings(&away).paused);
    assert_eq!(away.run(deliver(&items[1])), Reply::Delivered { fresh: true });
    assert_eq!(settings(&away), settings(&home));
    assert_eq!(away.shard.inbox_applied(0), 2);
    for target in [1, 2] {
        assert_eq!(home.run(Command::Acked(Acked { target, sequence: 2 })), Reply::Acked);
    }
    assert!(home.shard.queue_settled(&Namespace::default(), &queue("q")));
    assert_eq!(home.reload().shard.sizes().outbox, 0);
    home.run(set("q", pause(true)));
    assert_eq!(home.shard.outbox_pending(1, 0, 9)[0].sequence, 3);
}

#[test]
fn members_and_slot_map_live_in_shard_zero() {
    let member = |node: u64| Member {
        node,
        incarnation: 1,
        peer_addr: format!("10.0.0.{node}:1"),
        client_addr: format!("10.0.0.{node}:2"),
    };
    let mut home = World::of(Shard::genesis(0, 2, &[member(2), member(1)]));
    assert_eq!(home.shard.members()[0].node, 1);
    assert_eq!(home.shard.slot_map().unwrap().shard(1), 1);
    let order = |members| Command::SetMembers(SetMembers { members });
    assert_eq!(home.run(order(vec![member(3), member(1)])), Reply::MembersSet);
    assert_eq!(home.effects, [Effect::MembersChanged]);
    assert_eq!(home.run(order(vec![member(1), member(3)])), Reply::MembersSet);
    assert!(home.effects.is_empty());
    let twice = order(vec![member(1), member(1)]);
    assert_eq!(home.run(twice), refused(RefusalCode::BadValue));
    assert_eq!(home.reload().shard.members().len(), 2);
    let mut away = World::of(Shard::genesis(1, 2, &[member(1)]));
    assert!(away.shard.slot_map().is_none() && away.shard.members().is_empty());
    assert_eq!(away.run(order(vec![member(1)])), refused(RefusalCode::WrongShard));
}
