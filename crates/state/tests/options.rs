//! Labels, timeouts, deadlines, follow-ups and a task's own retention.

mod common;
use common::*;
use ikada_state::*;

fn ids(grants: &[Grant]) -> Vec<&str> {
    grants.iter().map(|grant| grant.id.as_str()).collect()
}

fn wants(id: &str, pairs: &[(&str, &str)]) -> Enqueue {
    enqueue_with(id, "q", |options| options.labels = labels(pairs))
}

fn then(id: &str, tasks: &[Enqueue]) -> Enqueue {
    enqueue_with(id, "q", |options| options.then = Some(encode_then(tasks)))
}

#[test]
fn ls_18_labels_decide_who_gets_a_task() {
    let mut world = World::new();
    world.put(wants("gpu", &[("gpu", "a100")]));
    world.put(wants("both", &[("gpu", "a100"), ("zone", "b")]));
    world.add("plain");
    world.put(Enqueue { priority: Some(9), ..wants("h100", &[("gpu", "h100")]) });
    let mut world = world.reload();
    let name = queue("q");
    let claimable = |world: &World, pairs: &[(&str, &str)]| {
        world.shard.is_claimable(&Namespace::default(), &name, &labels(pairs))
    };
    assert!(claimable(&world, &[]));
    assert_eq!(ids(&world.take(9)), ["plain"]);
    assert!(!claimable(&world, &[]) && !claimable(&world, &[("gpu", "t4")]));
    assert!(world.take_with(&[("gpu", "t4"), ("zone", "b")], 9).is_empty());
    assert_eq!(ids(&world.take_with(&[("gpu", "h100")], 9)), ["h100"]);
    assert_eq!(ids(&world.take_with(&[("zone", "b"), ("gpu", "a100")], 9)), ["gpu", "both"]);
    let many: Vec<(String, String)> = (0..33).map(|n| (format!("n{n}"), "v".into())).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    let wide = Claim { labels: labels(&many), ..claim("w", &["q"], 1) };
    assert_eq!(world.run(Command::Claim(wide)), refused(RefusalCode::TooLarge));
    let task = wants("many", &many[..9]);
    assert_eq!(world.run(Command::Enqueue(task)), refused(RefusalCode::TooLarge));
}

#[test]
fn label_sets_are_bounded_and_forgotten() {
    let mut world = World::new();
    for number in 0..64 {
        world.put(wants(&format!("t{number}"), &[("n", &number.to_string())]));
    }
    let more = || Command::Enqueue(wants("more", &[("n", "more")]));
    assert_eq!(world.run(more()), refused(RefusalCode::TooManyLabelSets));
    world.put(wants("same", &[("n", "7")]));
    world.add("plain");
    world.run(Command::Cancel(Cancel { id: task_id("t9") }));
    assert_eq!(world.run(more()), Reply::Enqueued { id: task_id("more"), created: true });
}

// TQ-8, TQ-9: an attempt that took too long counts, waits out its backoff, and the last one kills.
#[test]
fn tq_8_a_timeout_ends_the_attempt_with_its_reason() {
    let mut world = World::new();
    let task = enqueue_with("a", "q", |options| options.timeout_ms = Some(60_000));
    world.put(Enqueue { max_attempts: Some(2), ..task });
    let out = |grant: &Grant| {
        let (id, fence, cause) = (grant.id.clone(), grant.fence, ExpireCause::TimedOut);
        Command::Expire(Expire { id, fence, cause, jitter_permille: 100 })
    };
    let first = world.take(1).remove(0);
    assert_eq!(first.timeout_ms, 60_000);
    let started = |effect: &Effect| matches!(effect, Effect::Claimed { timeout_ms: 60_000, .. });
    assert!(world.effects.iter().any(started));
    let at_ms = world.now_ms + 1_100;
    let next = FailNext::Scheduled { at_ms };
    assert_eq!(world.run(out(&first)), Reply::Expired { next });
    assert_eq!(world.view("a").attempts[0].outcome, AttemptOutcome::TimedOut);
    assert_eq!(world.run(complete(&first, "w")), refused(RefusalCode::StaleFence));
    world.tick(1_100);
    let second = world.take(1).remove(0);
    assert_eq!(world.run(out(&first)), refused(RefusalCode::StaleFence));
    assert_eq!(world.run(out(&second)), Reply::Expired { next: FailNext::Dead });
    assert_eq!(world.reload().view("a").dead_reason, Some(DeadReason::TimedOut));
}

