//! Operations on queues: dead letters, sweeps, tombstones (TQ-8, TQ-19 to TQ-22).

mod common;
use common::*;
use ikada_state::*;

fn retry(id: &str) -> Command {
    Command::Retry(Retry { id: task_id(id) })
}

fn drop_task(id: &str) -> Command {
    Command::Drop(DropTask { id: task_id(id) })
}

fn sweep(action: SweepAction, from: u32) -> Command {
    Command::Sweep(Sweep { shard: 0, queue: queue("q"), action, from })
}

fn void(request: &str) -> Command {
    Command::Void(Void { shard: 0, request: key(request).id })
}

/// Claims and fails a task until it is dead.
fn kill(world: &mut World, id: &str) {
    while world.state(id) != TaskState::Dead {
        let grants = world.take(1);
        let [grant] = &grants[..] else { panic!("nothing to claim") };
        let mut failure = fail(grant, "w");
        failure.delay_ms = Some(0);
        world.run(Command::Fail(failure));
    }
}

// TQ-8: a task that kills its worker is counted at claim and ends dead, with the reason shown.
#[test]
fn tq_8_a_poison_task_that_is_never_completed_ends_dead() {
    let mut world = World::new();
    let mut task = enqueue("poison", "q");
    task.max_attempts = Some(3);
    world.run(Command::Enqueue(task));
    for attempt in 1..=3 {
        let grant = world.take(1).remove(0);
        assert_eq!(grant.attempt, attempt, "counted at claim");
        world.run(expire(grant.id, grant.fence));
    }
    let view = world.view("poison");
    assert_eq!((view.state, view.attempt), (TaskState::Dead, 3));
    assert_eq!(view.dead_reason, Some(DeadReason::ClaimExpired));
    assert!(view.attempts.iter().all(|attempt| attempt.outcome == AttemptOutcome::Expired));
    assert!(world.take(1).is_empty(), "a dead task is not handed out");
}

// TQ-19
#[test]
fn tq_19_a_retried_task_has_fresh_attempts_its_history_and_a_higher_fence() {
    let mut world = World::new();
    let mut task = enqueue("a", "q");
    task.max_attempts = Some(2);
    world.run(Command::Enqueue(task));
    kill(&mut world, "a");
    let before = world.view("a");
    assert_eq!(before.attempts.len(), 2);
    assert_eq!(world.run(retry("a")), Reply::Retried);
    let view = world.reload().view("a");
    assert_eq!((view.state, view.attempt, view.dead_reason), (TaskState::Ready, 0, None));
    assert_eq!(view.attempts, before.attempts);
    let grant = world.take(1).remove(0);
    assert_eq!(grant.attempt, 1);
    assert!(grant.fence > before.fence);
    assert_eq!(world.run(complete(&grant, "w")), Reply::Completed);
    let totals = world.shard.queue(&Namespace::default(), &queue("q")).unwrap().counters;
    assert_eq!((totals.submitted, totals.done, totals.dead, totals.retried), (1, 1, 1, 1));
    assert_eq!(totals.failed, 2);
}

#[test]
fn what_cannot_be_retried_or_dropped_is_refused_with_its_own_code() {
    let mut world = World::new();
    assert_eq!(world.run(retry("a")), refused(RefusalCode::TaskNotFound));
    assert_eq!(world.run(drop_task("a")), refused(RefusalCode::TaskNotFound));
    world.add("a");
    assert_eq!(world.run(retry("a")), refused(RefusalCode::TaskNotFinished));
    assert_eq!(world.run(drop_task("a")), refused(RefusalCode::TaskNotFinished));
    let grant = world.take(1).remove(0);
    assert_eq!(world.run(drop_task("a")), refused(RefusalCode::TaskNotFinished));
    world.run(complete(&grant, "w"));
    assert_eq!(world.run(retry("a")), refused(RefusalCode::TaskFinished));
    assert_eq!(world.run(drop_task("a")), Reply::Dropped);
    assert_eq!(world.shard.sizes().finished, 0);
    assert_eq!(world.run(drop_task("a")), refused(RefusalCode::TaskNotFound));
}

