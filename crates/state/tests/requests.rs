//! Idempotency by task id and by request id, namespaces, listings, epochs.

mod common;
use common::*;
use ikada_state::*;

// TQ-4, Q8
#[test]
fn tq_4_enqueue_is_idempotent_by_id_and_body() {
    let mut world = World::new();
    world.add("a");
    let same = world.run(Command::Enqueue(enqueue("a", "q")));
    assert_eq!(same, Reply::Enqueued { id: task_id("a"), created: false });
    let mut other = enqueue("a", "q");
    other.priority = Some(5);
    assert_eq!(world.run(Command::Enqueue(other)), refused(RefusalCode::Conflict));
    assert_eq!(world.shard.sizes().ready, 1);
}

/// A task or job that names a program, as it is once the program was looked up.
fn resolved(digest: u8) -> (Enqueue, SubmitJob) {
    let name = ProgramName::parse("p").unwrap();
    let digest = Some(Digest([digest; 32]));
    let program = ProgramRef { name, kind: ProgramKind::Command, digest, entry: None };
    let work = Work {
        program: program.clone(),
        settings: Vec::new(),
        inputs: Vec::new(),
        job: None,
        reuse: None,
        output_url: None,
    };
    let task = enqueue_with("t", "q", |options| options.work = Some(work.into()));
    let stage = StageSpec {
        name: StageName::parse("map").unwrap(),
        program,
        settings: Vec::new(),
        source: StageSource::Range { from: 0, to: 1, step: 1 },
        after: Vec::new(),
        settle: Settle::All,
    };
    let spec = JobSpec { retention_ms: 1_000, ..job_spec(vec![stage]) };
    let id = JobId::parse("j").unwrap();
    (task, SubmitJob::new(id, spec))
}

// TQ-4, TQ-21: what a program's name stands for may change between a submission and its resend.
#[test]
fn tq_21_a_submission_is_known_by_what_was_asked_for() {
    let (asked_task, asked_job) = resolved(0);
    let sent = |digest: u8| {
        let (mut task, mut job) = resolved(digest);
        task.keep_asked(&asked_task);
        job.keep_asked(&asked_job);
        (Command::Enqueue(task), Command::SubmitJob(job))
    };
    let mut world = World::new();
    let (task, job) = sent(1);
    assert_eq!((task.level(), job.level()), (1, 1), "older programs would pass over it");
    let first = (world.one(requested("r", task)), world.one(requested("s", job)));
    let mut world = world.reload();
    let (task, job) = sent(2);
    assert_eq!(world.one(requested("r", task.clone())), first.0);
    assert_eq!(world.one(requested("s", job.clone())), first.1);
    // Known by its id, too.
    assert_eq!(world.run(task), Reply::Enqueued { id: task_id("t"), created: false });
    assert_eq!(world.run(job), Reply::JobSubmitted { created: false });
    let view = world.shard.task(&Namespace::default(), &task_id("t")).unwrap();
    let digest = view.work.as_ref().and_then(|work| work.program.digest);
    assert_eq!(digest, Some(Digest([1; 32])), "the first is what runs");
    // Another body under the same key is another submission; and so is all that older programs know by its whole body.
    let (Command::Enqueue(mut other), Command::SubmitJob(mut strange)) = sent(2) else { panic!() };
    other.forget_asked();
    strange.forget_asked();
    let (other, strange) = (Command::Enqueue(other), Command::SubmitJob(strange));
    assert_eq!((other.level(), strange.level()), (0, 0));
    let conflict = refused(RefusalCode::IdempotencyConflict);
    assert_eq!(world.one(requested("r", other)), conflict);
    assert_eq!(world.one(requested("s", strange)), conflict);
}

// Q8, Q9, TQ-21
#[test]
fn tq_21_a_request_id_returns_the_first_reply() {
    let mut world = World::new();
    let first = world.one(requested("r", Command::Enqueue(enqueue("a", "q"))));
    assert_eq!(world.one(requested("r", Command::Enqueue(enqueue("a", "q")))), first);
    let mut world = world.reload();
    assert_eq!(world.one(requested("r", Command::Enqueue(enqueue("a", "q")))), first);
    let conflict = refused(RefusalCode::IdempotencyConflict);
    assert_eq!(world.one(requested("r", Command::Enqueue(enqueue("b", "q")))), conflict);
    let cancel = Command::Cancel(Cancel { id: task_id("a") });
    assert_eq!(world.one(requested("r", cancel.clone())), conflict);
    assert_eq!(world.one(requested("c", cancel.clone())), Reply::Cancelled);
    assert_eq!(world.one(requested("c", cancel.clone())), Reply::Cancelled);
    assert_eq!(world.run(cancel), refused(RefusalCode::TaskFinished));
    let recorded = world.shard.request(&Namespace::default(), &key("r")).unwrap();
    assert_eq!(recorded.outcome, Outcome::Enqueued { created: true });
    assert_eq!(world.shard.request(&Namespace::default(), &key("x")), None);
}

