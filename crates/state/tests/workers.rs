//! Workers that come and go: one record per name, sessions that end for good, claims that are reopened in every shard
//! (B4-15 to B4-22).

mod common;
use common::*;
use ikada_state::*;

fn register(name: &str, session: u64) -> RegisterWorker {
    RegisterWorker {
        id: worker(name),
        session: SessionId(session),
        slots: 2,
        labels: labels(&[("zone", "a")]),
        queues: vec![queue("q")],
        version: "1".to_owned(),
        replaces: None,
    }
}

fn key(name: &str) -> WorkerKey {
    (Namespace::default(), worker(name))
}

fn remove(name: &str, forget: bool) -> Command {
    Command::RemoveWorker(RemoveWorker { id: worker(name), session: None, forget })
}

#[test]
fn b4_22_a_worker_registers_itself_and_may_change_its_words() {
    let mut world = World::new();
    let first = register("w", 1);
    assert_eq!(world.run(Command::RegisterWorker(first.clone())), Reply::WorkerRegistered);
    let before = world.shard.hash();
    world = world.reload();
    assert_eq!(world.shard.hash(), before);
    let more = RegisterWorker { slots: 8, ..first };
    assert_eq!(world.run(Command::RegisterWorker(more)), Reply::WorkerRegistered);
    assert_eq!(world.shard.worker(&key("w")).unwrap().slots, 8);
    let none = RegisterWorker { slots: 0, ..register("v", 1) };
    assert_eq!(world.run(Command::RegisterWorker(none)), refused(RefusalCode::BadValue));
}

#[test]
fn b4_20_another_session_needs_the_leaders_word_that_the_first_is_dead() {
    let mut world = World::new();
    world.run(Command::RegisterWorker(register("w", 1)));
    let other = register("w", 2);
    let reply = world.run(Command::RegisterWorker(other.clone()));
    assert_eq!(reply, refused(RefusalCode::WorkerExists));
    let told = RegisterWorker { replaces: Some(SessionId(1)), ..other };
    assert_eq!(world.run(Command::RegisterWorker(told)), Reply::WorkerRegistered);
    assert_eq!(world.shard.worker(&key("w")).unwrap().session, SessionId(2));
}

#[test]
fn b4_19_the_tasks_of_a_removed_worker_reopen_and_no_others() {
    let mut world = World::new();
    world.run(Command::RegisterWorker(register("w", 1)));
    ["a", "b", "c"].iter().for_each(|id| world.add(id));
    world.take(2);
    let theirs = Claim { session: SessionId(9), ..claim("v", &["q"], 1) };
    world.run(Command::Claim(theirs));
    assert_eq!(world.run(remove("w", false)), Reply::WorkerGone);
    let states = ["a", "b", "c"].map(|id| world.state(id));
    assert_eq!(states, [TaskState::Ready, TaskState::Ready, TaskState::Claimed]);
    assert_eq!(world.view("a").attempt, 1, "the attempt counts, as after silence");
    let again = world.run(Command::RegisterWorker(register("w", 1)));
    assert_eq!(again, refused(RefusalCode::WorkerRemoved), "a removed session stays away");
    assert_eq!(world.run(remove("w", false)), refused(RefusalCode::WorkerNotFound));
    assert_eq!(world.run(Command::RegisterWorker(register("w", 2))), Reply::WorkerRegistered);
    assert_eq!(world.run(remove("w", true)), Reply::WorkerGone);
    assert_eq!(world.shard.sizes().workers, 0, "one that left by itself is forgotten");
}

#[test]
fn b4_19_a_removal_reaches_the_other_shards_by_message() {
    let shard = |number| World::of(Shard::genesis_with(number, 2, &[], Limits::default()));
    let (mut zero, mut one) = (shard(0), shard(1));
    zero.run(Command::RegisterWorker(register("w", 1)));
    one.add("t");
    one.take(1);
    zero.run(remove("w", false));
    let item = zero.shard.outbox_pending(1, 0, 9).remove(0);
    let deliver = Deliver { source: 0, sequence: item.sequence, message: item.message };
    assert_eq!(one.run(Command::Deliver(deliver)), Reply::Delivered { fresh: true });
    assert_eq!(one.state("t"), TaskState::Ready);
}

#[test]
fn b4_18_draining_and_removing_need_a_worker() {
    let mut world = World::new();
    let drain = Command::DrainWorker(DrainWorker { id: worker("w") });
    assert_eq!(world.run(drain.clone()), refused(RefusalCode::WorkerNotFound));
    world.run(Command::RegisterWorker(register("w", 1)));
    assert_eq!(world.run(drain), Reply::WorkerDraining);
    let more = RegisterWorker { slots: 4, ..register("w", 1) };
    world.run(Command::RegisterWorker(more));
    let standing = world.shard.worker(&key("w")).unwrap().standing;
    assert_eq!(standing, WorkerStanding::Draining, "new words do not end it");
}