#[test]
fn a_cancelled_task_can_be_brought_back() {
    let mut world = World::new();
    world.add("a");
    world.run(Command::Cancel(Cancel { id: task_id("a") }));
    assert_eq!(world.run(retry("a")), Reply::Retried);
    assert_eq!(world.take(1).len(), 1);
}

#[test]
fn a_resent_retry_does_not_act_twice() {
    let mut world = World::new();
    world.add("a");
    world.run(Command::Cancel(Cancel { id: task_id("a") }));
    assert_eq!(world.one(requested("r", retry("a"))), Reply::Retried);
    world.run(Command::Cancel(Cancel { id: task_id("a") }));
    assert_eq!(world.one(requested("r", retry("a"))), Reply::Retried);
    assert_eq!(world.state("a"), TaskState::Cancelled);
    assert_eq!(
        world.one(requested("r", drop_task("a"))),
        refused(RefusalCode::IdempotencyConflict)
    );
}

#[test]
fn a_full_queue_refuses_a_retry_and_takes_it_later() {
    let mut world = World::new();
    world.add("a");
    world.run(Command::Cancel(Cancel { id: task_id("a") }));
    let change = QueueChange { pending_max: Some(1), ..QueueChange::default() };
    let set = SetQueue { queue: queue("q"), change, expected_version: None };
    world.run(Command::SetQueue(set));
    world.add("b");
    assert_eq!(world.one(requested("r", retry("a"))), refused(RefusalCode::QueueFull));
    world.run(Command::Cancel(Cancel { id: task_id("b") }));
    assert_eq!(world.one(requested("r", retry("a"))), Reply::Retried);
    let dead = world.one(requested("s", sweep(SweepAction::RetryDead, 0)));
    assert_eq!(dead, Reply::Swept { count: 0, next: None });
}

/// Runs a sweep to its end; tells the tasks changed and the steps needed.
fn sweep_all(world: &mut World, request: &str, action: SweepAction) -> (u32, u32) {
    let (mut total, mut steps, mut from) = (0, 0, 0);
    loop {
        let mut order = requested(request, sweep(action, from));
        if let Some(key) = &mut order.request {
            key.item = steps;
        }
        let Reply::Swept { count, next } = world.one(order) else { panic!("swept") };
        assert!(count <= 1_000, "a step is bounded");
        (total, steps) = (total + count, steps + 1);
        match next {
            Some(next) => from = next,
            None => return (total, steps),
        }
        if steps.is_multiple_of(2) {
            *world = world.reload();
        }
    }
}

#[test]
fn a_purge_takes_bounded_steps_and_leaves_claimed_tasks_alone() {
    let mut world = World::new();
    let many: Vec<Order> = (0..2_500)
        .map(|number| {
            let mut task = enqueue(&format!("t{number}"), "q");
            task.delay_ms = (number % 3 == 0).then_some(60_000);
            order(Command::Enqueue(task))
        })
        .collect();
    world.give(&many);
    world.run(Command::Enqueue(enqueue("other", "p")));
    let held = world.take(10);
    assert_eq!(sweep_all(&mut world, "p", SweepAction::CancelWaiting), (2_490, 3));
    let sizes = world.shard.sizes();
    assert_eq!((sizes.scheduled, sizes.ready, sizes.claimed), (0, 1, 10));
    assert_eq!(world.run(complete(&held[0], "w")), Reply::Completed);
    // A resend of the whole purge gives the first counts and takes nothing that came since.
    world.add("late");
    assert_eq!(sweep_all(&mut world, "p", SweepAction::CancelWaiting), (2_490, 3));
    assert_eq!(world.state("late"), TaskState::Ready);
    assert_eq!(sweep_all(&mut world, "all", SweepAction::CancelUnfinished), (10, 1));
    let stale = world.run(complete(&held[1], "w"));
    assert_eq!(stale, refused(RefusalCode::TaskFinished));
    assert_eq!(sweep_all(&mut world, "drop", SweepAction::DropFinished).0, 2_501);
    assert_eq!(world.shard.sizes().finished, 0);
}

