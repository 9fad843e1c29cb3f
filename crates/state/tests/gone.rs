//! A task that is no longer there does not run again: its name and body are remembered (TQ-22).

mod common;
use common::*;
use ikada_state::*;

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// A shard that remembers, with a queue that keeps no finished task.
fn world() -> World {
    let mut world = World::new();
    assert_eq!(world.run(Command::KeepDead(KeepDead { shard: 0 })), Reply::DeadKept);
    keep(&mut world, 0);
    world
}

fn keep(world: &mut World, count: u32) {
    let change = QueueChange { retention_count: Some(count), ..QueueChange::default() };
    world.run(Command::SetQueue(SetQueue { queue: queue("q"), change, expected_version: None }));
}

fn finish(world: &mut World, id: &str) -> Grant {
    world.put(enqueue(id, "q"));
    let grant = world.take(1).remove(0);
    assert_eq!(world.run(complete(&grant, "w")), Reply::Completed);
    grant
}

fn known(id: &str) -> Reply {
    Reply::Enqueued { id: task_id(id), created: false }
}

fn created(id: &str) -> Reply {
    Reply::Enqueued { id: task_id(id), created: true }
}

fn exists(world: &World, id: &str) -> bool {
    world.shard.task(&Namespace::default(), &task_id(id)).is_some()
}

// TQ-22: under another request id, under none, after a restore; another body is refused.
#[test]
fn tq_22_a_task_that_retention_removed_does_not_run_again() {
    let mut world = world();
    for id in ["plain", "key:id"] {
        finish(&mut world, id);
        assert!(!exists(&world, id), "removed at once");
        let mut world = world.reload();
        assert_eq!(world.run(Command::Enqueue(enqueue(id, "q"))), known(id));
        assert_eq!(world.one(requested("r", Command::Enqueue(enqueue(id, "q")))), known(id));
        assert!(world.take(9).is_empty(), "{id} does not run again");
        let other = Enqueue { priority: Some(1), ..enqueue(id, "q") };
        assert_eq!(world.run(Command::Enqueue(other)), refused(RefusalCode::Conflict));
    }
    assert_eq!(world.run(Command::Enqueue(enqueue("new", "q"))), created("new"));
    let foreign = Order {
        namespace: Namespace::parse("other").unwrap(),
        ..order(Command::Enqueue(enqueue("plain", "q")))
    };
    assert_eq!(world.one(foreign), created("plain"), "another namespace's is another task");
}

// TQ-22: however a task ended, and whichever rule removed it.
#[test]
fn tq_22_whatever_removed_a_task_its_name_stays_known() {
    let mut world = world();
    world.put(enqueue("cancelled", "q"));
    world.run(Command::Cancel(Cancel { id: task_id("cancelled") }));
    keep(&mut world, 100);
    world.put(enqueue_with("own", "q", |options| options.retention_ms = Some(100)));
    let grant = world.take(1).remove(0);
    world.run(complete(&grant, "w"));
    world.tick(100);
    for id in ["cancelled", "own"] {
        assert!(!exists(&world, id), "{id}");
    }
    assert_eq!(world.run(Command::Enqueue(enqueue("cancelled", "q"))), known("cancelled"));
    let own = enqueue_with("own", "q", |options| options.retention_ms = Some(100));
    assert_eq!(world.run(Command::Enqueue(own)), known("own"));
    // The shard's own bound.
    let mut world = World::with(Limits { finished_tasks_max: 2, ..limits_small() });
    world.run(Command::KeepDead(KeepDead { shard: 0 }));
    for id in ["a", "b", "c"] {
        finish(&mut world, id);
    }
    assert!(!exists(&world, "a"));
    assert_eq!(world.run(Command::Enqueue(enqueue("a", "q"))), known("a"));
}

// TQ-22: the window is stated: a day of log time from the removal, or as many entries as it has room for.
#[test]
fn tq_22_names_are_forgotten_with_the_window() {
    let mut world = world();
    finish(&mut world, "a");
    world.tick(DAY_MS - 1);
    assert_eq!(world.run(Command::Enqueue(enqueue("a", "q"))), known("a"));
    world.tick(2);
    assert_eq!(world.run(Command::Enqueue(enqueue("a", "q"))), created("a"));
    // What was submitted longer ago is not remembered when it goes.
    world.tick(DAY_MS);
    let grant = world.take(1).remove(0);
    world.run(complete(&grant, "w"));
    assert_eq!(world.shard.sizes().submits, 0);
    assert_eq!(world.run(Command::Enqueue(enqueue("a", "q"))), created("a"));

    let mut world = World::with(Limits { submit_window_max: 2, ..limits_small() });
    world.run(Command::KeepDead(KeepDead { shard: 0 }));
    keep(&mut world, 0);
    for id in ["a", "b", "c"] {
        finish(&mut world, id);
    }
    assert_eq!(world.run(Command::Enqueue(enqueue("c", "q"))), known("c"));
    assert_eq!(world.run(Command::Enqueue(enqueue("a", "q"))), created("a"));
}

