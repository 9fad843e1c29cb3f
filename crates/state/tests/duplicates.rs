//! Slow tasks of a job run a second time beside the first: one result, one set of files, the loser is cancelled (B4-26, A4).

mod common;
use common::*;
use ikada_state::*;

fn submit(count: u64, duplicate_after: Option<u16>) -> Command {
    submit_to(count, duplicate_after, None)
}

fn submit_to(count: u64, duplicate_after: Option<u16>, output_url: Option<&str>) -> Command {
    let stage = stage("map", StageSource::Range { from: 0, to: count, step: 1 });
    let spec = JobSpec {
        max_attempts: Some(2),
        backoff: Some(Backoff { base_ms: 0, cap_ms: 0 }),
        duplicate_after,
        output_url: output_url.map(str::to_owned),
        ..job_spec(vec![stage])
    };
    let mut submit = SubmitJob::new(JobId::parse("j").unwrap(), spec);
    submit.follow_newest_rules();
    Command::SubmitJob(submit)
}

fn job(world: &World) -> Job {
    let id = JobId::parse("j").unwrap();
    (**world.shard.job(&Namespace::default(), &id).unwrap()).clone()
}

fn take(world: &mut World, name: &str, max: u32) -> Vec<Grant> {
    match world.run(Command::Claim(claim(name, &["q"], max))) {
        Reply::Claimed { tasks } => tasks,
        other => panic!("claim was answered with {other:?}"),
    }
}

fn bring(grant: &Grant, name: &str, mark: u8) -> Command {
    let output = Output {
        name: ObjectName::parse("out").unwrap(),
        size: 3,
        content_type: "text/plain".into(),
        digest: Digest([mark; 32]),
        chunks: vec![Digest([mark; 32])].into(),
        address: None,
    };
    Command::Complete(Complete {
        keeps_digest: Some(true),
        id: grant.id.clone(),
        fence: grant.fence,
        worker: worker(name),
        result: Some(vec![mark].into()),
        then: None,
        outputs: vec![output],
    })
}

fn published(world: &World) -> Vec<(String, Digest)> {
    let bucket = BucketName::parse("jobs").unwrap();
    let page = world.shard.objects(&Namespace::default(), &bucket, "j/map/3/", None, 10);
    let digest = |object: &Object| object.newest().map(|version| version.digest).unwrap();
    page.objects.iter().map(|object| (object.name.to_string(), digest(object))).collect()
}

/// A job whose last task is slow and has a twin, which nobody has claimed yet; the claim of the slow one.
fn slow(world: &mut World) -> Grant {
    slow_to(world, None)
}

fn slow_to(world: &mut World, output_url: Option<&str>) -> Grant {
    world.run(submit_to(4, Some(3), output_url));
    let mut grants = take(world, "slow", 4);
    let last = grants.pop().unwrap();
    world.tick(1_000);
    for grant in &grants {
        assert!(world.shard.stragglers(world.now_ms, 9).is_empty(), "nobody can tell yet");
        assert_eq!(world.run(bring(grant, "slow", 1)), Reply::Completed);
    }
    // The others took a second each.
    assert!(world.shard.stragglers(world.now_ms + 2_000, 9).is_empty());
    let slow = world.shard.stragglers(world.now_ms + 2_001, 9);
    assert_eq!(
        slow,
        [(Namespace::default(), Duplicate { id: last.id.clone(), fence: last.fence })]
    );
    let begun = world.run(Command::Duplicate(slow[0].1.clone()));
    assert_eq!(begun, Reply::Enqueued { id: task_id("j:map.3.twin"), created: true });
    assert!(world.shard.stragglers(world.now_ms + 9_000, 9).is_empty(), "one is enough");
    last
}

