//! The life of a task, verb by verb: what each gives, what each refuses, and that a refusal changes
//! nothing.

mod common;
use common::*;
use ikada_state::*;

fn ids(grants: &[Grant]) -> Vec<&str> {
    grants.iter().map(|grant| grant.id.as_str()).collect()
}

// TQ-6, TQ-18, Q4
#[test]
fn tq_6_complete_needs_the_live_fence_and_worker() {
    let mut world = World::new();
    world.add("a");
    let grant = world.take(1).remove(0);
    let before = world.shard.hash();
    assert_eq!(world.run(complete(&grant, "other")), refused(RefusalCode::NotOwner));
    let stale = Grant { fence: Fence(grant.fence.0 + 1), ..grant.clone() };
    assert_eq!(world.run(complete(&stale, "w")), refused(RefusalCode::StaleFence));
    let missing = Grant { id: task_id("none"), ..grant.clone() };
    assert_eq!(world.run(complete(&missing, "w")), refused(RefusalCode::TaskNotFound));
    assert_eq!(world.state("a"), TaskState::Claimed);
    assert_ne!(world.shard.hash(), before, "the position is part of the hash");
    assert_eq!(world.run(complete(&grant, "w")), Reply::Completed);
    let mut world = world.reload();
    assert_eq!(world.run(complete(&grant, "w")), Reply::Completed);
    let view = world.view("a");
    assert_eq!((view.state, view.result.as_deref()), (TaskState::Done, Some(&b"result"[..])));
    assert_eq!(world.shard.queue(&Namespace::default(), &queue("q")).unwrap().counters.done, 1);
    let fail = Command::Fail(fail(&grant, "w"));
    assert_eq!(world.run(fail), refused(RefusalCode::TaskFinished));
}

// TQ-7, TQ-9, Q7
#[test]
fn tq_7_failing_retries_with_backoff_until_dead() {
    let mut world = World::new();
    let mut task = enqueue("a", "q");
    task.max_attempts = Some(2);
    world.run(Command::Enqueue(task));
    let grant = world.take(1).remove(0);
    let at_ms = world.now_ms + 1_000;
    let first = world.run(Command::Fail(fail(&grant, "w")));
    assert_eq!(first, Reply::Failed { next: FailNext::Scheduled { at_ms } });
    assert!(world.effects.contains(&Effect::Scheduled { at_ms }));
    assert_eq!(world.run(Command::Fail(fail(&grant, "w"))), first);
    assert_eq!(world.run(complete(&grant, "w")), refused(RefusalCode::StaleFence));
    assert_eq!(world.shard.next_scheduled_ms(), Some(at_ms));
    world.tick(999);
    assert!(world.take(1).is_empty());
    world.tick(1);
    let second = world.take(1).remove(0);
    assert_eq!(second.attempt, 2);
    let dead = Reply::Failed { next: FailNext::Dead };
    assert_eq!(world.run(Command::Fail(fail(&second, "w"))), dead);
    assert_eq!(world.run(Command::Fail(fail(&second, "w"))), dead);
    let view = world.view("a");
    assert_eq!(view.dead_reason, Some(DeadReason::AttemptsExhausted));
    assert_eq!(view.attempts.len(), 2);
    assert_eq!(view.attempts[0].error.as_deref(), Some(&b"boom"[..]));
}

#[test]
fn a_failure_may_forbid_or_hasten_the_retry() {
    let mut world = World::new();
    ["a", "b"].iter().for_each(|id| world.add(id));
    let grants = world.take(2);
    let no_retry = Fail { retry: false, ..fail(&grants[0], "w") };
    assert_eq!(world.run(Command::Fail(no_retry)), Reply::Failed { next: FailNext::Dead });
    assert_eq!(world.view("a").dead_reason, Some(DeadReason::NotRetryable));
    let error = vec![b'x'; 5000].into();
    let at_once = Fail { delay_ms: Some(0), error, ..fail(&grants[1], "w") };
    let ready = Reply::Failed { next: FailNext::Ready };
    assert_eq!(world.run(Command::Fail(at_once.clone())), ready);
    assert_eq!(world.run(Command::Fail(at_once)), ready);
    assert_eq!(world.view("b").attempts[0].error.as_ref().unwrap().len(), 1024);
    assert_eq!(world.take(1)[0].attempt, 2);
}

// TQ-8, Q6, F-20
#[test]
fn tq_8_expiry_counts_only_with_the_live_fence() {
    let mut world = World::new();
    let mut task = enqueue("a", "q");
    task.max_attempts = Some(2);
    world.run(Command::Enqueue(task));
    let first = world.take(1).remove(0);
    let expire = |fence| expire(task_id("a"), fence);
    assert_eq!(world.run(expire(Fence(99))), refused(RefusalCode::StaleFence));
    assert_eq!(world.run(expire(first.fence)), Reply::Expired { next: FailNext::Ready });
    assert!(world.effects.iter().any(|effect| matches!(effect, Effect::Released { .. })));
    assert!(world.effects.iter().any(|effect| matches!(effect, Effect::Ready { .. })));
    assert_eq!(world.run(expire(first.fence)), refused(RefusalCode::StaleFence));
    let second = world.take(1).remove(0);
    assert!(second.fence > first.fence);
    // TQ-17, TQ-18: the same worker's older attempt cannot complete the newer claim.
    assert_eq!(world.run(complete(&first, "w")), refused(RefusalCode::StaleFence));
    assert_eq!(world.run(expire(first.fence)), refused(RefusalCode::StaleFence));
    assert_eq!(world.run(expire(second.fence)), Reply::Expired { next: FailNext::Dead });
    assert_eq!(world.view("a").dead_reason, Some(DeadReason::ClaimExpired));
    assert_eq!(world.run(expire(second.fence)), refused(RefusalCode::TaskFinished));
}