#[test]
fn dead_tasks_are_retried_and_dropped_in_bulk() {
    let mut world = World::new();
    for id in ["a", "b", "c"] {
        let mut task = enqueue(id, "q");
        task.max_attempts = Some(1);
        world.run(Command::Enqueue(task));
        kill(&mut world, id);
    }
    assert_eq!(sweep_all(&mut world, "r", SweepAction::RetryDead), (3, 1));
    assert_eq!(world.shard.sizes().ready, 3);
    for id in ["a", "b", "c"] {
        kill(&mut world, id);
    }
    world.add("d");
    assert_eq!(sweep_all(&mut world, "d", SweepAction::DropDead), (3, 1));
    assert_eq!(world.state("d"), TaskState::Ready);
    let other = Sweep { shard: 1, queue: queue("q"), action: SweepAction::DropDead, from: 0 };
    assert_eq!(world.run(Command::Sweep(other)), refused(RefusalCode::WrongShard));
}

// TQ-20: after a void, a late duplicate never applies, also across snapshots.
#[test]
fn tq_20_a_voided_request_is_refused_for_good() {
    let mut world = World::new();
    world.one(requested("done", Command::Enqueue(enqueue("a", "q"))));
    assert_eq!(world.run(void("late")), Reply::Voided);
    assert_eq!(world.run(void("late")), Reply::Voided, "voiding twice is the same");
    assert_eq!(world.run(void("done")), Reply::Voided);
    let mut world = world.reload();
    for _ in 0..2 {
        let late = world.one(requested("late", Command::Enqueue(enqueue("b", "q"))));
        assert_eq!(late, refused(RefusalCode::RequestVoided));
        // Every item of the request, and a claim under its id.
        let mut item = requested("late", Command::Cancel(Cancel { id: task_id("a") }));
        item.request = Some(RequestKey { item: 7, ..key("late") });
        assert_eq!(world.one(item), refused(RefusalCode::RequestVoided));
        let claimed = world.one(requested("late", Command::Claim(claim("w", &["q"], 1))));
        assert_eq!(claimed, refused(RefusalCode::RequestVoided));
        world.now_ms += 60_000;
    }
    // What was committed before keeps its first reply.
    let first = world.one(requested("done", Command::Enqueue(enqueue("a", "q"))));
    assert_eq!(first, Reply::Enqueued { id: task_id("a"), created: true });
    assert_eq!(world.shard.sizes().voids, 2);
    world.tick(Limits::default().submit_window_ms + 1);
    assert_eq!(world.shard.sizes().voids, 0, "tombstones go with the window");
}

// TQ-22: a flood of requests does not push tombstones out.
#[test]
fn tq_22_tombstones_outlive_a_full_window() {
    let mut world = World::with(limits_small());
    world.run(void("late"));
    for number in 0..120 {
        let request = format!("r{number}");
        world.one(requested(&request, Command::Cancel(Cancel { id: task_id("none") })));
    }
    let late = world.one(requested("late", Command::Enqueue(enqueue("b", "q"))));
    assert_eq!(late, refused(RefusalCode::RequestVoided));
}

fn reasons(world: &World, id: &str) -> Vec<WaitReason> {
    world.shard.explain(&Namespace::default(), &task_id(id)).unwrap().reasons
}

// TQ-1: whoever waits for its key is told for whom.
#[test]
fn tq_1_a_task_behind_its_key_names_the_one_that_holds_it() {
    let mut world = World::new();
    let behind = |key_limit, holder: &str| {
        [WaitReason::BehindKey { key_limit, holder: Some(task_id(holder)) }]
    };
    ["u:a", "u:b", "u:c"].iter().for_each(|id| world.put(enqueue(id, "q")));
    assert_eq!(reasons(&world, "u:c"), behind(1, "u:a"), "it is next");
    let grant = world.take(1).remove(0);
    assert_eq!(reasons(&world, "u:b"), behind(1, "u:a"), "it runs");
    let order = Fail { delay_ms: Some(5_000), ..fail(&grant, "w") };
    world.run(Command::Fail(order));
    let mut world = world.reload();
    assert_eq!(reasons(&world, "u:b"), behind(1, "u:a"), "it waits for its retry");
    world.run(Command::Cancel(Cancel { id: task_id("u:a") }));
    assert_eq!(reasons(&world, "u:b"), [WaitReason::NextInLine]);
    assert_eq!(reasons(&world, "u:c"), behind(1, "u:b"));
    for id in ["m:a", "m:b", "m:c"] {
        world.put(enqueue_with(id, "many", |options| options.key_limit = Some(2)));
    }
    world.run(Command::Claim(claim("w", &["many"], 2)));
    assert_eq!(reasons(&world, "m:c"), behind(2, "m:a"));
}