// TQ-22: a drop makes room, and frees no name.
#[test]
fn tq_22_a_dropped_task_does_not_run_again() {
    let mut world = world();
    keep(&mut world, 9);
    finish(&mut world, "a");
    assert_eq!(world.run(Command::Drop(DropTask { id: task_id("a") })), Reply::Dropped);
    assert_eq!(world.run(Command::Enqueue(enqueue("a", "q"))), known("a"));
    finish(&mut world, "b");
    let action = SweepAction::DropFinished;
    let sweep = Sweep { shard: 0, queue: queue("q"), action, from: 0 };
    assert!(matches!(world.run(Command::Sweep(sweep)), Reply::Swept { count: 1, .. }));
    assert_eq!(world.run(Command::Enqueue(enqueue("b", "q"))), known("b"));
    assert!(world.take(9).is_empty());
}

/// Tasks without an id of their own cost no second entry: their requests are remembered.
#[test]
fn derived_names_are_known_by_their_requests() {
    let mut world = world();
    let request = key("r");
    let id = derive_task_id(&Namespace::default(), &request);
    let task = || Command::Enqueue(Enqueue::new(id.clone(), queue("q"), Vec::new()));
    let first = world.one(requested("r", task()));
    let grant = world.take(1).remove(0);
    world.run(complete(&grant, "w"));
    assert!(!exists(&world, id.as_str()));
    assert_eq!(world.shard.sizes().submits, 1);
    assert_eq!(world.one(requested("r", task())), first);
    assert!(world.take(9).is_empty());
}

/// Until the order comes that begins it, everything is as older programs do it.
#[test]
fn names_are_remembered_from_an_order_on() {
    let mut world = World::new();
    keep(&mut world, 0);
    finish(&mut world, "a");
    assert_eq!(world.shard.sizes().submits, 0);
    assert_eq!(world.run(Command::Enqueue(enqueue("a", "q"))), created("a"));
}

// TQ-6, TQ-21: a report that was taken is taken when it is sent again, also after a restore; nobody else's is.
#[test]
fn tq_21_a_report_sent_again_after_its_task_went_is_answered_as_the_first_time() {
    let mut world = world();
    let request = key("r");
    let derived = derive_task_id(&Namespace::default(), &request);
    for id in ["plain", "key:id", derived.as_str()] {
        let grant = finish(&mut world, id);
        assert!(!exists(&world, id), "removed at once");
        let submitted = world.shard.sizes().submits;
        let mut world = world.reload();
        assert_eq!(world.run(complete(&grant, "w")), Reply::Completed, "{id}");
        assert_eq!(world.run(complete(&grant, "w")), Reply::Completed, "{id}");
        assert_eq!(world.run(complete(&grant, "x")), refused(RefusalCode::TaskNotFound));
        let other = Grant { fence: Fence(grant.fence.0 + 1), ..grant.clone() };
        assert_eq!(world.run(complete(&other, "w")), refused(RefusalCode::TaskNotFound));
        let foreign =
            Order { namespace: Namespace::parse("other").unwrap(), ..order(complete(&grant, "w")) };
        assert_eq!(world.one(foreign), refused(RefusalCode::TaskNotFound));
        assert_eq!(world.shard.sizes().submits, submitted, "no submission is pushed out for it");
    }
    // A drop is a removal like any other.
    keep(&mut world, 9);
    let grant = finish(&mut world, "dropped");
    world.run(Command::Drop(DropTask { id: task_id("dropped") }));
    assert_eq!(world.run(complete(&grant, "w")), Reply::Completed);
    // What did not end by a report is not known by one.
    world.put(enqueue("cancelled", "q"));
    let grant = world.take(1).remove(0);
    world.run(Command::Cancel(Cancel { id: task_id("cancelled") }));
    world.run(Command::Drop(DropTask { id: task_id("cancelled") }));
    assert_eq!(world.run(complete(&grant, "w")), refused(RefusalCode::TaskNotFound));
}

// TQ-21, Q13: a day of log time, or as many reports as there is room for.
#[test]
fn tq_21_reports_about_removed_tasks_are_forgotten_with_their_window() {
    let mut world = world();
    let grant = finish(&mut world, "a");
    world.tick(DAY_MS - 1);
    assert_eq!(world.run(complete(&grant, "w")), Reply::Completed);
    world.tick(2);
    assert_eq!(world.run(complete(&grant, "w")), refused(RefusalCode::TaskNotFound));
    assert_eq!(world.shard.sizes().settled, 0);

    let mut world = World::with(Limits { claim_window_max: 2, ..limits_small() });
    world.run(Command::KeepDead(KeepDead { shard: 0 }));
    keep(&mut world, 0);
    let grants: Vec<Grant> = ["a", "b", "c"].iter().map(|id| finish(&mut world, id)).collect();
    assert_eq!(world.run(complete(&grants[2], "w")), Reply::Completed);
    assert_eq!(world.run(complete(&grants[0], "w")), refused(RefusalCode::TaskNotFound));
}

/// The same for reports: nodes of two versions must answer alike.
#[test]
fn reports_are_remembered_from_an_order_on() {
    let mut world = World::new();
    keep(&mut world, 0);
    let grant = finish(&mut world, "a");
    assert_eq!(world.shard.sizes().settled, 0);
    assert_eq!(world.run(complete(&grant, "w")), refused(RefusalCode::TaskNotFound));
}