// Q7: an unconfirmed claim does not count, and the task keeps its place.
#[test]
fn unclaim_gives_the_attempt_and_the_place_back() {
    let mut world = World::new();
    ["a", "b"].iter().for_each(|id| world.add(id));
    let grant = world.take(1).remove(0);
    let order = Command::Unclaim(Unclaim { id: grant.id.clone(), fence: grant.fence });
    assert_eq!(world.run(order.clone()), Reply::Unclaimed);
    assert_eq!(world.run(order), refused(RefusalCode::StaleFence));
    assert_eq!(world.view("a").attempt, 0);
    let mut world = world.reload();
    let again = world.take(1).remove(0);
    assert_eq!((again.id.as_str(), again.attempt), ("a", 1));
    assert!(again.fence > grant.fence);
}

// Q10, Q2
#[test]
fn cancel_and_completion_exclude_each_other() {
    let mut world = World::new();
    ["a", "b", "c"].iter().for_each(|id| world.add(id));
    let grants = world.take(2);
    let cancel = |id: &str| Command::Cancel(Cancel { id: task_id(id) });
    assert_eq!(world.run(cancel("a")), Reply::Cancelled);
    assert_eq!(world.run(complete(&grants[0], "w")), refused(RefusalCode::TaskFinished));
    assert_eq!(world.run(complete(&grants[1], "w")), Reply::Completed);
    assert_eq!(world.run(cancel("b")), refused(RefusalCode::TaskFinished));
    assert_eq!(world.run(cancel("c")), Reply::Cancelled);
    assert_eq!(world.run(cancel("none")), refused(RefusalCode::TaskNotFound));
    assert!(world.take(1).is_empty());
}

// TQ-19, TQ-14
#[test]
fn tq_19_delayed_tasks_become_ready_by_log_time_in_bounded_steps() {
    let mut world = World::with(limits_small());
    for number in 0..6 {
        let mut task = enqueue(&format!("t{number}"), "q");
        task.delay_ms = Some(100);
        world.run(Command::Enqueue(task));
    }
    assert_eq!(world.view("t0").due_ms, Some(world.now_ms + 100));
    world.tick(100);
    assert_eq!(world.shard.sizes().ready, 4);
    world.tick(0);
    assert_eq!(ids(&world.take(9)), ["t0", "t1", "t2", "t3", "t4", "t5"]);
    let before = world.shard.time_ms();
    world.now_ms = 5;
    world.tick(0);
    assert_eq!(world.shard.time_ms(), before);
}

#[test]
fn values_outside_their_bounds_are_refused() {
    let mut world = World::new();
    let base = enqueue("a", "q");
    let wrong = [
        Enqueue { priority: Some(10), ..base.clone() },
        Enqueue { max_attempts: Some(0), ..base.clone() },
        Enqueue { ttl_ms: Some(1), ..base.clone() },
        Enqueue { run_at_ms: Some(1), delay_ms: Some(1), ..base.clone() },
        Enqueue { backoff: Some(Backoff { base_ms: 2, cap_ms: 1 }), ..base.clone() },
    ];
    for order in wrong {
        assert_eq!(world.run(Command::Enqueue(order)), refused(RefusalCode::BadValue));
    }
    let large = Enqueue { payload: vec![0; (1 << 20) + 1].into(), ..base.clone() };
    assert_eq!(world.run(Command::Enqueue(large)), refused(RefusalCode::TooLarge));
    let largest = Enqueue { payload: vec![0; 1 << 20].into(), ..base };
    world.run(Command::Enqueue(largest));
    let grant = world.take(1).remove(0);
    let (id, fence) = (grant.id.clone(), grant.fence);
    let result = Some(vec![0; (64 << 10) + 1].into());
    let order = Complete {
        keeps_digest: None,
        id,
        fence,
        worker: worker("w"),
        result,
        then: None,
        outputs: Vec::new(),
    };
    assert_eq!(world.run(Command::Complete(order)), refused(RefusalCode::TooLarge));
    // A record larger than a chunk survives the snapshot.
    assert_eq!(world.reload().view("a").payload.len(), 1 << 20);
    assert!(world.shard.freeze().chunks().all(|chunk| chunk.len() <= 256 << 10));
}

#[test]
fn attempts_are_kept_newest_first_to_go_last() {
    let mut world = World::with(limits_small());
    world.add("a");
    let mut fences = Vec::new();
    for _ in 0..5 {
        let grant = world.take(1).remove(0);
        fences.push(grant.fence);
        let order = Fail { delay_ms: Some(0), ..fail(&grant, "w") };
        world.run(Command::Fail(order));
    }
    let kept: Vec<Fence> = world.view("a").attempts.iter().map(|attempt| attempt.fence).collect();
    assert_eq!(kept, fences[2..]);
    assert_eq!(world.state("a"), TaskState::Dead);
}
