//! Work and outputs: what a task runs reaches every attempt (B4-13), and only the completion that counts publishes (A4).

mod common;
use common::*;
use ikada_state::*;

fn work() -> SharedWork {
    let name = ProgramName::parse("wordcount").unwrap();
    let program = ProgramRef { name, kind: ProgramKind::Handler, digest: None, entry: None };
    let settings = vec![("case".to_owned(), "fold".to_owned())];
    Work { program, settings, inputs: Vec::new(), job: None, reuse: None, output_url: None }.into()
}

fn output(name: &str, mark: u8) -> Output {
    Output {
        name: ObjectName::parse(name).unwrap(),
        size: 3,
        content_type: "text/plain".into(),
        digest: Digest([mark; 32]),
        chunks: vec![Digest([mark; 32])].into(),
        address: None,
    }
}

/// A job of two stages whose last brings its outputs somewhere.
fn job_with_address() -> Command {
    let stage = |name: &str, source: StageSource| StageSpec {
        name: StageName::parse(name).unwrap(),
        program: work().program.clone(),
        settings: Vec::new(),
        source,
        after: Vec::new(),
        settle: Settle::All,
    };
    let spec = JobSpec {
        output_url: Some("s3://out/x".to_owned()),
        ..job_spec(vec![
            stage("map", StageSource::Range { from: 0, to: 1, step: 1 }),
            stage("sum", StageSource::Gather { of: vec![0], fan_in: 0 }),
        ])
    };
    Command::SubmitJob(SubmitJob::new(JobId::parse("j").unwrap(), spec))
}

// A4: the completion that counts decides which address does, and nothing else does.
#[test]
fn b4_35_an_address_is_recorded_by_the_completion_that_counts_and_lies_where_it_was_told() {
    let mut world = World::new();
    assert_eq!(job_with_address().level(), 1);
    world.run(job_with_address());
    let placed = |at: &str| Output { address: Some(at.to_owned()), ..output("a", 1) };
    let map = world.take(1).remove(0);
    let told = |grant: &Grant| grant.work.as_ref().unwrap().output_url.clone();
    assert_eq!(told(&map), None, "what the next stage reads stays here");
    let elsewhere = bring(&map, vec![placed("s3://out/x/j/map/0/1/a")]);
    assert_eq!(elsewhere.level(), 1);
    assert_eq!(world.run(elsewhere), Reply::refused(RefusalCode::BadValue));
    let here = bring(&map, vec![output("a", 1)]);
    assert_eq!(here.level(), 0);
    assert_eq!(world.run(here), Reply::Completed);

    let sum = world.take(1).remove(0);
    assert_eq!(told(&sum).as_deref(), Some("s3://out/x"));
    let fence = sum.fence;
    for bad in [
        "s3://other/x/a".to_owned(),
        "s3://out/x\n".to_owned(),
        "s3://out/x".repeat(300),
        // Beside the folder, and in the folders of others: other jobs, stages, tasks, attempts and outputs.
        format!("s3://out/xyz/j/sum/0/{fence}/a"),
        format!("s3://out/x/i/sum/0/{fence}/a"),
        format!("s3://out/x/j/map/0/{fence}/a"),
        format!("s3://out/x/j/sum/1/{fence}/a"),
        format!("s3://out/x/j/sum/0/{}/a", fence.0 - 1),
        format!("s3://out/x/j/sum/0/{fence}/b"),
        format!("s3://out/x/j/sum/0/{fence}/../a"),
        format!("s3://out/x//j/sum/0/{fence}/a"),
    ] {
        let refused = world.run(bring(&sum, vec![placed(&bad)]));
        assert_eq!(refused, Reply::refused(RefusalCode::BadValue), "{bad}");
    }
    let stale = Grant { fence: Fence(sum.fence.0 + 1), ..sum.clone() };
    let late =
        world.run(bring(&stale, vec![placed(&format!("s3://out/x/j/sum/0/{}/a", stale.fence))]));
    assert_eq!(late, Reply::refused(RefusalCode::StaleFence));
    let won = format!("s3://out/x/j/sum/0/{fence}/a");
    assert_eq!(world.run(bring(&sum, vec![placed(&won)])), Reply::Completed);
    let world = world.reload();
    let bucket = BucketName::parse("jobs").unwrap();
    let name = ObjectName::parse("j/sum/0/a").unwrap();
    let object = world.shard.object(&(Namespace::default(), bucket, name)).unwrap();
    assert_eq!(object.newest().unwrap().address.as_deref(), Some(won.as_str()));
}

