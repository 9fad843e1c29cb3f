//! Jobs whose tasks read from many others: bounded steps, bounded windows, a reason that says what to do (B4-32, B4-34).

mod common;
use common::*;
use ikada_state::*;

fn submit(stages: Vec<StageSpec>, newest: bool) -> Command {
    submit_as("j", stages, newest)
}

fn submit_as(id: &str, stages: Vec<StageSpec>, newest: bool) -> Command {
    let mut submit = SubmitJob::new(JobId::parse(id).unwrap(), job_spec(stages));
    if newest {
        submit.follow_newest_rules();
    }
    Command::SubmitJob(submit)
}

fn bring(grant: &Grant, names: &[String]) -> Order {
    let output = |name: &String| Output {
        name: ObjectName::parse(name).unwrap(),
        size: 0,
        content_type: "text/plain".into(),
        digest: Digest([1; 32]),
        chunks: Vec::new().into(),
        address: None,
    };
    order(Command::Complete(Complete {
        keeps_digest: None,
        id: grant.id.clone(),
        fence: grant.fence,
        worker: worker("w"),
        result: None,
        then: None,
        outputs: names.iter().map(output).collect(),
    }))
}

fn job(world: &World) -> Job {
    (**world.shard.job(&Namespace::default(), &JobId::parse("j").unwrap()).unwrap()).clone()
}

fn range(count: u64) -> StageSource {
    StageSource::Range { from: 0, to: count, step: 1 }
}

/// A world in which all tasks of the first stage are done, each with one file.
fn split(tasks: u64, partitions: u32, newest: bool) -> World {
    let mut world = World::new();
    world.check_every = 100;
    let shuffle = StageSource::Shuffle { of: vec![0], partitions };
    world.run(submit(vec![stage("split", range(tasks)), stage("join", shuffle)], newest));
    let mut done = 0;
    while done < tasks {
        let grants = world.take(500);
        done += grants.len() as u64;
        let ends: Vec<Order> =
            grants.iter().map(|grant| bring(grant, &["part-3".to_owned()])).collect();
        assert!(world.give(&ends).iter().all(|reply| *reply == Reply::Completed));
        world.tick(1);
    }
    world
}

#[test]
fn b4_32_a_wide_shuffle_comes_into_being_in_steps_by_what_it_reads() {
    let mut world = split(2_048, 600, true);
    let mut before = job(&world).stages()[1].expanded;
    assert!(before <= 14, "{before} tasks that read 2048 each came at once");
    for entry in 0.. {
        world.tick(1);
        if entry == 5 {
            world = world.reload();
        }
        let now = job(&world).stages()[1].expanded;
        assert!(now - before <= 7, "{} in one entry", now - before);
        if now == before {
            break;
        }
        before = now;
    }
    // A window of a million files, named by the unfinished tasks together.
    assert!((500..=512).contains(&before), "{before}");
    let fourth = world.take(4).remove(3);
    assert_eq!(fourth.work.unwrap().inputs.len(), 2_048, "each task's part, found by its name");
    assert_eq!(world.shard.next_scheduled_ms(), None, "the window is full");
}

// F-34: jobs of a namespace at its quota look nothing up, however much they would read, and hold up nobody else's.
#[test]
fn b4_32_f_34_wide_jobs_without_room_hold_up_no_others() {
    let within = |namespace: &str, command: Command| {
        let namespace = Namespace::parse(namespace).unwrap();
        Order { namespace, request: None, command }
    };
    let mut world = World::new();
    world.check_every = 1_000;
    for number in 0..8 {
        let shuffle = StageSource::Shuffle { of: vec![0], partitions: 600 };
        let stages = vec![stage("split", range(2_048)), stage("join", shuffle)];
        world.one(within("team", submit_as(&format!("j{number}"), stages, true)));
    }
    let quota = QuotaChange { pending_max: Some(1), ..QuotaChange::default() };
    world.one(within("team", Command::Enqueue(enqueue("waits", "other"))));
    (0..40).for_each(|_| world.tick(1));
    world.one(within("team", Command::SetQuota(SetQuota { change: quota })));
    loop {
        let claim = Command::Claim(claim("w", &["q"], 500));
        let Reply::Claimed { tasks } = world.one(within("team", claim)) else { unreachable!() };
        if tasks.is_empty() {
            break;
        }
        let part = ["part-3".to_owned()];
        let ends = tasks.iter().map(|grant| within("team", bring(grant, &part).command));
        world.give(&ends.collect::<Vec<Order>>());
    }
    world.one(within("zoo", submit_as("small", vec![stage("map", range(3))], true)));
    world.tick(1);
    let expanded = |namespace: &str, id: &str, stage: usize| {
        let namespace = Namespace::parse(namespace).unwrap();
        let job = world.shard.job(&namespace, &JobId::parse(id).unwrap()).unwrap();
        job.stages()[stage].expanded
    };
    assert_eq!((expanded("team", "j0", 0), expanded("team", "j0", 1)), (2_048, 0));
    assert_eq!(expanded("zoo", "small", 0), 3);
}

#[test]
fn b4_32_a_job_of_an_older_node_keeps_its_pace() {
    let world = split(200, 600, false);
    assert_eq!(job(&world).stages()[1].expanded, 600);
    assert_eq!(job(&world.reload()).stages()[1].expanded, 600);
}

#[test]
fn b4_32_a_job_that_reads_too_much_says_what_to_do() {
    for (newest, words) in [(true, "fan_in"), (false, "too_large")] {
        let mut world = World::new();
        let gather = StageSource::Gather { of: vec![0], fan_in: 0 };
        world.run(submit(vec![stage("map", range(5)), stage("merge", gather)], newest));
        let names: Vec<String> = (0..1_000).map(|file| format!("f{file}")).collect();
        for grant in world.take(5) {
            world.one(bring(&grant, &names));
        }
        let job = job(&world);
        assert_eq!(job.status(), JobStatus::Error);
        let reason = String::from_utf8_lossy(job.reason().unwrap()).into_owned();
        assert!(reason.contains("task 0 of stage merge") && reason.contains(words), "{reason}");
        assert_eq!(reason.contains("4096"), newest, "{reason}");
    }
}

// Each stage reads from all before it: counted from the first on, not by asking each for each.
#[test]
fn b4_2_stages_that_read_from_all_before_are_counted_at_once() {
    let mut stages = vec![stage("s0", range(1))];
    for place in 1..32u16 {
        let of = (0..place).collect();
        stages.push(stage(&format!("s{place}"), StageSource::Gather { of, fan_in: 2_000 }));
    }
    let mut world = World::new();
    assert_eq!(world.run(submit(stages, true)), Reply::JobSubmitted { created: true });
    assert_eq!(job(&world).stages().len(), 32);
}

#[test]
fn b4_34_a_resend_by_way_of_an_older_node_is_the_same_job() {
    let mut world = World::new();
    let stages = || vec![stage("map", range(2))];
    assert_eq!(world.run(submit(stages(), true)), Reply::JobSubmitted { created: true });
    assert_eq!(world.run(submit(stages(), false)), Reply::JobSubmitted { created: false });
    assert_eq!(submit(stages(), false).level(), 0, "understood by every version");
    assert_eq!(submit(stages(), true).level(), 1);
}
