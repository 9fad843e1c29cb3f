//! Disks without room (F-12): nothing new is taken once a majority cannot do without them; what is under way goes on.

use ikada_replica::call::{Answer, Outcome, Request, Unavailable};
use ikada_replica::output::{DatabaseHealth, DatabaseTold, Input};
use ikada_replica::state::{Order, Reply};

use crate::claims::complete;
use crate::harness::{Cluster, claim, enqueue, enqueue_as};

fn outcome(cluster: &mut Cluster, node: u64, order: Order) -> Outcome {
    match cluster.ask(node, Request::Write(vec![order])) {
        Answer::Written(mut outcomes) => outcomes.remove(0),
        other => panic!("{other:?}"),
    }
}

fn is_taken(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Reply { reply: Reply::Enqueued { .. }, .. })
}

fn is_refused(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Unavailable(Unavailable::DiskFull { shard: 0 }))
}

// F-12
#[test]
fn f_12_one_full_disk_is_done_without_and_a_majority_is_not() {
    let mut cluster = Cluster::new(3, 1);
    cluster.settle();
    let leader = cluster.leader(0).expect("leader");
    let others: Vec<u64> = (1..=3).filter(|node| *node != leader).collect();
    assert!(is_taken(&outcome(&mut cluster, leader, enqueue("a"))));
    for one in [leader, others[0]] {
        cluster.step(one, Input::DiskLow(true));
        cluster.pass(500);
        assert!(is_taken(&outcome(&mut cluster, others[1], enqueue(&format!("b{one}")))));
        cluster.step(one, Input::DiskLow(false));
        cluster.pass(4_000);
    }
    for node in others.clone() {
        cluster.step(node, Input::DiskLow(true));
    }
    cluster.pass(500);
    assert!(is_refused(&outcome(&mut cluster, others[1], enqueue("c"))));
    assert!(
        is_taken(&outcome(&mut cluster, others[1], enqueue_as("a", "a"))),
        "a resend of what is there"
    );

    // What is there is claimed and completed.
    let Answer::Claimed(grants) = cluster.ask(others[0], claim("w", 1, 0, "claim")) else {
        panic!("not claimed");
    };
    let done = outcome(&mut cluster, leader, complete(&grants[0], "w"));
    assert!(matches!(done, Outcome::Reply { reply: Reply::Completed, .. }), "{done:?}");

    // One of them has room again, and nobody has to do anything else.
    cluster.step(others[0], Input::DiskLow(false));
    cluster.pass(4_000);
    assert!(is_taken(&outcome(&mut cluster, others[1], enqueue("c"))));
}

// F-12
#[test]
fn f_12_a_node_that_is_away_lends_no_room() {
    let mut cluster = Cluster::new(3, 1);
    cluster.settle();
    let leader = cluster.leader(0).expect("leader");
    let others: Vec<u64> = (1..=3).filter(|node| *node != leader).collect();
    cluster.kill(others[0]);
    cluster.pass(500);
    assert!(is_taken(&outcome(&mut cluster, leader, enqueue("a"))));
    cluster.step(leader, Input::DiskLow(true));
    cluster.pass(500);
    assert!(is_refused(&outcome(&mut cluster, leader, enqueue("b"))));
    cluster.revive(others[0]);
    cluster.pass(4_000);
    assert!(is_taken(&outcome(&mut cluster, leader, enqueue("b"))));
}

// LS-14
#[test]
fn ls_14_a_database_that_takes_no_writes_is_named_by_the_leader_and_where_nobody_leads() {
    let health = |health| Input::Database(DatabaseTold::Health(health));
    let mut cluster = Cluster::new(3, 1);
    cluster.settle();
    let leader = cluster.leader(0).expect("leader");
    let others: Vec<u64> = (1..=3).filter(|node| *node != leader).collect();
    cluster.step(leader, health(DatabaseHealth::Full));
    let refused = outcome(&mut cluster, others[0], enqueue("a"));
    let is_named = |outcome: &Outcome, wanted| matches!(outcome, Outcome::Unavailable(Unavailable::Database { health }) if *health == wanted);
    assert!(is_named(&refused, DatabaseHealth::Full), "{refused:?}");
    // It was not said again: one is tried, and goes well.
    cluster.pass(4_000);
    assert!(is_taken(&outcome(&mut cluster, others[0], enqueue("a"))));
    for node in others {
        cluster.kill(node);
    }
    cluster.pass(3_000);
    let call = cluster.call(leader, Request::Write(vec![enqueue("late")]));
    let answer = (0..20).find_map(|_| {
        cluster.step(leader, health(DatabaseHealth::ReadOnly));
        cluster.pass(500);
        cluster.answers.remove(&call)
    });
    let Some(Answer::Written(outcomes)) = answer else { panic!("{answer:?}") };
    assert!(is_named(&outcomes[0], DatabaseHealth::ReadOnly), "{outcomes:?}");
}
