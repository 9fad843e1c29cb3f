//! Remembered results: the same work is not done twice, what is remembered is bounded, and its blobs are referred to (A3).

mod common;
use common::*;
use ikada_state::limits::{RECALL_WAIT_MS, REMEMBERED_MAX, REMEMBERED_MS_MAX};
use ikada_state::*;

fn program(mark: u8) -> ProgramRef {
    let name = ProgramName::parse("count").unwrap();
    let digest = Some(Digest([mark; 32]));
    ProgramRef { name, kind: ProgramKind::Command, digest, entry: None }
}

fn text(name: &str, text: &str) -> Input {
    let name = ObjectName::parse(name).unwrap();
    Input { name, source: InputSource::Text(text.to_owned()) }
}

fn work(mark: u8, input: &str) -> Work {
    let settings = vec![("top".to_owned(), "5".to_owned())];
    let inputs = vec![text("a.txt", input)];
    Work {
        program: program(mark),
        settings,
        inputs,
        job: None,
        reuse: Some(true),
        output_url: None,
    }
}

fn task(id: &str, work: Work) -> Enqueue {
    let mut order = enqueue_with(id, "q", |options| options.work = Some(work.into()));
    order.payload = SharedBytes::from(&b"payload"[..]);
    order
}

fn output(mark: u8) -> Output {
    Output {
        name: ObjectName::parse("out.txt").unwrap(),
        size: 3,
        content_type: "text/plain".into(),
        digest: Digest([mark; 32]),
        chunks: vec![Digest([mark; 32])].into(),
        address: None,
    }
}

fn bring(grant: &Grant, mark: u8) -> Command {
    Command::Complete(Complete {
        keeps_digest: None,
        id: grant.id.clone(),
        fence: grant.fence,
        worker: worker("w"),
        result: Some(vec![mark].into()),
        then: None,
        outputs: vec![output(mark)],
    })
}

fn published(shard: &Shard, name: &str) -> Option<Digest> {
    let bucket = BucketName::parse("tasks").unwrap();
    let key = (Namespace::default(), bucket, ObjectName::parse(name).unwrap());
    shard.object(&key).and_then(|object| object.newest()).map(|version| version.digest)
}

#[test]
fn b4_28_the_same_work_is_done_with_what_is_remembered_and_other_work_is_not() {
    let mut world = World::new();
    world.put(task("t1", work(1, "x")));
    let first = world.take(1).remove(0);
    assert_eq!(world.run(bring(&first, 7)), Reply::Completed);
    let mut world = world.reload();
    world.put(task("t2", work(1, "x")));
    assert_eq!(world.state("t2"), TaskState::Done);
    let view = world.view("t2");
    assert_eq!(view.result.as_deref(), Some(&[7][..]));
    assert_eq!((view.attempt, view.attempts[0].worker.as_str()), (1, "reused"));
    assert_eq!(published(&world.shard, "t2/out.txt"), Some(Digest([7; 32])));
    assert!(view.outputs_digest.is_some(), "the attempt tells what it brought");
    assert_eq!(world.view("t1").outputs_digest, None, "nobody asked for it");
    assert!(world.take(9).is_empty(), "nobody runs it");
    // Another program, input, setting or payload is other work; so is what is not known by its content, and who does not ask.
    let mut settings = work(1, "x");
    settings.settings[0].1 = "6".to_owned();
    let mut address = work(1, "x");
    address.inputs[0].source = address_of(None);
    let mut handler = work(1, "x");
    handler.program.digest = None;
    let silent = Work { reuse: None, ..work(1, "x") };
    let others = [work(2, "x"), work(1, "y"), settings, address, handler, silent];
    for (place, other) in others.into_iter().enumerate() {
        world.put(task(&format!("o{place}"), other));
    }
    let mut payload = task("o6", work(1, "x"));
    payload.payload = SharedBytes::from(&b"other"[..]);
    world.put(payload);
    assert_eq!(world.take(9).len(), 7, "all of them are run");
}

