//! Schedules: instants are decided once, settings are checked, and all of it survives a snapshot (Q12).

mod common;
use common::*;
use ikada_state::*;

fn name(text: &str) -> ScheduleName {
    ScheduleName::parse(text).unwrap()
}

fn spec(template: &str) -> ScheduleSpec {
    ScheduleSpec {
        timing: Timing::Every { every_ms: 1_000, anchor_ms: 0 },
        task: enqueue(template, "q"),
        missed: Missed::One,
        overlap: Overlap::Allow,
        grace_ms: 60_000,
        paused: false,
    }
}

fn set(schedule: &str, spec: ScheduleSpec) -> Command {
    Command::SetSchedule(SetSchedule {
        name: name(schedule),
        spec: Some(Box::new(spec)),
        paused: None,
        expected_version: None,
    })
}

fn pause(schedule: &str, paused: bool) -> Command {
    Command::SetSchedule(SetSchedule {
        name: name(schedule),
        spec: None,
        paused: Some(paused),
        expected_version: None,
    })
}

fn fire(schedule: &str, version: u64, instant_ms: u64) -> Fire {
    let (name, after_ms) = (name(schedule), instant_ms - 1_000);
    Fire { name, version, instant_ms, run: true, missed: 0, overlapped: 0, after_ms }
}

fn found(world: &World, schedule: &str) -> Schedule {
    let key = (Namespace::default(), name(schedule));
    (**world.shard.schedule(&key).unwrap()).clone()
}

// Q12
#[test]
fn an_instant_is_decided_once_also_after_a_restore() {
    let mut world = World::new();
    assert_eq!(world.run(set("s", spec("s"))), Reply::ScheduleSet { version: 1 });
    let begun_ms = world.now_ms;
    let early = world.run(Command::Fire(fire("s", 1, begun_ms + 1_000)));
    assert_eq!(early, refused(RefusalCode::BadValue), "not before its time");
    world.tick(2_500);
    let first = fire("s", 1, begun_ms + 1_000);
    assert_eq!(world.run(Command::Fire(first.clone())), Reply::Fired { fresh: true });
    assert_eq!(world.run(Command::Fire(first.clone())), Reply::Fired { fresh: false });
    let mut world = world.reload();
    assert_eq!(world.run(Command::Fire(first)), Reply::Fired { fresh: false });
    let second = fire("s", 1, begun_ms + 2_000);
    assert_eq!(world.run(Command::Fire(second)), Reply::Fired { fresh: true });
    assert_eq!(world.shard.sizes().ready, 2);
    assert_eq!(world.state("s.19700101T000002Z"), TaskState::Ready);
    let schedule = found(&world, "s");
    assert_eq!((schedule.fired, schedule.cursor_ms), (2, begun_ms + 2_000));
    assert_eq!(schedule.last.unwrap().id, task_id("s.19700101T000003Z"));
}

// Q12: counts made from an older cursor would count an instant twice, or not at all.
#[test]
fn a_decision_made_from_an_older_cursor_is_refused() {
    let mut world = World::new();
    world.run(set("s", spec("s")));
    world.tick(5_000);
    assert_eq!(world.run(Command::Fire(fire("s", 1, 2_000))), Reply::Fired { fresh: true });
    let late = Fire { missed: 2, run: false, after_ms: 1_000, ..fire("s", 1, 3_000) };
    assert_eq!(world.run(Command::Fire(late)), refused(RefusalCode::VersionConflict));
    let early = fire("s", 1, 4_000);
    assert_eq!(world.run(Command::Fire(early)), refused(RefusalCode::VersionConflict));
    let schedule = found(&world, "s");
    assert_eq!((schedule.cursor_ms, schedule.fired, schedule.missed), (2_000, 1, 0));
}

