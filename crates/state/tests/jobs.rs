//! Jobs: stages, windows, settling, errors, cancellation, retention (B4-1 to B4-14, B4-29 to B4-34).

mod common;
use common::*;
use ikada_state::*;

fn program(name: &str) -> ProgramRef {
    let name = ProgramName::parse(name).unwrap();
    ProgramRef { name, kind: ProgramKind::Handler, digest: None, entry: None }
}

fn stage(name: &str, source: StageSource) -> StageSpec {
    StageSpec {
        name: StageName::parse(name).unwrap(),
        program: program("wordcount"),
        settings: vec![("case".to_owned(), "fold".to_owned())],
        source,
        after: Vec::new(),
        settle: Settle::All,
    }
}

fn numbers(count: u64) -> StageSource {
    StageSource::Range { from: 0, to: count, step: 1 }
}

fn spec(stages: Vec<StageSpec>) -> JobSpec {
    JobSpec {
        name: "test".into(),
        max_attempts: Some(2),
        backoff: Some(Backoff { base_ms: 0, cap_ms: 0 }),
        ..job_spec(stages)
    }
}

fn id(name: &str) -> JobId {
    JobId::parse(name).unwrap()
}

fn submit(name: &str, spec: JobSpec) -> Command {
    Command::SubmitJob(SubmitJob::new(id(name), spec))
}

fn job(world: &World, name: &str) -> Job {
    (**world.shard.job(&Namespace::default(), &id(name)).unwrap()).clone()
}

fn status(world: &World, name: &str) -> JobStatus {
    job(world, name).status()
}

fn bring(grant: &Grant, names: &[&str]) -> Command {
    let output = |name: &&str| Output {
        name: ObjectName::parse(name).unwrap(),
        size: 0,
        content_type: "text/plain".into(),
        digest: Digest([1; 32]),
        chunks: Vec::new().into(),
        address: None,
    };
    Command::Complete(Complete {
        keeps_digest: None,
        id: grant.id.clone(),
        fence: grant.fence,
        worker: worker("w"),
        result: Some(b"7".to_vec().into()),
        then: None,
        outputs: names.iter().map(output).collect(),
    })
}

// B4-1, B4-4, B4-6, B4-7, B4-10, B4-11
#[test]
fn b4_1_b4_7_b4_11_a_map_and_its_reduce_end_done_with_one_result() {
    let mut world = World::new();
    let sum = stage("sum", StageSource::Gather { of: vec![0], fan_in: 0 });
    let reply = world.run(submit("j1", spec(vec![stage("map", numbers(3)), sum])));
    assert_eq!(reply, Reply::JobSubmitted { created: true });
    // B4-4: nothing but the submission was needed for the tasks to be there.
    assert_eq!(status(&world, "j1"), JobStatus::NotStarted);
    assert_eq!(job(&world, "j1").stages()[0].expanded, 3);
    let grants = world.take(10);
    assert_eq!(grants.len(), 3, "the reduce waits");
    let work = grants[1].work.clone().unwrap();
    assert_eq!(work.settings, [("case".to_owned(), "fold".to_owned())]);
    assert_eq!(work.inputs[0].source, InputSource::Text("1 2\n".into()));
    assert_eq!(status(&world, "j1"), JobStatus::InProgress);
    for grant in &grants {
        assert_eq!(world.run(bring(grant, &["counts"])), Reply::Completed);
    }
    let mut world = world.reload();
    // B4-7: open, and none assigned.
    assert_eq!(status(&world, "j1"), JobStatus::Halted);
    let sum = world.take(10).remove(0);
    let inputs = sum.work.clone().unwrap().inputs.clone();
    let names: Vec<&str> = inputs.iter().map(|input| input.name.as_str()).collect();
    assert_eq!(names, ["map.0.counts", "map.1.counts", "map.2.counts"]);
    assert_eq!(world.run(bring(&sum, &["total"])), Reply::Completed);
    assert_eq!(status(&world, "j1"), JobStatus::Done);
    let done = job(&world, "j1");
    assert_eq!(
        done.result().map(|(task, result)| (task.as_str(), &**result)),
        Some(("j1:sum.0", &b"7"[..]))
    );
    assert!(world.take(10).is_empty(), "the reduce ran once");
    let bucket = BucketName::parse("jobs").unwrap();
    let page = world.shard.objects(&Namespace::default(), &bucket, "j1/", None, 10);
    let names: Vec<&str> = page.objects.iter().map(|object| object.name.as_str()).collect();
    assert_eq!(names, ["j1/map/0/counts", "j1/map/1/counts", "j1/map/2/counts", "j1/sum/0/total"]);
}