// TQ-21: nobody reported what was found done before, so no place among the remembered reports is spent on it.
#[test]
fn tq_21_what_was_found_done_is_not_remembered_as_a_report() {
    let mut world = World::new();
    world.run(Command::KeepDead(KeepDead { shard: 0 }));
    world.put(task("t1", work(1, "x")));
    let first = world.take(1).remove(0);
    assert_eq!(world.run(bring(&first, 7)), Reply::Completed);
    world.put(task("t2", work(1, "x")));
    assert_eq!(world.state("t2"), TaskState::Done);
    for (id, remembered) in [("t2", 0), ("t1", 1)] {
        world.run(Command::Drop(DropTask { id: task_id(id) }));
        assert_eq!(world.shard.sizes().settled, remembered, "{id}");
    }
}

#[test]
fn another_namespace_gets_nothing_of_it() {
    let mut world = World::new();
    world.put(task("t1", work(1, "x")));
    let first = world.take(1).remove(0);
    world.run(bring(&first, 7));
    let namespace = Namespace::parse("other").unwrap();
    let command = Command::Enqueue(task("t1", work(1, "x")));
    world.one(Order { namespace: namespace.clone(), request: None, command });
    assert_eq!(world.shard.task(&namespace, &task_id("t1")).unwrap().state, TaskState::Ready);
}

// A3: the task that brought it is gone, its blobs are still referred to until the result is forgotten.
#[test]
fn a3_blobs_of_a_remembered_result_are_referred_to_until_it_is_forgotten() {
    let mut world = World::new();
    world.put(task("t1", work(1, "x")));
    let first = world.take(1).remove(0);
    world.run(bring(&first, 7));
    world.run(Command::Drop(DropTask { id: task_id("t1") }));
    assert_eq!(published(&world.shard, "t1/out.txt"), None);
    let mut world = world.reload();
    let digests = vec![Digest([7; 32])];
    let collect = Command::Collect(Collect { node: 1, digests: digests.clone().into() });
    assert_eq!(world.run(collect.clone()), refused(RefusalCode::BlobReferenced));
    assert_eq!(world.shard.freeze().pieces().collect::<Vec<_>>(), digests, "a backup has it");
    world.tick(REMEMBERED_MS_MAX);
    assert_eq!(world.shard.remembered_count(), 0);
    assert_eq!(world.run(collect), Reply::Collected);
    world.put(task("t2", work(1, "x")));
    assert_eq!(world.state("t2"), TaskState::Ready);
}

// Q13
#[test]
fn q13_the_oldest_results_leave_when_there_are_too_many() {
    let mut world = World::of(Shard::genesis(0, 2, &[]));
    world.check_every = 8;
    let remember = |number: u64| {
        let mut key = [0; 32];
        key[8..16].copy_from_slice(&number.to_le_bytes());
        let stored = Box::new(Stored { result: None, outputs: vec![output(number as u8)] });
        let namespace = Namespace::default();
        let message = Message::Remember { namespace, key: Digest(key), stored };
        order(Command::Deliver(Deliver { source: 1, sequence: number, message }))
    };
    let numbers: Vec<u64> = (1..=REMEMBERED_MAX as u64 + 10).collect();
    for some in numbers.chunks(2_000) {
        world.give(&some.iter().map(|number| remember(*number)).collect::<Vec<_>>());
    }
    let world = world.reload();
    assert_eq!(world.shard.remembered_count(), REMEMBERED_MAX);
    let known = |number: u64| {
        let mut key = [0; 32];
        key[8..16].copy_from_slice(&number.to_le_bytes());
        world.shard.remembered(&Namespace::default(), &Digest(key)).is_some()
    };
    assert!(!known(10) && known(11) && known(REMEMBERED_MAX as u64 + 10));
}

/// Two shards, and a hand that carries their messages.
struct Two([World; 2]);