// The twin writes below its own fence, and the record of the first says so.
#[test]
fn b4_35_a_twin_brings_its_output_where_its_own_fence_says() {
    let mut world = World::new();
    let first = slow_to(&mut world, Some("s3://out"));
    let twin = take(&mut world, "fast", 1).remove(0);
    assert_ne!(twin.fence, first.fence);
    let placed = |fence: Fence| {
        let Command::Complete(mut order) = bring(&twin, "fast", 2) else { unreachable!() };
        order.outputs[0].address = Some(format!("s3://out/j/map/3/{fence}/out"));
        Command::Complete(order)
    };
    assert_eq!(world.run(placed(first.fence)), Reply::refused(RefusalCode::BadValue));
    assert_eq!(world.run(placed(twin.fence)), Reply::Completed);
    let (bucket, name) = (BucketName::parse("jobs"), ObjectName::parse("j/map/3/out"));
    let object = world.shard.object(&(Namespace::default(), bucket.unwrap(), name.unwrap()));
    let address = object.unwrap().newest().unwrap().address.clone();
    assert_eq!(address, Some(format!("s3://out/j/map/3/{}/out", twin.fence)));
}

#[test]
fn a4_the_second_is_done_first_and_the_first_can_no_longer_publish() {
    let mut world = World::new();
    let first = slow(&mut world);
    // Not to the worker that is slow.
    assert!(take(&mut world, "slow", 9).is_empty());
    let queue = world.shard.queue_handle(&Namespace::default(), &queue("q")).unwrap();
    let asks =
        |name: &str| world.shard.is_claimable_at(queue, &Labels::default(), Some(&worker(name)));
    assert!(!asks("slow") && asks("fast"), "a leader writes nothing for who gets nothing");
    let mut world = world.reload();
    let second = take(&mut world, "fast", 9).remove(0);
    assert_eq!(second.work.as_ref().unwrap().job.as_ref().unwrap().index, 3);
    assert_eq!(world.run(bring(&second, "fast", 8)), Reply::Completed);
    assert_eq!(world.run(bring(&second, "fast", 8)), Reply::Completed, "resent");
    assert_eq!(world.run(bring(&first, "slow", 5)), refused(RefusalCode::StaleFence));
    assert_eq!(published(&world), [("j/map/3/out".to_owned(), Digest([8; 32]))]);
    let view = world.view("j:map.3");
    assert!(view.outputs_digest.is_some(), "what it brought is recorded where it counts");
    let outcomes: Vec<AttemptOutcome> = view.attempts.iter().map(|it| it.outcome).collect();
    assert_eq!(outcomes, [AttemptOutcome::Outrun, AttemptOutcome::Completed]);
    assert_eq!((view.attempt, view.attempts[1].worker.as_str()), (1, "fast"));
    let job = job(&world);
    assert_eq!((job.status(), job.stages()[0].done), (JobStatus::Done, 4));
    assert_eq!(job.stages()[0].duplicated, Some(1));
}

#[test]
fn a4_the_first_is_done_first_and_the_second_is_cancelled_with_it() {
    let mut world = World::new();
    let first = slow(&mut world);
    let second = take(&mut world, "fast", 9).remove(0);
    assert_eq!(world.run(bring(&first, "slow", 5)), Reply::Completed);
    assert_eq!(world.state("j:map.3.twin"), TaskState::Cancelled);
    assert_eq!(world.run(bring(&second, "fast", 8)), refused(RefusalCode::TaskFinished));
    assert_eq!(published(&world), [("j/map/3/out".to_owned(), Digest([5; 32]))]);
    assert_eq!(job(&world).status(), JobStatus::Done);
}

#[test]
fn b4_26_the_first_dies_and_the_second_goes_on() {
    let mut world = World::new();
    let first = slow(&mut world);
    let second = take(&mut world, "fast", 9).remove(0);
    world.run(expire(first.id.clone(), first.fence));
    // Claimed again meanwhile: its fence is higher than the second one's.
    let again = take(&mut world, "third", 9).remove(0);
    assert!(again.fence > second.fence);
    assert_eq!(world.run(bring(&second, "fast", 8)), Reply::Completed);
    assert_eq!(world.run(bring(&again, "third", 6)), refused(RefusalCode::StaleFence));
    assert_eq!(published(&world), [("j/map/3/out".to_owned(), Digest([8; 32]))]);
    assert_eq!(job(&world).status(), JobStatus::Done);
}