#[test]
fn an_instant_of_older_settings_or_of_nothing_is_refused() {
    let mut world = World::new();
    world.run(set("s", spec("s")));
    world.run(set("s", spec("s")));
    world.tick(5_000);
    let stale = world.run(Command::Fire(fire("s", 1, 2_000)));
    assert_eq!(stale, refused(RefusalCode::VersionConflict));
    let none = world.run(Command::Fire(fire("t", 1, 2_000)));
    assert_eq!(none, refused(RefusalCode::ScheduleNotFound));
    world.run(pause("s", true));
    let paused = world.run(Command::Fire(fire("s", 3, 2_000)));
    assert_eq!(paused, refused(RefusalCode::BadValue));
    assert_eq!(world.shard.sizes().ready, 0);
}

#[test]
fn new_timings_and_resumed_schedules_count_from_now() {
    let mut world = World::new();
    world.run(set("s", spec("s")));
    let begun = found(&world, "s");
    assert_eq!(begun.spec.timing, Timing::Every { every_ms: 1_000, anchor_ms: world.now_ms });
    world.tick(10_000);
    let mut other = spec("s");
    other.missed = Missed::All;
    world.run(set("s", other.clone()));
    let same = found(&world, "s");
    assert_eq!((same.cursor_ms, &same.spec.timing), (begun.cursor_ms, &begun.spec.timing));
    world.run(pause("s", true));
    assert_eq!(found(&world, "s").cursor_ms, begun.cursor_ms);
    world.run(pause("s", false));
    assert_eq!(found(&world, "s").cursor_ms, world.now_ms);
    world.tick(1_000);
    other.timing = Timing::Every { every_ms: 2_000, anchor_ms: 0 };
    world.run(set("s", other));
    let changed = found(&world, "s");
    assert_eq!((changed.cursor_ms, changed.version, changed.fired), (world.now_ms, 5, 0));
}

#[test]
fn settings_are_checked_versioned_and_remembered() {
    let mut world = World::new();
    let mut bad = vec![spec("other-name"), spec("s"), spec("s"), spec("s"), spec("s"), spec("s")];
    bad[1].timing = Timing::Every { every_ms: 999, anchor_ms: 0 };
    bad[2].timing = Timing::Cron { line: String::new(), zone: "UTC".into() };
    bad[3].grace_ms = u64::MAX;
    bad[4].task.run_at_ms = Some(5);
    bad[5].task.priority = Some(77);
    for spec in bad {
        assert_eq!(world.run(set("s", spec)), refused(RefusalCode::BadValue));
    }
    let mut large = spec("s");
    large.task.payload = vec![0; limits::SCHEDULE_TASK_BYTES_MAX + 1].into();
    assert_eq!(world.run(set("s", large)), refused(RefusalCode::TooLarge));
    let long = "x".repeat(limits::SCHEDULE_NAME_BYTES_MAX + 1);
    assert_eq!(world.run(set(&long, spec(&long))), refused(RefusalCode::TooLarge));
    assert_eq!(world.run(pause("s", true)), refused(RefusalCode::ScheduleNotFound));
    let fresh = SetSchedule {
        name: name("s"),
        spec: Some(Box::new(spec("s"))),
        paused: None,
        expected_version: Some(0),
    };
    let first = world.one(requested("r", Command::SetSchedule(fresh.clone())));
    assert_eq!(first, Reply::ScheduleSet { version: 1 });
    assert_eq!(world.one(requested("r", Command::SetSchedule(fresh.clone()))), first);
    let again = world.run(Command::SetSchedule(fresh));
    assert_eq!(again, refused(RefusalCode::VersionConflict));
    let delete = Command::DeleteSchedule(DeleteSchedule { name: name("s") });
    assert_eq!(world.one(requested("d", delete.clone())), Reply::ScheduleDeleted);
    assert_eq!(world.one(requested("d", delete.clone())), Reply::ScheduleDeleted);
    assert_eq!(world.run(delete), refused(RefusalCode::ScheduleNotFound));
}