// TQ-22: the window holds by count and by time, and a refusal for lack of room is not remembered.
#[test]
fn tq_22_the_submit_window_is_bounded() {
    let mut world = World::with(Limits { submit_window_max: 3, ..limits_small() });
    for number in 0..5 {
        let id = format!("t{number}");
        world.one(requested(&id, Command::Enqueue(enqueue(&id, "q"))));
    }
    let seen = |world: &World, id| world.shard.request(&Namespace::default(), &key(id)).is_some();
    assert!(!seen(&world, "t1") && seen(&world, "t2"));
    world.tick(100_001);
    assert!(!seen(&world, "t4"));
    let mut world = World::with(Limits { pending_tasks_max: 1, ..limits_small() });
    world.add("a");
    let retry = requested("r", Command::Enqueue(enqueue("b", "q")));
    assert_eq!(world.one(retry.clone()), refused(RefusalCode::QueueFull));
    world.run(Command::Cancel(Cancel { id: task_id("a") }));
    assert_eq!(world.one(retry), Reply::Enqueued { id: task_id("b"), created: true });
}

// X5: the same id in two namespaces is two tasks.
#[test]
fn namespaces_do_not_meet() {
    let mut world = World::new();
    world.add("a");
    let other = Namespace::parse("other").unwrap();
    let foreign = |command| Order { namespace: other.clone(), request: None, command };
    let reply = world.one(foreign(Command::Enqueue(enqueue("a", "q"))));
    assert_eq!(reply, Reply::Enqueued { id: task_id("a"), created: true });
    let grant = world.take(9).remove(0);
    let reply = world.one(foreign(complete(&grant, "w")));
    assert_eq!(reply, refused(RefusalCode::StaleFence));
    let filter = TaskFilter { namespace: Some(other), ..TaskFilter::default() };
    assert_eq!(world.shard.tasks(&filter, None, 10).tasks.len(), 1);
}

#[test]
fn listings_come_in_pages() {
    let mut world = World::new();
    (0..10).for_each(|number| world.add(&format!("t{number}")));
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = world.shard.tasks(&TaskFilter::default(), after, 3);
        found.extend(page.tasks.into_iter().map(|task| task.id));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    found.sort();
    found.dedup();
    assert_eq!(found.len(), 10);
    let ready = TaskFilter { state: Some(TaskState::Done), ..TaskFilter::default() };
    assert!(world.shard.tasks(&ready, None, 3).tasks.is_empty());
}

// B4-16: what runs where, also beside many tasks that nobody holds.
#[test]
fn b4_16_tasks_are_listed_by_the_worker_that_has_them() {
    let mut world = World::new();
    (0..10).for_each(|number| world.add(&format!("t{number}")));
    let held: Vec<TaskId> = world.take(3).into_iter().map(|grant| grant.id).collect();
    let by = |worker: &str, state| TaskFilter {
        worker: Some(WorkerId::parse(worker).unwrap()),
        state,
        ..TaskFilter::default()
    };
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = world.shard.tasks(&by("w", Some(TaskState::Claimed)), after, 2);
        assert!(page.tasks.len() <= 2);
        found.extend(page.tasks.into_iter().map(|task| task.id));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    found.sort();
    assert_eq!(found, held);
    assert_eq!(world.shard.tasks(&by("w", None), None, 10).tasks.len(), 3);
    assert!(world.shard.tasks(&by("other", Some(TaskState::Claimed)), None, 10).tasks.is_empty());
}

#[test]
fn tasks_are_found_by_a_part_of_their_ids() {
    let mut world = World::new();
    ["letter-1", "letter-2", "parcel-1"].iter().for_each(|id| world.add(id));
    let found = |text: &str| {
        let filter = TaskFilter { find: Some(text.into()), ..TaskFilter::default() };
        let page = world.shard.tasks(&filter, None, 10);
        let mut ids: Vec<String> =
            page.tasks.iter().map(|task| task.id.as_str().to_owned()).collect();
        ids.sort();
        ids
    };
    assert_eq!(found("letter"), ["letter-1", "letter-2"]);
    assert_eq!(found("-1"), ["letter-1", "parcel-1"]);
    assert_eq!(found("Letter"), Vec::<String>::new(), "letters count as they are");
}

// F-31
#[test]
fn a_raised_epoch_exceeds_all_older_fences() {
    let mut world = World::new();
    ["a", "b"].iter().for_each(|id| world.add(id));
    let before = world.take(1)[0].fence;
    let raise = |epoch| Command::RaiseEpoch(RaiseEpoch { epoch });
    assert_eq!(world.run(raise(0)), refused(RefusalCode::VersionConflict));
    assert_eq!(world.run(raise(3)), Reply::EpochRaised);
    let after = world.reload().take(1)[0].fence;
    assert_eq!(after.epoch(), 3);
    assert!(after > before);
}

#[test]
fn live_claims_can_be_listed_and_found() {
    let mut world = World::new();
    ["a", "b"].iter().for_each(|id| world.add(id));
    let grants = world.take(2);
    world.run(complete(&grants[0], "w"));
    let world = world.reload();
    let claims: Vec<ClaimView> = world.shard.claims().collect();
    assert_eq!(claims.len(), 1);
    assert_eq!((claims[0].id.as_str(), claims[0].fence), ("b", grants[1].fence));
    assert_eq!(world.shard.claim_at(claims[0].slot, claims[0].fence), Some(claims[0].clone()));
    assert_eq!(world.shard.claim_at(claims[0].slot, Fence(0)), None);
}