// What the second did has run, even if the first waited to be claimed again.
#[test]
fn b4_26_what_a_second_did_is_not_counted_as_reused() {
    let mut world = World::new();
    let first = slow(&mut world);
    let second = take(&mut world, "fast", 9).remove(0);
    world.run(expire(first.id.clone(), first.fence));
    assert_eq!(world.state("j:map.3"), TaskState::Ready);
    assert_eq!(world.run(bring(&second, "fast", 8)), Reply::Completed);
    let stage = job(&world).stages()[0];
    assert_eq!((stage.done, stage.reused), (4, None));
}

#[test]
fn b4_29_a_second_that_fails_leaves_the_first_alone() {
    let mut world = World::new();
    let first = slow(&mut world);
    let second = take(&mut world, "fast", 9).remove(0);
    world.run(Command::Fail(fail(&second, "fast")));
    assert_eq!(world.state("j:map.3.twin"), TaskState::Dead);
    assert_eq!(job(&world).status(), JobStatus::InProgress);
    assert_eq!(world.run(bring(&first, "slow", 5)), Reply::Completed);
    assert_eq!(job(&world).status(), JobStatus::Done);
}

#[test]
fn b4_30_a_cancelled_job_takes_both_along() {
    let mut world = World::new();
    slow(&mut world);
    let second = take(&mut world, "fast", 9).remove(0);
    world.run(Command::CancelJob(CancelJob { id: JobId::parse("j").unwrap() }));
    world.tick(1);
    for id in ["j:map.3", "j:map.3.twin"] {
        assert_eq!(world.state(id), TaskState::Cancelled, "{id}");
    }
    assert_eq!(world.run(bring(&second, "fast", 8)), refused(RefusalCode::TaskFinished));
}

// Found by the random orders: whoever ends many tasks at once has both in its list.
#[test]
fn q2_a_worker_that_is_gone_ends_each_of_two_tasks_once() {
    let mut world = World::new();
    let first = slow(&mut world);
    let second = take(&mut world, "fast", 9).remove(0);
    world.run(expire(first.id.clone(), first.fence));
    // Its last attempt, by the worker that holds the other one too.
    assert_eq!(take(&mut world, "fast", 9).len(), 1);
    let (id, session) = (worker("fast"), Some(SessionId(1)));
    world.run(Command::RegisterWorker(RegisterWorker {
        id: id.clone(),
        session: SessionId(1),
        slots: 2,
        labels: Labels::default(),
        queues: vec![queue("q")],
        version: "1".to_owned(),
        replaces: None,
    }));
    world.run(Command::RemoveWorker(RemoveWorker { id, session, forget: false }));
    assert_eq!(world.state("j:map.3"), TaskState::Dead);
    assert!(world.view("j:map.3.twin").state.is_terminal());
    assert_eq!(world.run(bring(&second, "fast", 8)), refused(RefusalCode::TaskFinished));
    assert_eq!(job(&world).status(), JobStatus::Error);
}

#[test]
fn only_who_asks_for_it_and_only_a_live_claim_is_begun_again() {
    let mut world = World::new();
    world.run(submit(4, None));
    let mut grants = take(&mut world, "slow", 4);
    let last = grants.pop().unwrap();
    for grant in &grants {
        world.run(bring(grant, "slow", 1));
    }
    assert!(!world.shard.watches_jobs());
    assert!(world.shard.stragglers(world.now_ms + 99_000, 9).is_empty());
    let order = Duplicate { id: last.id.clone(), fence: last.fence };
    assert_eq!(world.run(Command::Duplicate(order)), refused(RefusalCode::BadValue));
    let mut world = World::new();
    let first = slow(&mut world);
    let stale = Duplicate { id: first.id.clone(), fence: Fence(first.fence.0 - 1) };
    assert_eq!(world.run(Command::Duplicate(stale)), refused(RefusalCode::StaleFence));
    let again = Duplicate { id: first.id, fence: first.fence };
    assert_eq!(world.run(Command::Duplicate(again)), refused(RefusalCode::Conflict));
}
