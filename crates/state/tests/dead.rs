//! Dead letters: a line of their own, a bound at which submissions are refused, and an order that begins all that.
#![allow(missing_docs)]

mod common;

use common::*;
use ikada_state::*;

fn set(change: QueueChange) -> Command {
    Command::SetQueue(SetQueue { queue: queue("q"), change, expected_version: None })
}

fn keep_dead() -> Command {
    Command::KeepDead(KeepDead { shard: 0 })
}

fn view(world: &World) -> QueueView {
    world.shard.queue(&Namespace::default(), &queue("q")).unwrap()
}

fn exists(world: &World, id: &str) -> bool {
    world.shard.task(&Namespace::default(), &task_id(id)).is_some()
}

fn kill(world: &mut World, id: &str) {
    world.add(id);
    let grant = world.take(1).remove(0);
    let failed = world.run(Command::Fail(Fail { retry: false, ..fail(&grant, "w") }));
    assert_eq!(failed, Reply::Failed { next: FailNext::Dead });
}

fn finish(world: &mut World, id: &str) {
    world.add(id);
    let grant = world.take(1).remove(0);
    assert_eq!(world.run(complete(&grant, "w")), Reply::Completed);
}

/// Neither the queue's count, nor its age for done tasks, nor the shard's bound takes a dead task while another is there.
#[test]
fn tq_25_dead_tasks_are_never_pushed_out_by_done_ones() {
    let mut world = World::with(Limits { finished_tasks_max: 8, ..limits_small() });
    assert_eq!(world.run(keep_dead()), Reply::DeadKept);
    let change = QueueChange {
        retention_count: Some(2),
        retention_ms: Some(500),
        dead_retention_ms: Some(10_000),
        ..QueueChange::default()
    };
    world.run(set(change));
    for number in 0..3 {
        kill(&mut world, &format!("d{number}"));
    }
    for number in 0..20 {
        finish(&mut world, &format!("t{number}"));
    }
    assert_eq!((view(&world).dead, view(&world).finished), (3, 5));
    world.tick(500);
    assert_eq!((view(&world).dead, view(&world).finished), (3, 3), "done tasks have their own age");
    let mut world = world.reload();
    // The shard's own bound: done tasks go first, however new.
    let change = QueueChange { retention_count: Some(100), ..QueueChange::default() };
    world.run(set(change));
    for number in 0..20 {
        finish(&mut world, &format!("u{number}"));
    }
    assert_eq!((view(&world).dead, view(&world).finished), (3, 8));
    world.tick(10_000);
    world.tick(0);
    world.tick(0);
    assert_eq!(view(&world).dead, 0, "their own age");
    assert_eq!((view(&world).counters.dead, view(&world).counters.dead_dropped), (3, None));
}

/// Q13: at the bound the queue refuses new tasks by name, takes back what is retried, and goes on once there is room.
#[test]
fn q13_a_queue_full_of_dead_tasks_refuses_new_ones() {
    let mut world = World::with(limits_small());
    world.run(keep_dead());
    world.run(set(QueueChange { dead_max: Some(2), ..QueueChange::default() }));
    kill(&mut world, "d0");
    kill(&mut world, "d1");
    let full = refused(RefusalCode::DeadFull);
    assert_eq!(world.one(requested("r", Command::Enqueue(enqueue("a", "q")))), full);
    let other = world.run(Command::Enqueue(enqueue("b", "p")));
    assert_eq!(other, Reply::Enqueued { id: task_id("b"), created: true }, "only this queue");
    let mut world = world.reload();
    assert_eq!(world.run(Command::Enqueue(enqueue("a", "q"))), full);
    // A resend of a task that exists is answered as before.
    let known = world.run(Command::Enqueue(enqueue("d0", "q")));
    assert_eq!(known, Reply::Enqueued { id: task_id("d0"), created: false });
    assert_eq!(world.run(Command::Retry(Retry { id: task_id("d0") })), Reply::Retried);
    let taken = world.one(requested("r", Command::Enqueue(enqueue("a", "q"))));
    assert_eq!(taken, Reply::Enqueued { id: task_id("a"), created: true }, "not remembered");
    world.run(set(QueueChange { dead_max: Some(0), ..QueueChange::default() }));
    kill(&mut world, "d2");
    world.add("c");
}