// B4-34, Q8
#[test]
fn b4_34_a_job_is_accepted_once_and_as_a_whole() {
    let mut world = World::new();
    let order = submit("j1", spec(vec![stage("map", numbers(2))]));
    assert_eq!(world.run(order.clone()), Reply::JobSubmitted { created: true });
    assert_eq!(world.run(order), Reply::JobSubmitted { created: false });
    let other = submit("j1", spec(vec![stage("map", numbers(3))]));
    assert_eq!(world.run(other), refused(RefusalCode::Conflict));
    assert_eq!(world.take(10).len(), 2);
    // Nobody else makes tasks under a job's key.
    let stranger = world.run(Command::Enqueue(enqueue("j1:extra", "q")));
    assert_eq!(stranger, refused(RefusalCode::KeyConflict));
}

// B4-2
#[test]
fn b4_2_a_job_without_tasks_is_refused() {
    let mut world = World::new();
    let loops = StageSource::Gather { of: vec![0], fan_in: 0 };
    let bad = [
        spec(Vec::new()),
        spec(vec![stage("map", numbers(0))]),
        spec(vec![stage("map", StageSource::Inputs(Vec::new()))]),
        spec(vec![stage("map", numbers(1)), stage("map", numbers(1))]),
        spec(vec![stage("map", loops)]),
        spec(vec![StageSpec { settle: Settle::Quorum(3), ..stage("map", numbers(2)) }]),
        spec(vec![stage("map", numbers(20_000_000))]),
    ];
    for bad in bad {
        let reply = world.run(submit("j1", bad.clone()));
        assert!(matches!(reply, Reply::Refused { .. }), "{bad:?}");
    }
    assert!(world.shard.job(&Namespace::default(), &id("j1")).is_none());
}

// B4-29
#[test]
fn b4_29_attempts_that_run_out_end_the_job_in_error_with_the_reason() {
    let mut world = World::new();
    world.run(submit("j1", spec(vec![stage("map", numbers(5))])));
    for _ in 0..2 {
        let grant = world.take(1).remove(0);
        assert_eq!(grant.id.as_str().split('.').next(), Some("j1:map"));
        world.run(Command::Fail(Fail { delay_ms: Some(0), ..fail(&grant, "w") }));
        // The same task again, not the next: it goes to the end of the line otherwise.
        while world.state(grant.id.as_str()) == TaskState::Ready {
            let next = world.take(1).remove(0);
            let end = match next.id == grant.id {
                true => Command::Fail(Fail { delay_ms: Some(0), ..fail(&next, "w") }),
                false => bring(&next, &[]),
            };
            world.run(end);
        }
        if status(&world, "j1") == JobStatus::Error {
            break;
        }
    }
    let ended = job(&world, "j1");
    assert_eq!(ended.status(), JobStatus::Error);
    let reason = String::from_utf8_lossy(ended.reason().unwrap()).into_owned();
    assert!(reason.contains("j1:map.0") && reason.contains("boom"), "{reason}");
    assert!(world.take(10).is_empty(), "the rest is cancelled");
    let dead = world.run(Command::Retry(Retry { id: task_id("j1:map.0") }));
    assert_eq!(dead, refused(RefusalCode::JobFinished));
}