// A snapshot or log of a program that knows no addresses of outputs reads as it did, and hashes as it did.
#[test]
fn b4_35_what_has_no_address_is_encoded_as_before() {
    assert_eq!(minicbor::to_vec(output("a", 1)).unwrap()[0], 0x85, "five");
    let placed = Output { address: Some("s3://out/x".to_owned()), ..output("a", 1) };
    assert_eq!(minicbor::to_vec(placed).unwrap()[0], 0x86, "six");
    assert_eq!(minicbor::to_vec(&*work()).unwrap()[0], 0x83, "three");
    let version = ObjectVersion {
        version: 1,
        size: 0,
        content_type: String::new(),
        digest: Digest([1; 32]),
        chunks: Vec::new().into(),
        created_ms: 1,
        address: None,
    };
    assert_eq!(minicbor::to_vec(version).unwrap()[0], 0x86, "six");
}

fn bring(grant: &Grant, outputs: Vec<Output>) -> Command {
    let (id, fence) = (grant.id.clone(), grant.fence);
    let worker = worker("w");
    Command::Complete(Complete {
        keeps_digest: None,
        id,
        fence,
        worker,
        result: None,
        then: None,
        outputs,
    })
}

fn published(world: &World, bucket: &str, name: &str) -> Option<Digest> {
    let bucket = BucketName::parse(bucket).unwrap();
    let key = (Namespace::default(), bucket, ObjectName::parse(name).unwrap());
    world.shard.object(&key).and_then(|object| object.newest()).map(|version| version.digest)
}

// B4-13
#[test]
fn b4_13_every_attempt_sees_the_submitted_settings() {
    let mut world = World::new();
    world.put(enqueue_with("t1", "q", |options| options.work = Some(work())));
    let first = world.take(1).remove(0);
    assert_eq!(first.work, Some(work()));
    world.run(Command::Fail(Fail { delay_ms: Some(0), ..fail(&first, "w") }));
    let mut world = world.reload();
    let second = world.take(1).remove(0);
    assert_eq!((second.attempt, second.work), (2, Some(work())));
    assert_eq!(world.view("t1").work, Some(work()));
}

#[test]
fn a_plain_submission_cannot_pose_as_part_of_a_job() {
    let mut world = World::new();
    let job = JobId::parse("j").unwrap();
    let part = JobPart { job, stage: StageName::parse("map").unwrap(), index: 0, twin: None };
    let posing = Work { job: Some(part), ..(*work()).clone() };
    let order = enqueue_with("j:map.0", "q", |options| options.work = Some(posing.into()));
    assert_eq!(world.run(Command::Enqueue(order)), refused(RefusalCode::BadValue));
}

// A4
#[test]
fn a4_only_the_completion_that_counts_publishes() {
    let mut world = World::new();
    world.add("t1");
    let stale = world.take(1).remove(0);
    world.run(expire(stale.id.clone(), stale.fence));
    world.tick(60_000);
    let winner = world.take(1).remove(0);
    let late = world.run(bring(&stale, vec![output("out.txt", 1)]));
    assert_eq!(late, refused(RefusalCode::StaleFence));
    assert_eq!(published(&world, "tasks", "t1/out.txt"), None);
    assert_eq!(world.run(bring(&winner, vec![output("out.txt", 2)])), Reply::Completed);
    assert_eq!(published(&world, "tasks", "t1/out.txt"), Some(Digest([2; 32])));
    // Neither a resend nor the stale attempt changes anything.
    assert_eq!(world.run(bring(&winner, vec![output("other", 3)])), Reply::Completed);
    assert_eq!(
        world.run(bring(&stale, vec![output("out.txt", 1)])),
        refused(RefusalCode::StaleFence)
    );
    assert_eq!(published(&world, "tasks", "t1/out.txt"), Some(Digest([2; 32])));
    assert_eq!(published(&world, "tasks", "t1/other"), None);
    assert_eq!(world.reload().view("t1").outputs, 1);
}

#[test]
fn outputs_go_with_their_task() {
    let mut world = World::new();
    for id in ["t1", "k:t1"] {
        world.add(id);
        let grant = world.take(1).remove(0);
        world.run(bring(&grant, vec![output("a", 1), output("b/c", 2)]));
        assert_eq!(published(&world, "tasks", &format!("{id}/b/c")), Some(Digest([2; 32])));
    }
    world.run(Command::Drop(DropTask { id: task_id("t1") }));
    assert_eq!(published(&world, "tasks", "t1/a"), None);
    assert_eq!(published(&world, "tasks", "t1/b/c"), None);
    assert!(published(&world, "tasks", "k:t1/a").is_some());
    // A queue that keeps nothing keeps no outputs either.
    let change = QueueChange { retention_count: Some(0), ..QueueChange::default() };
    world.run(Command::SetQueue(SetQueue { queue: queue("q"), change, expected_version: None }));
    world.add("t2");
    let grant = world.take(1).remove(0);
    world.run(bring(&grant, vec![output("a", 7)]));
    assert_eq!(published(&world, "tasks", "t2/a"), None);
    assert!(!world.shard.refers_to(&Digest([7; 32])));
}