impl Two {
    fn new() -> Two {
        Two([0, 1].map(|shard| World::of(Shard::genesis(shard, 2, &[]))))
    }

    /// Delivers what waits, each message twice; tells how many.
    fn carry(&mut self) -> usize {
        let mut count = 0;
        for (source, target) in [(0u16, 1u16), (1, 0)] {
            for item in self.0[usize::from(source)].shard.outbox_pending(target, 0, 99) {
                let (sequence, message) = (item.sequence, item.message);
                let order = Command::Deliver(Deliver { source, sequence, message });
                self.0[usize::from(target)].run(order.clone());
                self.0[usize::from(target)].run(order);
                self.0[usize::from(source)].run(Command::Acked(Acked { target, sequence }));
                count += 1;
            }
        }
        self.0 = [self.0[0].reload(), self.0[1].reload()];
        count
    }

    /// Work whose result is remembered in the other shard than this one.
    fn work_elsewhere(&self, shard: u64) -> Work {
        let elsewhere = |work: &Work| {
            let digest = work.digest(b"payload").unwrap();
            u64::from(digest.0[0]) % 2 != shard
        };
        (0..99).map(|number| work(1, &number.to_string())).find(elsewhere).unwrap()
    }
}

#[test]
fn a_result_is_found_in_whichever_shard_remembers_it() {
    let mut two = Two::new();
    let work = two.work_elsewhere(0);
    two.0[0].put(task("t1", work.clone()));
    // It waits for the answer, which is that nothing is known.
    assert_eq!(two.0[0].state("t1"), TaskState::Scheduled);
    assert!(two.0[0].take(9).is_empty());
    while two.carry() > 0 {}
    let first = two.0[0].take(9).remove(0);
    two.0[0].run(bring(&first, 7));
    two.0[0].run(Command::Drop(DropTask { id: task_id("t1") }));
    // A3: on its way, the result's blobs are referred to by nothing but the message.
    assert!(two.0[0].shard.refers_to(&Digest([7; 32])));
    while two.carry() > 0 {}
    assert!(!two.0[0].shard.refers_to(&Digest([7; 32])));
    assert!(two.0[1].shard.refers_to(&Digest([7; 32])));
    two.0[0].put(task("t2", work.clone()));
    two.carry();
    assert!(two.0[1].shard.outbox_pending(0, 0, 9).is_empty(), "asked and answered");
    while two.carry() > 0 {}
    assert_eq!(two.0[0].state("t2"), TaskState::Done);
    assert_eq!(published(&two.0[0].shard, "t2/out.txt"), Some(Digest([7; 32])));
    // In the shard that remembers it, it is done at once.
    two.0[1].put(task("t3", work));
    assert_eq!(two.0[1].state("t3"), TaskState::Done);
}

#[test]
fn who_gets_no_answer_runs_and_a_late_answer_changes_nothing() {
    let mut two = Two::new();
    let work = two.work_elsewhere(0);
    two.0[1].put(task("known", work.clone()));
    let known = two.0[1].take(9).remove(0);
    two.0[1].run(bring(&known, 7));
    two.0[0].put(task("t1", work));
    two.0[0].tick(RECALL_WAIT_MS);
    two.0[0].tick(1);
    let grant = two.0[0].take(9).remove(0);
    while two.carry() > 0 {}
    assert_eq!(two.0[0].state("t1"), TaskState::Claimed);
    assert_eq!(two.0[0].run(bring(&grant, 1)), Reply::Completed);
}

fn stage(name: &str, source: StageSource) -> StageSpec {
    StageSpec {
        name: StageName::parse(name).unwrap(),
        program: program(1),
        settings: Vec::new(),
        source,
        after: Vec::new(),
        settle: Settle::All,
    }
}

fn job_of(stages: Vec<StageSpec>) -> JobSpec {
    JobSpec { reuse: Some(true), ..job_spec(stages) }
}

