//! What every member's program understands, and what is refused until all do (F-28).

use ikada_replica::call::{Answer, Outcome, Request, Unavailable};
use ikada_replica::output::Input;
use ikada_replica::peer::{Framer, Header, PeerMessage};
use ikada_replica::state::{
    ChangeMembers, Command, LEVEL, Member, Namespace, Order, RaiseLevel, Reply,
};

use crate::harness::{Cluster, enqueue};

fn write(cluster: &mut Cluster, node: u64, order: Order) -> Outcome {
    match cluster.ask(node, Request::Write(vec![order])) {
        Answer::Written(mut outcomes) => outcomes.pop().expect("one outcome"),
        other => panic!("{other:?}"),
    }
}

/// An order that only this level knows.
fn newest() -> Order {
    let command = Command::RaiseLevel(RaiseLevel { level: LEVEL, nodes: vec![1, 2, 3] });
    Order { namespace: Namespace::default(), request: None, command }
}

fn levels(cluster: &Cluster) -> Vec<u32> {
    let level = |node: u64| cluster.nodes[&node].status(cluster.now).level;
    (1..=3).map(level).collect()
}

/// A cluster of three, node 3 of which runs the older version, and follows.
fn mixed() -> Cluster {
    let mut cluster = Cluster::with(3, 2, |config| {
        if config.node == 3 {
            config.level = LEVEL - 1;
            config.consensus.priority = -10;
        }
    });
    cluster.settle();
    cluster.pass(3_000);
    cluster
}

fn says(cluster: &mut Cluster, from: u64, level: u32, to: u64) {
    let mut framer = Framer::new();
    framer.push(&PeerMessage::Level(level));
    let header = Header {
        cluster: 42,
        from,
        from_incarnation: from * 7,
        to,
        to_incarnation: to * 7,
        wall_ms: cluster.now.wall_ms,
    };
    cluster.step(to, Input::Frame(from, framer.finish(&header)));
}

#[test]
fn f_28_the_level_rises_by_itself_when_all_understand_it() {
    let mut cluster = Cluster::new(3, 2);
    cluster.settle();
    cluster.pass(3_000);
    assert_eq!(levels(&cluster), [LEVEL; 3]);
    let status = cluster.nodes[&1].status(cluster.now);
    assert!(status.peers.iter().all(|peer| peer.level == Some(LEVEL)));
    // Once is enough.
    let records = cluster.records(1);
    cluster.pass(5_000);
    assert_eq!(cluster.records(1), records);
}

#[test]
fn f_28_nothing_is_proposed_that_a_member_does_not_know() {
    let mut cluster = mixed();
    assert_eq!(levels(&cluster), [LEVEL - 1; 3]);
    for node in 1..=3 {
        let refused = write(&mut cluster, node, newest());
        let too_low = Unavailable::LevelTooLow { needed: LEVEL, level: LEVEL - 1 };
        assert!(matches!(&refused, Outcome::Unavailable(why) if *why == too_low), "{refused:?}");
        let name = format!("t{node}");
        let taken = write(&mut cluster, node, enqueue(&name));
        assert!(matches!(taken, Outcome::Reply { reply: Reply::Enqueued { .. }, .. }));
    }
    assert_eq!(levels(&cluster), [LEVEL - 1; 3]);
}

#[test]
fn f_28_an_upgraded_node_is_waited_for() {
    let mut cluster = mixed();
    let leader = cluster.leader(0).expect("a leader");
    assert_ne!(leader, 3);
    cluster.cut.insert((3, leader));
    // Its last word does not count while it is down: it may come back with any program.
    says(&mut cluster, 3, LEVEL, leader);
    cluster.kill(3);
    cluster.pass(2_000);
    assert_eq!(levels(&cluster), [LEVEL - 1; 3]);
    cluster.revive(3);
    cluster.pass(2_000);
    assert_eq!(levels(&cluster), [LEVEL - 1; 3]);
    says(&mut cluster, 3, LEVEL, leader);
    cluster.pass(500);
    // It is of no use to say less now.
    cluster.cut.clear();
    cluster.pass(2_000);
    assert_eq!(levels(&cluster), [LEVEL; 3]);
}

// A node that understands less is about to become a member when the last of the others says that it was upgraded.
#[test]
fn f_28_nothing_is_raised_behind_a_node_that_is_being_added() {
    let mut cluster = mixed();
    let leader = cluster.leader(0).expect("a leader");
    let others = (1..=3).filter(|node| *node != leader);
    cluster.cut.extend(others.flat_map(|node| [(leader, node), (node, leader)]));
    cluster.down.insert(4);
    let add = Member {
        node: 4,
        incarnation: 28,
        peer_addr: "peer4".into(),
        client_addr: "client4".into(),
    };
    let command = Command::ChangeMembers(ChangeMembers { add: Some(add), remove: None, level: 0 });
    let order = Order { namespace: Namespace::default(), request: None, command };
    let call = cluster.call(leader, Request::Write(vec![order]));
    let written = cluster.records(leader);
    says(&mut cluster, 3, LEVEL, leader);
    cluster.pass(300);
    assert_eq!(cluster.records(leader), written, "the new node would meet what it does not know");
    cluster.cut.clear();
    cluster.pass(1_000);
    let answer = cluster.answers.remove(&call).expect("an answer");
    let Answer::Written(outcomes) = answer else { panic!("{answer:?}") };
    let begun = |reply: &Reply| matches!(reply, Reply::ChangeBegun { number: 1.. });
    assert!(
        matches!(&outcomes[..], [Outcome::Reply { reply, .. }] if begun(reply)),
        "{outcomes:?}"
    );
    assert_eq!(levels(&cluster), [LEVEL - 1; 3]);
}
