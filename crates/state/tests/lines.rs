//! Requirement lines on the plain life of a task that no other file shows.

mod common;
use common::*;
use ikada_state::*;

// TQ-2: waiting, claimed, done; back to waiting when the claim expires; dead when none is left.
#[test]
fn tq_2_a_task_goes_through_its_states() {
    let mut world = World::new();
    world.put(Enqueue { max_attempts: Some(2), ..enqueue("a", "q") });
    assert_eq!(world.state("a"), TaskState::Ready);
    let first = world.take(1).remove(0);
    assert_eq!(world.state("a"), TaskState::Claimed);
    world.run(expire(first.id.clone(), first.fence));
    assert_eq!(world.state("a"), TaskState::Ready);
    let second = world.take(1).remove(0);
    world.run(complete(&second, "w"));
    assert_eq!(world.state("a"), TaskState::Done);
    world.put(Enqueue { max_attempts: Some(1), ..enqueue("b", "q") });
    let only = world.take(1).remove(0);
    world.run(Command::Fail(fail(&only, "w")));
    assert_eq!(world.state("b"), TaskState::Dead);
}

// TQ-3: what a task and its queue remember.
#[test]
fn tq_3_a_task_keeps_what_it_was_given() {
    let mut world = World::new();
    world.put(Enqueue { max_attempts: Some(3), ..enqueue("a", "q") });
    let grant = world.take(1).remove(0);
    let view = world.reload().view("a");
    assert_eq!((view.id.as_str(), &view.payload[..]), ("a", &b"a"[..]));
    assert_eq!((view.attempt, view.max_attempts, view.state), (1, 3, TaskState::Claimed));
    assert_eq!(view.enqueued_ms, world.now_ms);
    world.run(complete(&grant, "w"));
    let queue = world.shard.queue(&Namespace::default(), &queue("q")).unwrap();
    assert_eq!((queue.counters.submitted, queue.counters.done, queue.counters.dead), (1, 1, 0));
}

// TQ-5: a claim names task, worker and attempt; what is not ready is not handed out.
#[test]
fn tq_5_a_claim_counts_and_excludes() {
    let mut world = World::new();
    assert!(world.take(1).is_empty(), "no such queue");
    world.add("a");
    let grant = world.take(1).remove(0);
    assert_eq!((grant.id.as_str(), grant.attempt), ("a", 1));
    let live = world.shard.claim_of(&Namespace::default(), &grant.id).unwrap();
    assert_eq!((live.worker, live.fence), (worker("w"), grant.fence));
    assert!(world.take(1).is_empty(), "it is taken");
    world.run(complete(&grant, "w"));
    assert!(world.take(1).is_empty(), "it is done");
}

// TQ-9: `max_attempts` counts attempts: with 1 a single crash is the end, by default there are 5.
#[test]
fn tq_9_attempts_are_what_is_limited() {
    let mut world = World::new();
    world.put(Enqueue { max_attempts: Some(1), ..enqueue("once", "q") });
    let grant = world.take(1).remove(0);
    let reply = world.run(expire(grant.id.clone(), grant.fence));
    assert_eq!(reply, Reply::Expired { next: FailNext::Dead });
    world.add("default");
    for attempt in 1..=5 {
        let grant = world.take(1).remove(0);
        assert_eq!((grant.attempt, grant.max_attempts), (attempt, 5));
        let next = if attempt == 5 { FailNext::Dead } else { FailNext::Ready };
        assert_eq!(world.run(expire(grant.id, grant.fence)), Reply::Expired { next });
    }
    assert_eq!(world.view("default").dead_reason, Some(DeadReason::ClaimExpired));
}

// TQ-11: expiry is an order in the log, by fence; one that comes late changes nothing.
#[test]
fn tq_11_expiry_is_an_order_that_names_its_claim() {
    let mut world = World::new();
    world.add("a");
    let first = world.take(1).remove(0);
    world.tick(1_000_000);
    assert_eq!(world.state("a"), TaskState::Claimed, "time alone ends no claim");
    world.run(expire(first.id.clone(), first.fence));
    let second = world.take(1).remove(0);
    let late = world.run(expire(first.id, first.fence));
    assert_eq!(late, refused(RefusalCode::StaleFence));
    assert_eq!(world.view("a").fence, second.fence);
}

// TQ-14: log time never goes back, whatever a leader's clock says.
#[test]
fn tq_14_log_time_never_decreases() {
    let mut world = World::new();
    world.tick(5_000);
    let before_ms = world.shard.time_ms();
    world.now_ms = 10;
    world.add("a");
    assert_eq!(world.shard.time_ms(), before_ms);
    assert_eq!(world.view("a").enqueued_ms, before_ms);
}

// TQ-26: a snapshot holds the tasks, their order and the counters, not only counts.
#[test]
fn tq_26_a_restored_shard_is_the_same() {
    let mut world = World::new();
    ["u:a", "u:b", "plain"].iter().for_each(|id| world.add(id));
    world.put(enqueue_with("gpu", "q", |options| options.labels = labels(&[("gpu", "yes")])));
    let grant = world.take(1).remove(0);
    let mut restored = world.reload();
    let all = |world: &World| world.shard.queues(None).collect::<Vec<_>>();
    assert_eq!(all(&restored), all(&world));
    for world in [&mut world, &mut restored] {
        world.run(complete(&grant, "w"));
        let order: Vec<TaskId> =
            world.take_with(&[("gpu", "yes")], 9).into_iter().map(|grant| grant.id).collect();
        assert_eq!(order, [task_id("u:b"), task_id("plain"), task_id("gpu")]);
    }
    assert_eq!(restored.shard.hash(), world.shard.hash());
}

#[test]
fn f_28_a_snapshot_of_a_newer_version_is_refused_in_words() {
    let world = World::new();
    let mut chunks: Vec<Vec<u8>> = world.shard.freeze().chunks().collect();
    // Kind, length, the head of the header's array; then the version.
    let version = chunks[0][5..].iter().position(|byte| *byte == 2).expect("a version") + 5;
    assert!(version < 9, "it comes first");
    chunks[0][version] += 1;
    let refusal = Shard::restore(chunks.into_iter()).expect_err("refused").to_string();
    assert_eq!(
        refusal,
        "snapshot has version 3, this program knows 2; start the version that wrote it"
    );
}