#[test]
fn a_task_is_dead_once_its_deadline_is_over() {
    let mut world = World::new();
    let ends_ms = world.now_ms + 500;
    world.put(enqueue_with("a", "q", |options| options.deadline_ms = Some(ends_ms)));
    world.put(enqueue_with("b", "q", |options| options.deadline_in_ms = Some(500)));
    world.put(enqueue_with("held", "q", |options| options.deadline_in_ms = Some(100)));
    assert_eq!(world.shard.next_scheduled_ms(), Some(world.now_ms + 100));
    world.run(Command::Cancel(Cancel { id: task_id("a") }));
    world.put(Enqueue {
        delay_ms: Some(300),
        ..enqueue_with("delayed", "q", |options| options.deadline_ms = Some(ends_ms))
    });
    let mut world = world.reload();
    world.tick(100);
    assert_eq!(world.view("held").dead_reason, Some(DeadReason::DeadlinePassed));
    let grant = world.take(1).remove(0);
    assert_eq!(grant.id.as_str(), "b");
    world.tick(400);
    assert_eq!(world.state("delayed"), TaskState::Dead);
    // A task that began in time may end when it will, but is not begun again.
    assert_eq!(world.state("b"), TaskState::Claimed);
    let failed = world.run(Command::Fail(fail(&grant, "w")));
    assert_eq!(failed, Reply::Failed { next: FailNext::Dead });
    assert_eq!(world.view("b").dead_reason, Some(DeadReason::DeadlinePassed));
    assert_eq!(world.shard.next_scheduled_ms(), None);
}

#[test]
fn a_deadline_that_cannot_be_met_is_refused() {
    let mut world = World::new();
    for deadline_ms in [1, world.now_ms] {
        let task = enqueue_with("a", "q", |options| options.deadline_ms = Some(deadline_ms));
        assert_eq!(world.run(Command::Enqueue(task)), refused(RefusalCode::DeadlinePassed));
    }
    let task = enqueue_with("a", "q", |options| options.deadline_in_ms = Some(100));
    let late = Enqueue { delay_ms: Some(100), ..task };
    assert_eq!(world.run(Command::Enqueue(late)), refused(RefusalCode::BadValue));
    assert_eq!(world.shard.sizes(), Sizes { queues: 0, ..world.shard.sizes() });
}

// One claim never hands out a late task, even if more are late than an entry may end.
#[test]
fn claims_pass_over_late_tasks() {
    let mut world = World::with(limits_small());
    for number in 0..12 {
        let id = format!("t{number}");
        world.put(enqueue_with(&id, "q", |options| options.deadline_in_ms = Some(50)));
    }
    world.add("good");
    world.now_ms += 50;
    let first = world.take(9);
    let rest = world.take(9);
    assert_eq!(ids(&[first, rest].concat()), ["good"]);
}

// Q9: follow-ups come with the completion, once.
#[test]
fn follow_ups_come_with_the_completion_and_only_once() {
    let mut world = World::new();
    let last = Enqueue { queue: queue("other"), ..enqueue("a:last", "q") };
    let mail = then("a:mail", &[last]);
    world.put(then("a", &[mail, enqueue("a:log", "q")]));
    assert_eq!(world.view("a").then, [task_id("a:mail"), task_id("a:log")]);
    let grant = world.take(9).remove(0);
    let given = Some(encode_then(&[enqueue("a:extra", "q")]));
    let (id, fence) = (grant.id.clone(), grant.fence);
    let done = Command::Complete(Complete {
        keeps_digest: None,
        id,
        fence,
        worker: worker("w"),
        result: None,
        then: given,
        outputs: Vec::new(),
    });
    assert_eq!(world.run(done.clone()), Reply::Completed);
    let sizes = world.shard.sizes();
    assert_eq!((sizes.ready, sizes.finished), (3, 1));
    assert_eq!(world.run(done.clone()), Reply::Completed);
    let mut world = world.reload();
    assert_eq!(world.run(done), Reply::Completed);
    assert_eq!(world.shard.sizes().ready, 3);
    // No key limit was inherited, so nothing waits for anything.
    let grants = world.take(9);
    assert_eq!(ids(&grants), ["a:mail", "a:log", "a:extra"]);
    world.run(complete(&grants[0], "w"));
    assert_eq!(world.view("a:last").queue, queue("other"));
}

#[test]
fn follow_ups_of_an_ordered_task_stay_in_order() {
    let mut world = World::new();
    world.put(then("u:a", &[enqueue("u:next", "q")]));
    world.add("u:b");
    let grant = world.take(9).remove(0);
    world.run(complete(&grant, "w"));
    assert_eq!(ids(&world.take(9)), ["u:b"], "the follow-up was enqueued after it");
    assert_eq!(world.view("u:next").key_limit, 1);
}

// A failed, dead or cancelled task has no follow-ups.
#[test]
fn only_completions_have_follow_ups() {
    let mut world = World::new();
    world.put(then("a", &[enqueue("a:next", "q")]));
    world.put(then("b", &[enqueue("b:next", "q")]));
    let grants = world.take(9);
    world.run(Command::Fail(Fail { retry: false, ..fail(&grants[0], "w") }));
    world.run(Command::Cancel(Cancel { id: task_id("b") }));
    assert_eq!(world.shard.sizes().ready, 0);
}