// B4-33
#[test]
fn b4_33_one_success_settles_and_the_rest_is_cancelled() {
    let mut world = World::new();
    let any = StageSpec { settle: Settle::Any, ..stage("search", numbers(10)) };
    world.run(submit("j1", spec(vec![any])));
    let grants = world.take(4);
    world.run(Command::Fail(Fail { retry: false, ..fail(&grants[0], "w") }));
    assert_eq!(status(&world, "j1"), JobStatus::InProgress, "others may still succeed");
    assert_eq!(world.run(bring(&grants[1], &["found"])), Reply::Completed);
    assert_eq!(status(&world, "j1"), JobStatus::Done);
    // Q10: a late result is refused, and brings nothing.
    assert_eq!(world.run(bring(&grants[2], &["late"])), refused(RefusalCode::TaskFinished));
    let stage = job(&world, "j1").stages()[0];
    assert_eq!((stage.done, stage.dead, stage.cancelled, stage.open()), (1, 1, 8, 0));
    let quorum = StageSpec { settle: Settle::Quorum(2), ..stage_named("vote") };
    world.run(submit("j2", spec(vec![quorum])));
    let grants = world.take(3);
    world.run(bring(&grants[0], &[]));
    assert_eq!(status(&world, "j2"), JobStatus::InProgress);
    world.run(bring(&grants[1], &[]));
    assert_eq!(status(&world, "j2"), JobStatus::Done);
}

fn stage_named(name: &str) -> StageSpec {
    stage(name, numbers(3))
}

// B4-32
#[test]
fn b4_32_a_shuffle_hands_each_partition_to_one_task() {
    let mut world = World::new();
    let split = stage("split", numbers(2));
    let join = stage("join", StageSource::Shuffle { of: vec![0], partitions: 2 });
    let tree = stage("tree", StageSource::Gather { of: vec![1], fan_in: 1 });
    world.run(submit("j1", spec(vec![split, join, tree])));
    for (place, grant) in world.take(2).iter().enumerate() {
        let names: &[&str] =
            if place == 0 { &["part-0", "part-1", "part-10"] } else { &["part-1"] };
        world.run(bring(grant, names));
    }
    let joins = world.take(10);
    let read = |grant: &Grant| -> Vec<String> {
        grant.work.clone().unwrap().inputs.iter().map(|input| input.name.to_string()).collect()
    };
    assert_eq!(read(&joins[0]), ["split.0.part-0"]);
    assert_eq!(read(&joins[1]), ["split.0.part-1", "split.1.part-1"]);
    for grant in &joins {
        world.run(bring(grant, &["out"]));
    }
    let trees = world.take(10);
    assert_eq!(trees.iter().map(read).collect::<Vec<_>>(), [["join.0.out"], ["join.1.out"]]);
}

// B4-30, Q10
#[test]
fn b4_30_a_cancelled_job_frees_everything_and_takes_nothing_more() {
    let mut world = World::new();
    world.run(submit("j1", spec(vec![stage("map", numbers(5_000))])));
    world.tick(1);
    let held = world.take(3);
    assert_eq!(world.run(Command::CancelJob(CancelJob { id: id("j1") })), Reply::JobCancelled);
    assert_eq!(world.run(bring(&held[0], &["late"])), refused(RefusalCode::TaskFinished));
    let mut entries = 0;
    while world.shard.next_scheduled_ms() == Some(0) {
        world.tick(1);
        entries += 1;
        assert!(entries < 20, "sweeping ends");
    }
    let stage = job(&world, "j1").stages()[0];
    assert_eq!((stage.open(), stage.claimed), (0, 0));
    assert!(world.take(10).is_empty());
    assert_eq!(world.run(Command::CancelJob(CancelJob { id: id("j1") })), Reply::JobCancelled);
    let none = world.run(Command::CancelJob(CancelJob { id: id("none") }));
    assert_eq!(none, refused(RefusalCode::JobNotFound));
}

