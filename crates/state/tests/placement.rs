//! Who is handed what: a part of few tasks, and what the worker has at hand before what it has not, within bounds (B4-36).

mod common;
use common::*;
use ikada_state::limits::{HOLDS_MAX, NEAR_PLACES, NEAR_TASKS_MAX};
use ikada_state::*;

fn digest(name: &str) -> Digest {
    Digest([name.as_bytes()[0]; 32])
}

fn work(program: &str, inputs: &[&str]) -> SharedWork {
    let name = ProgramName::parse(program).unwrap();
    let digest_of = Some(digest(program));
    let program = ProgramRef { name, kind: ProgramKind::Command, digest: digest_of, entry: None };
    let input = |name: &&str| Input {
        name: ObjectName::parse(name).unwrap(),
        source: InputSource::Object {
            bucket: BucketName::parse("texts").unwrap(),
            key: ObjectName::parse(name).unwrap(),
            version: Some(1),
            digest: Some(digest(name)),
            offset: 0,
            length: None,
        },
    };
    let inputs = inputs.iter().map(input).collect();
    Work { program, settings: Vec::new(), inputs, job: None, reuse: None, output_url: None }.into()
}

fn runs(id: &str, program: &str) -> Enqueue {
    enqueue_with(id, "q", |options| options.work = Some(work(program, &[])))
}

fn holding(names: &[&str], max: u32) -> Claim {
    let marks = names.iter().map(|name| digest(name).mark()).collect();
    Claim { holds: Some(marks), ..claim("w", &["q"], max) }
}

fn take(world: &mut World, claim: Claim) -> Vec<String> {
    match world.run(Command::Claim(claim)) {
        Reply::Claimed { tasks } => tasks.iter().map(|grant| grant.id.to_string()).collect(),
        other => panic!("claim was answered with {other:?}"),
    }
}

#[test]
fn b4_36_a_claim_is_handed_its_share_and_a_resend_the_same() {
    let mut world = World::new();
    for number in 0..8 {
        world.put(runs(&format!("t{number}"), "p"));
    }
    let ask = |share| Command::Claim(Claim { share, ..claim("w", &["q"], 8) });
    let first = world.one(requested("c", ask(Some(3))));
    let Reply::Claimed { tasks } = &first else { panic!("{first:?}") };
    assert_eq!(tasks.len(), 3);
    // Others may wait, or wait no more, when it is sent again.
    let mut world = world.reload();
    assert_eq!(world.one(requested("c", ask(Some(1)))), first);
    assert_eq!(world.one(requested("c", ask(None))), first);
    assert_eq!(world.run(ask(Some(0))), refused(RefusalCode::BadValue));
    let all = Claim { share: Some(99), ..claim("w", &["q"], 2) };
    assert_eq!(take(&mut world, all).len(), 2, "never more than asked for");
    let rest = Claim { share: Some(5), ..claim("w", &["q"], 8) };
    assert_eq!(take(&mut world, rest).len(), 3);
}

#[test]
fn b4_36_what_older_programs_know_is_encoded_as_before() {
    let plain = claim("w", &["q"], 1);
    assert_eq!(minicbor::to_vec(&plain).unwrap()[0], 0x85, "five");
    assert_eq!(Command::Claim(plain.clone()).level(), 0);
    let shared = Claim { share: Some(1), ..plain };
    assert_eq!(minicbor::to_vec(&shared).unwrap()[0], 0x86, "six");
    assert_eq!(Command::Claim(shared).level(), 1);
    assert_eq!(Command::Claim(holding(&["p"], 1)).level(), 1);
    let many = Claim { holds: Some(vec![1; HOLDS_MAX + 1]), ..claim("w", &["q"], 1) };
    assert_eq!(World::new().run(Command::Claim(many)), refused(RefusalCode::TooLarge));
}

#[test]
fn b4_36_a_worker_is_handed_what_it_has_at_hand() {
    let mut world = World::new();
    for (id, program) in [("p1", "p"), ("q1", "q"), ("p2", "p"), ("q2", "q"), ("q3", "q")] {
        world.put(runs(id, program));
    }
    let both = |options: &mut TaskOptions| options.work = Some(work("q", &["a.txt"]));
    world.put(enqueue_with("q4", "q", both));
    assert_eq!(take(&mut world, holding(&["q"], 1)), ["q1"]);
    let mut world = world.reload();
    assert_eq!(take(&mut world, holding(&["q", "a"], 1)), ["q4"], "program and input");
    assert_eq!(take(&mut world, holding(&["x"], 1)), ["p1"], "else the first");
    assert_eq!(take(&mut world, holding(&["q"], 9)), ["q2", "q3", "p2"], "and then the others");
}

#[test]
fn b4_36_priorities_keys_labels_and_plain_tasks_come_before_what_is_at_hand() {
    let mut world = World::new();
    let mut urgent = runs("urgent", "p");
    urgent.priority = Some(9);
    let keyed = enqueue_with("k:1", "q", |options| {
        options.work = Some(work("q", &[]));
        options.key_limit = Some(1);
    });
    let labelled = enqueue_with("gpu", "q", |options| {
        options.work = Some(work("q", &[]));
        options.labels = labels(&[("gpu", "yes")]);
    });
    for task in [runs("first", "p"), keyed, labelled, urgent] {
        world.put(task);
    }
    assert_eq!(take(&mut world, holding(&["q"], 1)), ["urgent"], "a higher priority is first");
    assert_eq!(take(&mut world, holding(&["q"], 1)), ["first"], "a key's turn is not changed");
    world.put(runs("second", "p"));
    let suited = Claim { labels: labels(&[("gpu", "yes")]), ..holding(&["q"], 1) };
    assert_eq!(take(&mut world, holding(&["q"], 1)), ["k:1"]);
    assert_eq!(take(&mut world, suited), ["gpu"], "it may have it, and has the program");
    assert_eq!(take(&mut world, holding(&["q"], 1)), ["second"]);
    world.add("plain");
    world.put(runs("third", "q"));
    assert_eq!(take(&mut world, holding(&["q"], 1)), ["plain"], "nobody has it at hand");
}

#[test]
fn b4_36_a_task_is_passed_over_a_bounded_number_of_times() {
    // Others come one at a time, each is taken at once; and many that are there already.
    for together in [1, 2 * NEAR_TASKS_MAX] {
        let mut world = World::new();
        world.put(runs("old", "p"));
        let (mut passed, mut next) = (0, 0);
        loop {
            while next < passed + together {
                world.put(runs(&format!("new{next}"), "q"));
                next += 1;
            }
            match take(&mut world, holding(&["q"], 1)).as_slice() {
                [id] if id == "old" => break,
                _ => passed += 1,
            }
            assert!(passed as u64 <= NEAR_PLACES, "it waits for ever");
        }
        assert!(passed > 9, "it was passed over {passed} times, so there is a preference");
    }
    // What is far behind is not looked for.
    let mut world = World::new();
    for number in 0..NEAR_TASKS_MAX {
        world.put(runs(&format!("p{number}"), "p"));
    }
    world.put(runs("far", "q"));
    assert_eq!(take(&mut world, holding(&["q"], 1)), ["p0"]);
    assert_eq!(take(&mut world, holding(&["q"], 1)), ["far"], "it is near now");
}