// Q13
#[test]
fn schedules_are_bounded() {
    let mut world = World::new();
    let orders: Vec<Order> = (0..=limits::SCHEDULES_MAX)
        .map(|number| format!("s{number}"))
        .map(|name| order(set(&name, spec(&name))))
        .collect();
    let replies = world.give(&orders);
    assert_eq!(replies.last(), Some(&refused(RefusalCode::TooManySchedules)));
    assert_eq!(world.shard.schedule_count(), limits::SCHEDULES_MAX);
}

#[test]
fn the_task_travels_to_its_shard_once() {
    let mut source = World::of(Shard::genesis(0, 8, &[]));
    source.run(set("s", spec("key:s")));
    source.tick(4_000);
    for instant_ms in [2_000, 3_000] {
        source.run(Command::Fire(fire("s", 1, instant_ms)));
    }
    let target = source.shard.outbox_targets().next().expect("the key lives elsewhere");
    let mut there = World::of(Shard::genesis(target, 8, &[]));
    for round in 0..2 {
        for item in source.shard.outbox_pending(target, 0, 10) {
            let (sequence, message) = (item.sequence, item.message);
            let order = Command::Deliver(Deliver { source: 0, sequence, message });
            assert_eq!(there.run(order), Reply::Delivered { fresh: round == 0 });
        }
    }
    let mut there = there.reload();
    let grants = there.take(10);
    let ids: Vec<&str> = grants.iter().map(|grant| grant.id.as_str()).collect();
    assert_eq!(ids, ["key:s.19700101T000002Z"], "one at a time, in order of their key");
    there.run(complete(&grants[0], "w"));
    assert_eq!(there.take(10)[0].id, task_id("key:s.19700101T000003Z"));
}

#[test]
fn a_full_shard_holds_instants_up_and_loses_none() {
    let limits = Limits { pending_tasks_max: 1, ..limits_small() };
    let mut world = World::with(limits);
    world.run(set("s", spec("s")));
    world.tick(9_000);
    world.run(Command::Fire(fire("s", 1, 2_000)));
    let full = world.run(Command::Fire(fire("s", 1, 3_000)));
    assert_eq!(full, refused(RefusalCode::QueueFull));
    assert_eq!(found(&world, "s").cursor_ms, 2_000);
    let grant = world.take(1).remove(0);
    world.run(complete(&grant, "w"));
    assert_eq!(world.run(Command::Fire(fire("s", 1, 3_000))), Reply::Fired { fresh: true });
}

// LS-17, Q13: whatever else shard 0 tells a shard waits behind the task of an instant, so a full shard takes that too.
#[test]
fn ls_17_the_task_of_an_instant_holds_no_message_up() {
    let small = Limits { pending_tasks_max: 1, queues_max: 1, ..limits_small() };
    let mut there = World::of(Shard::genesis_with(1, 8, &[], small));
    let message = |sequence: u64, id: &str, line: &str| {
        let task = Box::new(enqueue(id, line));
        let message = Message::Submit { namespace: Namespace::default(), task };
        Command::Deliver(Deliver { source: 0, sequence, message })
    };
    let gone = |sequence: u64| {
        let (namespace, worker) = (Namespace::default(), worker("w"));
        let message = Message::WorkerGone { namespace, worker, session: SessionId(1) };
        Command::Deliver(Deliver { source: 0, sequence, message })
    };
    there.put(enqueue("a", "q"));
    assert_eq!(there.run(message(1, "s", "other")), refused(RefusalCode::QueueFull));
    assert_eq!(there.run(gone(2)), refused(RefusalCode::OutboxGap), "as older programs do it");
    there.run(Command::KeepDead(KeepDead { shard: 1 }));
    // Beyond the bounds on tasks and on queues.
    assert_eq!(there.run(message(1, "s", "other")), Reply::Delivered { fresh: true });
    assert_eq!(there.run(gone(2)), Reply::Delivered { fresh: true });
    assert_eq!(there.run(Command::Enqueue(enqueue("b", "q"))), refused(RefusalCode::QueueFull));
    let mut there = there.reload();
    assert_eq!(there.state("s"), TaskState::Ready);
    // There is an end to it.
    there.check_every = 1_000;
    let far = limits::FIRED_OVER_MAX;
    for number in 0..far - 1 {
        let reply = there.run(message(3 + number, &format!("s{number}"), "other"));
        assert_eq!(reply, Reply::Delivered { fresh: true }, "{number}");
    }
    assert_eq!(there.run(message(2 + far, "late", "other")), refused(RefusalCode::QueueFull));
}

