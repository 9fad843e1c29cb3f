//! Reads at their three levels.

use ikada_replica::call::{Answer, Consistency, Outcome, Query, Request, Unavailable, View};
use ikada_replica::state::{Namespace, TaskId};

use crate::harness::{Cluster, enqueue};

fn query(id: &str) -> Query {
    Query::Task(Namespace::default(), TaskId::parse(id).expect("id"))
}

fn found(answer: &Answer) -> bool {
    match answer {
        Answer::View { view: View::Task(task), .. } => task.is_some(),
        other => panic!("not a view: {other:?}"),
    }
}

#[test]
fn b4_61_a_linearizable_read_on_any_node_sees_every_acknowledged_write() {
    // R10
    let mut cluster = Cluster::new(3, 4);
    cluster.settle();
    for n in 0..20 {
        let id = format!("t{n}");
        cluster.ask(n % 3 + 1, Request::Write(vec![enqueue(&id)]));
        let reader = (n + 1) % 3 + 1;
        let answer = cluster.ask(reader, Request::Read(query(&id), Consistency::Linearizable));
        assert!(found(&answer), "{id}");
    }
}

#[test]
fn b4_61_a_cut_off_leader_serves_no_linearizable_read() {
    let mut cluster = Cluster::new(3, 1);
    cluster.settle();
    let old = cluster.leader(0).expect("leader");
    for node in 1..=3 {
        if node != old {
            cluster.cut.insert((old, node));
            cluster.cut.insert((node, old));
        }
    }
    let read = Request::Read(query("t"), Consistency::Linearizable);
    let answer = cluster.ask(old, read);
    assert!(
        matches!(answer, Answer::Unavailable(Unavailable::NoLeader { shard: 0 })),
        "{answer:?}"
    );
    // A stale read is served and labelled with its age.
    let answer = cluster.ask(old, Request::Read(query("t"), Consistency::Stale));
    let Answer::View { age_ms, .. } = answer else { panic!("{answer:?}") };
    assert!(age_ms > 0);
}

#[test]
fn a_read_of_ones_own_write_waits_for_it() {
    // CH-10: min_lsn
    let mut cluster = Cluster::new(3, 2);
    cluster.settle();
    let answer = cluster.ask(1, Request::Write(vec![enqueue("mine")]));
    let Answer::Written(outcomes) = answer else { panic!("{answer:?}") };
    let Outcome::Reply { shard, lsn, .. } = outcomes[0] else { panic!("{outcomes:?}") };
    for node in 1..=3 {
        let consistency = Consistency::AtLeast(vec![(shard, lsn)]);
        assert!(found(&cluster.ask(node, Request::Read(query("mine"), consistency))));
    }
}
