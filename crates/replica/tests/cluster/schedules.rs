//! Schedules over leader changes: every instant becomes one task, whoever leads (Q12).

use ikada_replica::call::{Answer, Consistency, Outcome, Query, Request, View};
use ikada_replica::state::{
    Command, Enqueue, Missed, Namespace, Order, Overlap, QueueName, Reply, Schedule, ScheduleName,
    ScheduleSpec, SetSchedule, TaskFilter, TaskId, Timing,
};

use crate::harness::{Cluster, claim};

fn set(name: &str, overlap: Overlap) -> Order {
    let queue = QueueName::parse("q").expect("queue");
    let task = Enqueue::new(TaskId::parse(name).expect("id"), queue, b"1".to_vec());
    let spec = ScheduleSpec {
        timing: Timing::Every { every_ms: 1_000, anchor_ms: 0 },
        task,
        missed: Missed::All,
        overlap,
        grace_ms: 5_000,
        paused: false,
    };
    let command = Command::SetSchedule(SetSchedule {
        name: ScheduleName::parse(name).expect("name"),
        spec: Some(Box::new(spec)),
        paused: None,
        expected_version: None,
    });
    Order { namespace: Namespace::default(), request: None, command }
}

fn store(cluster: &mut Cluster, order: Order) {
    let answer = cluster.ask(1, Request::Write(vec![order]));
    let Answer::Written(outcomes) = answer else { panic!("not written: {answer:?}") };
    let stored = matches!(&outcomes[..], [Outcome::Reply { reply: Reply::ScheduleSet { .. }, .. }]);
    assert!(stored, "{outcomes:?}");
}

fn look(cluster: &mut Cluster, node: u64, name: &str) -> Schedule {
    let key = (Namespace::default(), ScheduleName::parse(name).expect("name"));
    let read = Request::Read(Query::Schedule(key), Consistency::Linearizable);
    match cluster.ask(node, read) {
        Answer::View { view: View::Schedule(Some(schedule)), .. } => (*schedule).clone(),
        other => panic!("no schedule: {other:?}"),
    }
}

fn tasks(cluster: &mut Cluster, node: u64) -> Vec<String> {
    let filter = TaskFilter { namespace: Some(Namespace::default()), ..TaskFilter::default() };
    let query = Query::Tasks { filter, after: None, limit: 1_000 };
    match cluster.ask(node, Request::Read(query, Consistency::Linearizable)) {
        Answer::View { view: View::Tasks { tasks, .. }, .. } => {
            let mut ids: Vec<String> = tasks.iter().map(|task| task.id.to_string()).collect();
            ids.sort();
            ids
        }
        other => panic!("no tasks: {other:?}"),
    }
}

// Q12
#[test]
fn every_instant_becomes_one_task_over_leader_changes() {
    let mut cluster = Cluster::new(3, 4);
    cluster.settle();
    store(&mut cluster, set("s", Overlap::Allow));
    cluster.pass(10_500);
    for round in 0..6 {
        let old = cluster.leader(0).expect("leader");
        let to = Some(old % 3 + 1);
        cluster.ask(old, Request::Transfer { shard: 0, to });
        cluster.pass(2_300 + round * 170);
    }
    let old = cluster.leader(0).expect("leader");
    cluster.kill(old);
    cluster.pass(12_000);
    let node = old % 3 + 1;
    let schedule = look(&mut cluster, node, "s");
    let Timing::Every { every_ms, anchor_ms } = schedule.spec.timing else { panic!("timing") };
    let expected = (schedule.cursor_ms - anchor_ms) / every_ms;
    assert!(expected >= 30, "{expected}");
    assert_eq!((schedule.fired, schedule.missed, schedule.overlapped), (expected, 0, 0));
    let ids = tasks(&mut cluster, node);
    assert_eq!(ids.len() as u64, expected, "{ids:?}");
}

#[test]
fn an_unfinished_task_holds_the_next_instant_up() {
    let mut cluster = Cluster::new(3, 4);
    cluster.settle();
    store(&mut cluster, set("s", Overlap::Skip));
    cluster.pass(5_000);
    let waiting = look(&mut cluster, 2, "s");
    assert_eq!(waiting.fired, 1, "{waiting:?}");
    assert!(waiting.overlapped >= 3, "{waiting:?}");
    let answer = cluster.ask(2, claim("w", 1, 0, "c"));
    let Answer::Claimed(grants) = answer else { panic!("not a claim: {answer:?}") };
    let command = Command::Complete(ikada_replica::state::Complete {
        keeps_digest: None,
        id: grants[0].id.clone(),
        fence: grants[0].fence,
        worker: ikada_replica::state::WorkerId::parse("w").expect("id"),
        result: None,
        then: None,
        outputs: Vec::new(),
    });
    let order = Order { namespace: Namespace::default(), request: None, command };
    cluster.ask(2, Request::Write(vec![order]));
    cluster.pass(1_500);
    assert_eq!(look(&mut cluster, 3, "s").fired, 2);
}