// LS-17: a shard that schedules filled beyond its bounds still takes completions that make it no fuller, or none would end.
#[test]
fn ls_17_a_shard_filled_by_schedules_still_takes_completions_with_follow_ups() {
    let small = Limits { pending_tasks_max: 1, ..limits_small() };
    let mut there = World::of(Shard::genesis_with(1, 8, &[], small));
    there.run(Command::KeepDead(KeepDead { shard: 1 }));
    let follow = |id: &str| Some(encode_then(&[enqueue(&format!("a:{id}"), "q")]));
    let chain = TaskOptions { then: follow("b"), ..TaskOptions::default() };
    there.put(Enqueue { options: Some(Box::new(chain)), ..enqueue("a", "q") });
    for sequence in 1..=2 {
        let task = Box::new(enqueue(&format!("s{sequence}"), "other"));
        let message = Message::Submit { namespace: Namespace::default(), task };
        let deliver = Command::Deliver(Deliver { source: 0, sequence, message });
        assert_eq!(there.run(deliver), Reply::Delivered { fresh: true });
    }
    let grant = there.take(1).remove(0);
    let two = encode_then(&[enqueue("a:c", "q"), enqueue("a:d", "q")]);
    let Command::Complete(order) = complete(&grant, "w") else { unreachable!() };
    let more = there.run(Command::Complete(Complete { then: Some(two), ..order }));
    assert_eq!(more, refused(RefusalCode::QueueFull), "it would be fuller");
    assert_eq!(there.run(complete(&grant, "w")), Reply::Completed);
    assert_eq!(there.reload().state("a:b"), TaskState::Ready);
}

/// A template may have follow-ups and a program. Those of each instant have names of their own, also under one key, and come
/// with the completion of their parent.
#[test]
fn ls_17_follow_ups_of_a_schedule_come_for_every_instant() {
    for template in ["s", "k:s"] {
        let mut world = World::new();
        let below = |parent: &str, id: &str| enqueue(&format!("{parent}:{id}"), "q");
        let routing = task_id(template).routing_key().to_owned();
        let mut first = below(&routing, "first");
        let last = encode_then(&[below(&routing, "last")]);
        first.options = Some(Box::new(TaskOptions { then: Some(last), ..TaskOptions::default() }));
        let mut given = spec(template);
        let then = Some(encode_then(&[first, below(&routing, "second")]));
        given.task.options = Some(Box::new(TaskOptions { then, ..TaskOptions::default() }));
        let command = set("s", given);
        assert_eq!(command.level(), 1);
        assert_eq!(world.run(command), Reply::ScheduleSet { version: 1 });
        let begun_ms = world.now_ms;
        world.tick(2_500);
        for instant in 1..=2 {
            let fired = world.run(Command::Fire(fire("s", 1, begun_ms + instant * 1_000)));
            assert_eq!(fired, Reply::Fired { fresh: true });
        }
        let mut world = world.reload();
        let mut done = std::collections::BTreeSet::new();
        while let Some(grant) = world.take(1).pop() {
            assert_eq!(world.run(complete(&grant, "w")), Reply::Completed);
            done.insert(grant.id.to_string());
        }
        // Two instants: their tasks, two follow-ups each, and one below.
        assert_eq!(done.len(), 8, "{done:?}");
    }
}