/// The shard's own bound: queues with dead tasks are refused at half of it, and what goes beyond it is counted.
#[test]
fn q13_dead_tasks_beyond_the_shards_bound_are_counted() {
    let mut world = World::with(Limits { finished_tasks_max: 4, ..limits_small() });
    world.run(keep_dead());
    for number in 0..6 {
        world.add(&format!("d{number}"));
    }
    let grants = world.take(6);
    for grant in &grants {
        world.run(Command::Fail(Fail { retry: false, ..fail(grant, "w") }));
    }
    assert_eq!((view(&world).dead, view(&world).counters.dead_dropped), (4, Some(2)));
    assert!(!exists(&world, "d0") && !exists(&world, "d1") && exists(&world, "d2"), "oldest first");
    let full = refused(RefusalCode::DeadFull);
    assert_eq!(world.run(Command::Enqueue(enqueue("a", "q"))), full);
    let other = world.run(Command::Enqueue(enqueue("a", "p")));
    assert_eq!(other, Reply::Enqueued { id: task_id("a"), created: true }, "has no dead ones");
    world.reload();
}

/// The same by bytes: a few large ones are as much as many small ones.
#[test]
fn q13_dead_tasks_are_bounded_by_their_bytes_too() {
    let mut world = World::with(Limits { finished_bytes_max: 40_000, ..limits_small() });
    world.run(keep_dead());
    for number in 0..3 {
        let id = task_id(&format!("d{number}"));
        world.put(Enqueue::new(id, queue("q"), vec![7; 9_000]));
        let grant = world.take(1).remove(0);
        world.run(Command::Fail(Fail { retry: false, ..fail(&grant, "w") }));
    }
    let full = refused(RefusalCode::DeadFull);
    assert_eq!(world.run(Command::Enqueue(enqueue("a", "q"))), full, "more than half is dead");
    let other = world.run(Command::Enqueue(enqueue("b", "p")));
    assert_eq!(other, Reply::Enqueued { id: task_id("b"), created: true }, "has no dead ones");
    let mut world = world.reload();
    assert_eq!(world.run(Command::Enqueue(enqueue("a", "q"))), full);
    assert_eq!(world.run(Command::Retry(Retry { id: task_id("d0") })), Reply::Retried);
    world.add("a");
}

/// Until the order comes, everything is as older programs do it; then those that are dead already have their line.
#[test]
fn dead_tasks_are_kept_apart_from_an_order_on() {
    let mut world = World::with(limits_small());
    world.run(set(QueueChange { retention_count: Some(2), ..QueueChange::default() }));
    kill(&mut world, "d0");
    finish(&mut world, "t0");
    finish(&mut world, "t1");
    assert!(!exists(&world, "d0"), "one line for all");
    kill(&mut world, "d1");
    assert!(!world.shard.keeps_dead());
    let before = world.shard.hash();
    assert_eq!(world.reload().shard.hash(), before);
    assert_eq!(
        world.run(Command::KeepDead(KeepDead { shard: 1 })),
        refused(RefusalCode::WrongShard)
    );
    assert_eq!(world.run(keep_dead()), Reply::DeadKept);
    assert!(world.shard.keeps_dead());
    let mut world = world.reload();
    assert!(world.shard.keeps_dead());
    let hash = world.shard.hash();
    assert_eq!(world.run(keep_dead()), Reply::DeadKept);
    assert_ne!(world.shard.hash(), hash, "only the position has changed");
    for number in 2..9 {
        finish(&mut world, &format!("t{number}"));
    }
    assert!(exists(&world, "d1"));
    assert_eq!((view(&world).dead, view(&world).finished), (1, 3));
}