#[test]
fn b4_28_a_job_of_the_same_work_ends_without_a_worker() {
    let mut world = World::new();
    let submit = |name: &str| {
        let numbers = StageSource::Range { from: 0, to: 3, step: 1 };
        let sum = StageSource::Gather { of: vec![0], fan_in: 0 };
        let spec = job_of(vec![stage("map", numbers), stage("sum", sum)]);
        let id = JobId::parse(name).unwrap();
        Command::SubmitJob(SubmitJob::new(id, spec))
    };
    let job = |world: &World, name: &str| {
        world.shard.job(&Namespace::default(), &JobId::parse(name).unwrap()).unwrap().clone()
    };
    world.run(submit("j1"));
    for (place, grant) in world.take(9).iter().enumerate() {
        assert_eq!(world.run(bring(grant, place as u8)), Reply::Completed);
    }
    let sum = world.take(9).remove(0);
    assert_eq!(world.run(bring(&sum, 9)), Reply::Completed);
    assert_eq!(job(&world, "j1").stages()[0].reused, None);
    world.run(submit("j2"));
    world.tick(1);
    let again = job(&world, "j2");
    assert_eq!(again.status(), JobStatus::Done);
    assert_eq!((again.stages()[0].reused, again.stages()[1].reused), (Some(3), Some(1)));
    assert_eq!(again.result().map(|(_, result)| result.to_vec()), Some(vec![9]));
    let bucket = BucketName::parse("jobs").unwrap();
    let page = world.shard.objects(&Namespace::default(), &bucket, "j2/", None, 10);
    assert_eq!(page.objects.len(), 4, "it has outputs of its own");
}

fn address_of(offset: Option<u64>) -> InputSource {
    InputSource::Url { url: "file:///x".to_owned(), offset, length: None, etag: None }
}

// A snapshot or log of a program that cuts no addresses reads as it did, and hashes as it did.
#[test]
fn b4_35_a_whole_address_is_encoded_as_before_and_a_part_of_one_is_of_a_higher_level() {
    let whole = minicbor::to_vec(address_of(None)).unwrap();
    assert_eq!(whole, [&[0x82, 0x01, 0x81, 0x69][..], b"file:///x"].concat());
    let part = minicbor::to_vec(address_of(Some(7))).unwrap();
    assert_eq!(part, [&[0x82, 0x01, 0x82, 0x69][..], b"file:///x", &[7]].concat());
    assert_eq!(minicbor::decode::<InputSource>(&part).unwrap(), address_of(Some(7)));
    let level = |offset: Option<u64>| {
        let mut plain = Work { reuse: None, ..work(1, "x") };
        plain.inputs[0].source = address_of(offset);
        let stages = vec![stage("map", StageSource::Inputs(plain.inputs.clone()))];
        let spec = JobSpec { reuse: None, ..job_of(stages) };
        let id = JobId::parse("j").unwrap();
        let job = Command::SubmitJob(SubmitJob::new(id, spec));
        (Command::Enqueue(task("t", plain)).level(), job.level())
    };
    assert_eq!((level(None), level(Some(0))), ((0, 0), (1, 1)));
}

// A snapshot or log of a program that knows nothing of reuse reads as it did, and hashes as it did.
#[test]
fn what_does_not_reuse_is_encoded_as_before() {
    let plain = Work { reuse: None, ..work(1, "x") };
    assert_eq!(
        minicbor::to_vec(&plain).unwrap()[0],
        0x83,
        "three fields: what is none at the end is left out"
    );
    assert_eq!(minicbor::to_vec(work(1, "x")).unwrap()[0], 0x85, "five");
    assert_eq!(minicbor::to_vec(StageProgress::default()).unwrap()[0], 0x87, "seven");
    let command = |work: Work| Command::Enqueue(task("t", work)).level();
    assert_eq!((command(plain), command(work(1, "x"))), (0, 1));
}