#[test]
fn a_large_job_lives_in_a_window_and_goes_on_after_a_restore() {
    let mut world = World::new();
    world.check_every = 25;
    world.run(submit("big", spec(vec![stage("map", numbers(25_000))])));
    let mut done = 0;
    for round in 0.. {
        world.tick(1);
        if round % 20 == 3 {
            world = world.reload();
        }
        let open = job(&world, "big").stages()[0].open();
        assert!(open <= 10_000, "{open}");
        let ends: Vec<Order> =
            world.take(1_000).iter().map(|grant| order(bring(grant, &[]))).collect();
        done += ends.len();
        assert!(world.give(&ends).iter().all(|reply| *reply == Reply::Completed));
        if status(&world, "big") == JobStatus::Done {
            break;
        }
        assert!(round < 100, "{done}");
    }
    assert_eq!(done, 25_000);
}

// The same with bounds of its own, as a simulator sets them.
#[test]
fn a_job_comes_into_being_in_the_steps_that_the_bounds_allow() {
    let (job_chunk, job_window) = (Some(2), Some(5));
    let mut world = World::with(Limits { job_chunk, job_window, ..Limits::default() });
    world.run(submit("j1", spec(vec![stage("map", numbers(9))])));
    let expanded = |world: &World| job(world, "j1").stages()[0].expanded;
    assert_eq!(expanded(&world), 2);
    world.tick(1);
    let mut world = world.reload();
    assert_eq!(expanded(&world), 4);
    world.tick(1);
    assert_eq!(expanded(&world), 4, "another two would be six");
    for (grant, wanted) in world.take(3).iter().zip([6, 6, 8]) {
        world.run(bring(grant, &[]));
        assert_eq!(expanded(&world), wanted, "two more once three are open");
    }
}

#[test]
fn a_finished_job_goes_with_its_outputs_when_its_time_is_over() {
    let mut world = World::new();
    world.run(submit("j1", spec(vec![stage("map", numbers(2))])));
    for grant in world.take(2) {
        world.run(bring(&grant, &["out"]));
    }
    assert_eq!(world.shard.sizes().objects, 2);
    world.tick(59_000);
    assert_eq!(world.shard.sizes().jobs, 1);
    world.tick(2_000);
    assert_eq!((world.shard.sizes().jobs, world.shard.sizes().objects), (0, 0));
    // The id is free again.
    let again = world.run(submit("j1", spec(vec![stage("map", numbers(2))])));
    assert_eq!(again, Reply::JobSubmitted { created: true });
    assert_eq!(world.take(5).len(), 2);
}

#[test]
fn the_last_part_of_a_range_ends_where_the_range_does() {
    let mut world = World::new();
    let range = StageSource::Range { from: 3, to: 10, step: 4 };
    world.run(submit("j1", spec(vec![stage("map", range)])));
    let texts: Vec<InputSource> = world
        .take(10)
        .iter()
        .map(|grant| grant.work.clone().unwrap().inputs[0].source.clone())
        .collect();
    assert_eq!(texts, [InputSource::Text("3 7\n".into()), InputSource::Text("7 10\n".into())]);
}

#[test]
fn a_task_of_somebody_else_does_not_make_way_for_a_job() {
    let mut world = World::new();
    let other = TaskId::parse("j1:map.0").unwrap();
    let mut plain = Enqueue::new(other.clone(), queue("q"), b"mine".as_slice());
    plain.priority = Some(9);
    world.run(Command::Enqueue(plain));
    world.run(submit("j1", spec(vec![stage("map", numbers(1))])));
    assert_eq!(status(&world, "j1"), JobStatus::Error, "told, instead of taking the task's place");
    let grant = world.take(10).remove(0);
    assert_eq!((grant.id, &*grant.payload), (other, &b"mine"[..]));
}
