//! Few tasks of programs: every worker with free slots gets some, first one that has the program (B4-36).

use ikada_replica::call::{Answer, Request};
use ikada_replica::state::{
    Command, Digest, Grant, Order, ProgramKind, ProgramName, ProgramRef, TaskOptions, Work,
};

use crate::claims::complete;
use crate::harness::{Cluster, claim, enqueue};

const PROGRAM: Digest = Digest([7; 32]);

/// A task that runs the program.
fn runs(id: &str) -> Order {
    let name = ProgramName::parse("count").expect("a name");
    let (kind, digest) = (ProgramKind::Command, Some(PROGRAM));
    let work = Work {
        program: ProgramRef { name, kind, digest, entry: None },
        settings: Vec::new(),
        inputs: Vec::new(),
        job: None,
        reuse: None,
        output_url: None,
    };
    let mut order = enqueue(id);
    if let Command::Enqueue(task) = &mut order.command {
        let options = TaskOptions { work: Some(work.into()), ..TaskOptions::default() };
        task.options = Some(Box::new(options));
    }
    order
}

fn several(count: usize) -> Request {
    Request::Write((0..count).map(|number| runs(&format!("t{number}"))).collect())
}

fn holding(worker: &str, count_max: u32, wait_ms: u64, request: &str) -> Request {
    let Request::Claim(mut wish) = claim(worker, count_max, wait_ms, request) else {
        panic!("a claim")
    };
    wish.holds = Some(vec![PROGRAM.mark()]);
    Request::Claim(wish)
}

fn ready() -> Cluster {
    let mut cluster = Cluster::new(3, 1);
    cluster.settle();
    // Until all nodes have told what they understand.
    cluster.pass(3_000);
    cluster
}

fn granted(cluster: &mut Cluster, call: u64) -> Vec<Grant> {
    cluster.deliver();
    match cluster.answers.remove(&call) {
        Some(Answer::Claimed(grants)) => grants,
        other => panic!("not a claim: {other:?}"),
    }
}

#[test]
fn b4_36_workers_that_wait_share_few_tasks_through_one_node_or_several() {
    for doors in [[1, 1], [1, 2], [2, 3]] {
        let mut cluster = ready();
        let [a, b] = [("a", doors[0]), ("b", doors[1])]
            .map(|(name, door)| cluster.call(door, claim(name, 8, 4_000, name)));
        cluster.pass(300);
        cluster.ask(3, several(8));
        let counts = [a, b].map(|call| granted(&mut cluster, call).len());
        assert_eq!(counts, [4, 4], "through {doors:?}");
    }
}

#[test]
fn b4_36_nobody_waits_for_a_worker_that_does_not_come() {
    let mut cluster = ready();
    // It asks, finds nothing, and is gone.
    let gone = cluster.call(1, claim("gone", 8, 100, "gone"));
    cluster.pass(300);
    assert!(granted(&mut cluster, gone).is_empty());
    cluster.ask(2, several(8));
    let mut got = 0;
    for round in 0..9 {
        let call = cluster.call(2, claim("here", 8 - got, 0, &format!("here{round}")));
        got += granted(&mut cluster, call).len() as u32;
        if got == 8 {
            assert!(round > 0, "its part was offered to the other one");
            return;
        }
    }
    panic!("{got} of 8 tasks, although nobody else asks");
}

#[test]
fn b4_36_many_tasks_and_plain_ones_are_handed_out_as_asked() {
    let mut cluster = ready();
    let waiting = cluster.call(1, claim("waits", 8, 100, "waits"));
    cluster.pass(300);
    assert!(granted(&mut cluster, waiting).is_empty());
    cluster.ask(1, several(40));
    let call = cluster.call(2, claim("here", 8, 0, "many"));
    assert_eq!(granted(&mut cluster, call).len(), 8, "there is enough for both");

    let mut cluster = ready();
    let waiting = cluster.call(1, claim("waits", 8, 100, "waits"));
    cluster.pass(300);
    assert!(granted(&mut cluster, waiting).is_empty());
    let plain = (0..8).map(|number| enqueue(&format!("plain{number}"))).collect();
    cluster.ask(1, Request::Write(plain));
    let call = cluster.call(2, claim("here", 8, 0, "plain"));
    assert_eq!(granted(&mut cluster, call).len(), 8, "a queue's consumers are not counted");
}

#[test]
fn b4_36_a_worker_that_has_the_program_is_woken_first() {
    let mut cluster = ready();
    let without = cluster.call(1, claim("without", 2, 4_000, "a"));
    let with = cluster.call(1, holding("with", 2, 4_000, "b"));
    cluster.pass(300);
    cluster.ask(2, several(1));
    let grants = granted(&mut cluster, with);
    assert_eq!(grants.len(), 1);
    cluster.pass(100);
    assert!(!cluster.answers.contains_key(&without), "it waits on");
    cluster.ask(1, Request::Write(vec![complete(&grants[0], "with")]));
    // A resend is told the same, whatever its worker has by now.
    let mut cluster = ready();
    cluster.ask(1, several(1));
    let first = cluster.call(1, holding("w", 2, 0, "same"));
    let first = granted(&mut cluster, first);
    let again = cluster.call(2, claim("w", 2, 0, "same"));
    assert_eq!((first.len(), granted(&mut cluster, again)), (1, first));
}

#[test]
fn b4_36_while_a_member_runs_an_older_version_claims_are_as_they_were() {
    let mut cluster = Cluster::with(3, 1, |config| {
        if config.node == 3 {
            config.level = 0;
        }
    });
    cluster.settle();
    cluster.pass(3_000);
    let waiting = cluster.call(1, claim("waits", 8, 100, "waits"));
    cluster.pass(300);
    assert!(granted(&mut cluster, waiting).is_empty());
    cluster.ask(1, several(8));
    let call = cluster.call(2, holding("here", 8, 0, "old"));
    assert_eq!(granted(&mut cluster, call).len(), 8, "an older node knows of no shares");
}