#[test]
fn bad_outputs_refuse_the_whole_completion() {
    let mut world = World::new();
    world.add("t1");
    let grant = world.take(1).remove(0);
    let bad = [
        vec![output("a", 1), output("a", 2)],
        vec![Output { size: 5 << 20, ..output("a", 1) }],
        (0..1025).map(|place| output(&format!("o{place}"), 1)).collect(),
    ];
    for outputs in bad {
        assert!(matches!(world.run(bring(&grant, outputs)), Reply::Refused { .. }));
        assert_eq!(world.state("t1"), TaskState::Claimed);
        assert_eq!(published(&world, "tasks", "t1/a"), None);
    }
    assert_eq!(world.run(bring(&grant, vec![output("a", 1)])), Reply::Completed);
}

fn log(name: &str, mark: u8) -> Command {
    Command::PutObject(PutObject {
        bucket: BucketName::parse("logs").unwrap(),
        name: ObjectName::parse(name).unwrap(),
        size: 3,
        content_type: "text/plain".into(),
        digest: Digest([mark; 32]),
        chunks: vec![Digest([mark; 32])].into(),
        condition: PutCondition::Any,
        upload: None,
    })
}

#[test]
fn logs_belong_to_tasks_with_programs_and_go_with_them() {
    let mut world = World::new();
    world.put(enqueue_with("t1", "q", |options| options.work = Some(work())));
    world.add("plain");
    assert!(matches!(world.run(log("t1/1", 1)), Reply::ObjectPut { .. }));
    assert!(matches!(world.run(log("t1/1", 2)), Reply::ObjectPut { .. }));
    assert_eq!(world.run(log("none/1", 1)), refused(RefusalCode::TaskNotFound));
    for bad in ["t1", "t1/0", "t1/x", "t1/1/2", "plain/1"] {
        assert_eq!(world.run(log(bad, 1)), refused(RefusalCode::BadValue), "{bad}");
    }
    let mut world = world.reload();
    assert_eq!(published(&world, "logs", "t1/1"), Some(Digest([2; 32])));
    world.run(Command::Cancel(Cancel { id: TaskId::parse("t1").unwrap() }));
    assert_eq!(published(&world, "logs", "t1/1"), Some(Digest([2; 32])), "kept after the end");
    world.run(Command::Drop(DropTask { id: TaskId::parse("t1").unwrap() }));
    assert_eq!(published(&world, "logs", "t1/1"), None);
}

fn bring_noted(grant: &Grant, outputs: Vec<Output>) -> Command {
    let Command::Complete(mut complete) = bring(grant, outputs) else { panic!("a completion") };
    complete.keep_digest();
    Command::Complete(complete)
}

// An attempt tells what it brought by a digest that depends on names and contents alone.
#[test]
fn b4_28_an_attempt_records_the_digest_of_its_outputs() {
    let mut world = World::new();
    let task = |id: &str| enqueue_with(id, "q", |options| options.work = Some(work()));
    let brought = [
        vec![output("a", 1), output("b", 2)],
        vec![output("b", 2), output("a", 1)],
        vec![output("a", 2), output("b", 1)],
        vec![output("a", 1)],
        vec![],
    ];
    for place in 0..brought.len() {
        world.put(task(&format!("t{place}")));
    }
    for (grant, outputs) in world.take(9).iter().zip(brought) {
        let noted = bring_noted(grant, outputs.clone());
        assert_eq!(noted.level(), u32::from(!outputs.is_empty()));
        assert_eq!(world.run(noted), Reply::Completed);
    }
    let world = world.reload();
    let digest = |id: &str| world.view(id).outputs_digest;
    assert!(digest("t0").is_some());
    assert_eq!(digest("t0"), digest("t1"), "the order plays no part");
    assert_ne!(digest("t0"), digest("t2"));
    assert_ne!(digest("t0"), digest("t3"));
    assert_eq!(digest("t4"), None, "it brought none");
}

// What an older program completed is stored and hashed as it was, and so is a task without outputs.
#[test]
fn b4_28_what_records_no_digest_leaves_no_trace() {
    let mut world = World::new();
    world.put(enqueue_with("t", "q", |options| options.work = Some(work())));
    let grant = world.take(1).remove(0);
    let (plain, noted) =
        (bring(&grant, vec![output("a", 1)]), bring_noted(&grant, vec![output("a", 1)]));
    let bytes = |command: &Command| minicbor::to_vec(command).unwrap().len();
    assert!(bytes(&plain) < bytes(&noted));
    assert_eq!(bring_noted(&grant, vec![]), bring(&grant, vec![]));
    assert_eq!(world.run(plain), Reply::Completed);
    assert_eq!(world.reload().view("t").outputs_digest, None);
    let same = world.run(noted);
    assert_eq!((same, world.view("t").outputs_digest), (Reply::Completed, None), "a resend");
}