// TQ-19: the attempts that are no longer kept are counted.
#[test]
fn tq_19_a_task_says_how_many_attempts_are_no_longer_kept() {
    let mut world = World::with(limits_small());
    world.put(Enqueue { max_attempts: Some(9), ..enqueue("a", "q") });
    for number in 1..=5u32 {
        let grant = world.take(1).remove(0);
        let view = world.view("a");
        assert_eq!(
            (view.attempts.len(), view.attempts_dropped),
            (number.min(3) as usize, number.saturating_sub(3))
        );
        world.run(Command::Fail(Fail { delay_ms: Some(0), ..fail(&grant, "w") }));
    }
    // One that was given back does not count, kept or not.
    let grant = world.take(1).remove(0);
    world.run(Command::Unclaim(Unclaim { id: grant.id.clone(), fence: grant.fence }));
    let view = world.view("a");
    assert_eq!((view.attempt, view.attempts.len(), view.attempts_dropped), (5, 3, 3));
}

#[test]
fn the_place_in_line_counts_priority_and_is_bounded() {
    let mut world = World::new();
    let many: Vec<Order> = (0..10_050)
        .map(|number| order(Command::Enqueue(enqueue(&format!("t{number}"), "q"))))
        .collect();
    world.give(&many);
    assert_eq!(reasons(&world, "t0"), [WaitReason::NextInLine]);
    assert_eq!(reasons(&world, "t7"), [WaitReason::Behind { count: 7, more: false }]);
    assert_eq!(reasons(&world, "t10049"), [WaitReason::Behind { count: 10_000, more: true }]);
    let mut urgent = enqueue("urgent", "q");
    urgent.priority = Some(9);
    world.run(Command::Enqueue(urgent));
    assert_eq!(reasons(&world, "urgent"), [WaitReason::NextInLine]);
    assert_eq!(reasons(&world, "t0"), [WaitReason::Behind { count: 1, more: false }]);
    assert_eq!(world.shard.explain(&Namespace::default(), &task_id("none")), None);
}

// TQ-23: ages are those of the oldest, over all priorities and shards.
#[test]
fn tq_23_a_queue_knows_its_oldest_ready_task_and_claim() {
    let mut world = World::new();
    let view = |world: &World| world.shard.queue(&Namespace::default(), &queue("q")).unwrap();
    world.add("first");
    world.now_ms += 500;
    let mut urgent = enqueue("urgent", "q");
    (urgent.priority, urgent.ttl_ms) = (Some(9), Some(1_000));
    world.run(Command::Enqueue(urgent));
    assert_eq!(view(&world).oldest_ready_ms, Some(1_000));
    assert_eq!(view(&world).oldest_claim_ms, None);
    world.take(1);
    let seen = view(&world);
    assert_eq!((seen.oldest_ready_ms, seen.oldest_claim_ms), (Some(1_000), Some(1_500)));
    assert_eq!(seen.claim_alert_ms, Some(1_500 + 2 * 1_000), "twice its lifetime");
    let mut other = seen.clone();
    (other.oldest_ready_ms, other.claim_alert_ms) = (Some(900), None);
    let sum = seen.merge(other);
    assert_eq!((sum.ready, sum.claimed, sum.oldest_ready_ms), (2, 2, Some(900)));
    assert_eq!(sum.claim_alert_ms, Some(3_500));
}