#[test]
fn bad_follow_ups_are_refused() {
    let mut world = World::new();
    let next = |id: &str| enqueue(id, "q");
    let deep = (0..5).fold(next("a:end"), |below, depth| then(&format!("a:d{depth}"), &[below]));
    let many: Vec<Enqueue> = (0..17).map(|number| next(&format!("a:n{number}"))).collect();
    let wide: Vec<Enqueue> = (0..5)
        .map(|number| {
            let below: Vec<Enqueue> = (0..16).map(|n| next(&format!("a:{number}-{n}"))).collect();
            then(&format!("a:w{number}"), &below)
        })
        .collect();
    let big = Enqueue { payload: vec![0; 1 << 20].into(), ..next("a:big") };
    let table = [
        (then("a", &[next("b:x")]), RefusalCode::KeyConflict),
        (then("a", &[next("x")]), RefusalCode::KeyConflict),
        (then("a", &[then("a:x", &[next("b:y")])]), RefusalCode::KeyConflict),
        (then("a", &[deep]), RefusalCode::TooLarge),
        (then("a", &many), RefusalCode::BadValue),
        (then("a", &wide), RefusalCode::TooLarge),
        (then("a", &[big]), RefusalCode::TooLarge),
        (then("a", &[Enqueue { priority: Some(10), ..next("a:x") }]), RefusalCode::BadValue),
    ];
    for (task, code) in table {
        assert_eq!(world.run(Command::Enqueue(task)), refused(code));
    }
    let noise = enqueue_with("a", "q", |options| options.then = Some(vec![0x81; 4000].into()));
    assert_eq!(world.run(Command::Enqueue(noise)), refused(RefusalCode::BadValue));
    assert_eq!(world.shard.sizes().ready, 0);
}

// The work that was done stays done: a follow-up whose id is taken keeps the task that has it.
#[test]
fn a_taken_follow_up_id_keeps_the_older_task() {
    let mut world = World::new();
    let other = Enqueue { payload: b"other".to_vec().into(), ..enqueue("a:next", "q") };
    world.put(other);
    world.put(then("a", &[enqueue("a:next", "q")]));
    let grants = world.take(9);
    let parent = grants.iter().find(|grant| grant.id.as_str() == "a").unwrap();
    assert_eq!(world.run(complete(parent, "w")), Reply::Completed);
    assert_eq!(&world.view("a:next").payload[..], b"other");
}

// Nothing acknowledged is dropped: without room for the follow-ups the completion has to wait.
#[test]
fn a_completion_waits_for_room() {
    let mut world = World::with(Limits { pending_tasks_max: 2, ..Limits::default() });
    world.put(then("a", &[enqueue("a:x", "q"), enqueue("a:y", "q")]));
    world.add("b");
    let grants = world.take(9);
    assert_eq!(world.run(complete(&grants[0], "w")), refused(RefusalCode::QueueFull));
    assert_eq!(world.state("a"), TaskState::Claimed);
    world.run(Command::Cancel(Cancel { id: task_id("b") }));
    assert_eq!(world.run(complete(&grants[0], "w")), Reply::Completed);
    assert_eq!(world.shard.sizes().ready, 2);
}

// TQ-25: a task may be kept longer or shorter than its queue says.
#[test]
fn tq_25_a_task_may_have_a_retention_of_its_own() {
    let mut world = World::new();
    let change = QueueChange { retention_count: Some(1), ..QueueChange::default() };
    let set = SetQueue { queue: queue("q"), change, expected_version: None };
    world.run(Command::SetQueue(set));
    world.put(enqueue_with("long", "q", |options| options.retention_ms = Some(90_000)));
    world.put(enqueue_with("short", "q", |options| options.retention_ms = Some(10)));
    ["a", "b"].iter().for_each(|id| world.add(id));
    for grant in world.take(9) {
        world.run(complete(&grant, "w"));
    }
    let kept =
        |world: &World, id: &str| world.shard.task(&Namespace::default(), &task_id(id)).is_some();
    assert!(kept(&world, "long") && kept(&world, "short") && kept(&world, "b"));
    assert!(!kept(&world, "a"));
    let mut world = world.reload();
    world.tick(10);
    assert!(kept(&world, "long") && !kept(&world, "short"));
    world.tick(90_000);
    assert!(!kept(&world, "long") && kept(&world, "b"));
    let view = world.shard.queue(&Namespace::default(), &queue("q")).unwrap();
    assert_eq!((view.finished, view.counters.done, view.counters.removed), (1, 4, 3));
}

#[test]
fn queues_give_defaults_for_timeout_and_deadline() {
    let mut world = World::new();
    let change = QueueChange {
        timeout_ms: Some(9_000),
        deadline_in_ms: Some(700),
        ..QueueChange::default()
    };
    let set = SetQueue { queue: queue("q"), change, expected_version: None };
    world.run(Command::SetQueue(set));
    world.add("a");
    let view = world.view("a");
    assert_eq!((view.timeout_ms, view.deadline_ms), (Some(9_000), Some(world.now_ms + 700)));
    world.put(enqueue_with("free", "q", |options| {
        options.timeout_ms = Some(0);
        options.deadline_in_ms = Some(0);
    }));
    let view = world.view("free");
    assert_eq!((view.timeout_ms, view.deadline_ms), (None, None));
}
