//! Changes of membership driven by whoever leads shard 0, and leadership that is steered (R9, MQ-29, MQ-31).

use ikada_consensus::Change;
use ikada_replica::Input;
use ikada_replica::call::{Answer, Outcome, Request};
use ikada_replica::peer::Header;
use ikada_replica::state::{
    ChangeMembers, Command, Namespace, Order, Reply, SteerMember, TuneElections,
};

use crate::harness::Cluster;

fn write(cluster: &mut Cluster, node: u64, command: Command) -> Reply {
    let order = Order { namespace: Namespace::default(), request: None, command };
    match cluster.ask(node, Request::Write(vec![order])) {
        Answer::Written(mut outcomes) => match outcomes.pop() {
            Some(Outcome::Reply { reply, .. }) => reply,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

fn remove(node: u64) -> Command {
    Command::ChangeMembers(ChangeMembers { add: None, remove: Some(node), level: 0 })
}

fn steer(node: u64, cordoned: Option<bool>, priority: Option<i64>) -> Command {
    Command::SteerMember(SteerMember { node, cordoned, priority })
}

fn voters(cluster: &Cluster, node: u64, shard: u16) -> Vec<u64> {
    cluster.nodes[&node].consensus().conf(shard).voters
}

fn leaders(cluster: &Cluster) -> Vec<u64> {
    (0..cluster.shards).map(|shard| cluster.leader(shard).expect("a leader")).collect()
}

#[test]
fn a_leader_is_removed_from_every_shard() {
    let mut cluster = Cluster::new(4, 3);
    cluster.settle();
    let leader = cluster.leader(0).expect("a leader");
    let other = leader % 4 + 1;
    assert!(matches!(write(&mut cluster, other, remove(leader)), Reply::ChangeBegun { .. }));
    cluster.pass(5_000);
    let stay: Vec<u64> = (1..=4).filter(|node| *node != leader).collect();
    for shard in 0..3 {
        assert_eq!(voters(&cluster, other, shard), stay, "shard {shard}");
        assert_ne!(cluster.leader(shard), Some(leader));
    }
    let status = cluster.nodes[&other].status(cluster.now);
    let roster = status.roster.expect("a roster");
    assert_eq!((roster.change, roster.removed), (None, vec![leader]));
    assert_eq!(status.members.len(), 3);
}

/// R9: once known as removed, an id is not taken for a stranger, whose votes would be heard.
#[test]
fn a_removed_node_is_not_heard_any_more() {
    let mut cluster = Cluster::new(4, 1);
    cluster.settle();
    let through = cluster.leader(0).expect("a leader");
    let gone = through % 4 + 1;
    let header = |from: u64, from_incarnation: u64| Header {
        cluster: 42,
        from,
        from_incarnation,
        to: through,
        to_incarnation: through * 7,
        wall_ms: 1_700_000_000_000,
    };
    let replica = cluster.nodes.get_mut(&through).expect("node");
    assert!(replica.is_admitted(&header(gone, gone * 7)));
    assert!(!replica.is_admitted(&header(gone, 999)), "its disk is another");
    assert!(
        replica.is_admitted(&header(9, 999)),
        "a stranger may be a member that we have yet to hear of"
    );
    assert!(matches!(write(&mut cluster, through, remove(gone)), Reply::ChangeBegun { .. }));
    cluster.pass(5_000);
    let replica = cluster.nodes.get_mut(&through).expect("node");
    assert!(!replica.is_admitted(&header(gone, gone * 7)));
    assert!(!replica.is_admitted(&header(gone, 999)));
}

#[test]
fn a_change_survives_the_leader_that_drives_it() {
    let mut cluster = Cluster::new(5, 2);
    cluster.settle();
    let leader = cluster.leader(0).expect("a leader");
    let gone = leader % 5 + 1;
    let through = gone % 5 + 1;
    assert!(matches!(write(&mut cluster, through, remove(gone)), Reply::ChangeBegun { .. }));
    cluster.kill(leader);
    cluster.pass(10_000);
    let now = voters(&cluster, through, 0);
    assert!(!now.contains(&gone) && now.len() == 4, "{now:?}");
    assert_eq!(voters(&cluster, through, 1), now);
}

/// R9, V5: a node that left shard 0 before it heard of its leave still leads another shard; seed 144 found it.
#[test]
fn a_leader_that_is_to_leave_hands_over_although_nobody_told_it() {
    let mut cluster = Cluster::new(4, 2);
    cluster.settle();
    let leader = cluster.leader(1).expect("a leader");
    let through = leader % 4 + 1;
    let change = Change { remove: vec![leader], ..Change::default() };
    let ask = || Request::Change { shard: 1, change: change.clone() };
    let refused = cluster.ask(through, ask());
    assert!(
        matches!(&refused, Answer::Refused { code, .. } if code == "change_refused"),
        "{refused:?}"
    );
    cluster.pass(1_000);
    let next = cluster.leader(1).expect("a leader");
    assert_ne!(next, leader, "it leads on");
    assert!(matches!(cluster.ask(through, ask()), Answer::Accepted));
    cluster.pass(1_000);
    assert!(!voters(&cluster, next, 1).contains(&leader));
}

#[test]
fn a_change_waits_for_a_majority() {
    let mut cluster = Cluster::new(3, 1);
    cluster.settle();
    let leader = cluster.leader(0).expect("a leader");
    let (gone, dead) = (leader % 3 + 1, (leader + 1) % 3 + 1);
    cluster.kill(dead);
    // Recorded, but not begun: the two that stay would be one alive and one dead.
    assert!(matches!(write(&mut cluster, leader, remove(gone)), Reply::ChangeBegun { .. }));
    cluster.pass(3_000);
    assert_eq!(voters(&cluster, leader, 0), [1, 2, 3]);
    assert!(cluster.leader(0).is_some(), "the cluster goes on");
}

// MQ-29
#[test]
fn mq_29_a_cordoned_node_gives_its_leaderships_away_and_takes_none() {
    let mut cluster = Cluster::new(3, 4);
    cluster.settle();
    let node = cluster.leader(0).expect("a leader");
    assert_eq!(write(&mut cluster, node, steer(node, Some(true), None)), Reply::MemberSteered);
    cluster.pass(3_000);
    assert!(!leaders(&cluster).contains(&node), "{:?}", leaders(&cluster));
    // It still leads when nobody else can.
    let others: Vec<u64> = (1..=3).filter(|other| *other != node).collect();
    cluster.kill(others[0]);
    cluster.pass(5_000);
    assert_eq!(leaders(&cluster), vec![others[1]; 4]);
    assert_eq!(write(&mut cluster, node, steer(node, Some(false), None)), Reply::MemberSteered);
}

// MQ-31
#[test]
fn mq_31_leaders_are_spread_and_then_stay() {
    let mut cluster = Cluster::with(3, 6, |config| config.balance_quiet_ms = 2_000);
    cluster.settle();
    for shard in 0..6 {
        let ask = Request::Transfer { shard, to: Some(1) };
        let _ = cluster.ask(2, ask);
        cluster.pass(300);
    }
    cluster.pass(60_000);
    let led = |cluster: &Cluster, node| leaders(cluster).iter().filter(|it| **it == node).count();
    assert_eq!([1, 2, 3].map(|node| led(&cluster, node)), [2, 2, 2]);
    let terms = |cluster: &Cluster| -> Vec<u64> {
        (0..6).map(|shard| cluster.nodes[&1].consensus().term(shard)).collect()
    };
    let before = terms(&cluster);
    cluster.pass(60_000);
    assert_eq!(terms(&cluster), before, "a spread that is even stays");
    // A preferred node gets all of them, slowly.
    assert_eq!(write(&mut cluster, 1, steer(3, None, Some(10))), Reply::MemberSteered);
    cluster.pass(60_000);
    assert_eq!(led(&cluster, 3), 6);
}

#[test]
fn a_transfer_to_a_node_that_is_away_is_refused() {
    let mut cluster = Cluster::new(3, 1);
    cluster.settle();
    let leader = cluster.leader(0).expect("a leader");
    let away = leader % 3 + 1;
    cluster.kill(away);
    let refused = cluster.ask(leader, Request::Transfer { shard: 0, to: Some(away) });
    assert!(
        matches!(&refused, Answer::Refused { code, .. } if code == "node_lagging"),
        "{refused:?}"
    );
}

// MQ-31, F-10: no leadership goes to a node whose disk stands still; when it moves again, the spread goes on.
#[test]
fn mq_31_a_node_whose_disk_stands_still_gets_no_leaderships() {
    let mut cluster = Cluster::with(3, 6, |config| config.balance_quiet_ms = 2_000);
    cluster.settle();
    for shard in 0..6 {
        let _ = cluster.ask(2, Request::Transfer { shard, to: Some(1) });
        cluster.pass(300);
    }
    cluster.hold_disk(3, true);
    for round in 0..40 {
        let task = crate::harness::enqueue(&format!("t-{round}"));
        let _ = cluster.ask(1, Request::Write(vec![task]));
        cluster.pass(500);
    }
    assert!(!leaders(&cluster).contains(&3), "{:?}", leaders(&cluster));
    let refused = cluster.ask(1, Request::Transfer { shard: 0, to: Some(3) });
    assert!(
        matches!(&refused, Answer::Refused { detail, .. } if detail.contains("stands still")),
        "{refused:?}"
    );
    cluster.hold_disk(3, false);
    cluster.pass(60_000);
    let led = |node| leaders(&cluster).iter().filter(|it| **it == node).count();
    assert_eq!([1, 2, 3].map(led), [2, 2, 2]);
}

// MQ-31, F-6e: a node that hears nothing takes its connections for broken, but its word about its disk still arrives.
#[test]
fn mq_31_a_deaf_node_still_tells_of_its_disk() {
    let mut cluster = Cluster::new(3, 1);
    cluster.settle();
    let leader = cluster.leader(0).expect("a leader");
    let deaf = leader % 3 + 1;
    cluster.hold_disk(deaf, true);
    let task = crate::harness::enqueue("t");
    let _ = cluster.ask(leader, Request::Write(vec![task]));
    for peer in (1..=3).filter(|node| *node != deaf) {
        cluster.cut.insert((peer, deaf));
        cluster.step(deaf, Input::PeerDown { peer, refused: false });
    }
    // Longer than a word about a disk counts.
    cluster.pass(10_000);
    assert_eq!(cluster.leader(0), Some(leader));
    let refused = cluster.ask(leader, Request::Transfer { shard: 0, to: Some(deaf) });
    assert!(
        matches!(&refused, Answer::Refused { detail, .. } if detail.contains("stands still")),
        "{refused:?}"
    );
}

// MQ-33
#[test]
fn mq_33_every_node_follows_the_wait_before_elections() {
    let mut cluster = Cluster::new(3, 2);
    cluster.settle();
    cluster.pass(3_000);
    let kept = |cluster: &Cluster| -> Vec<(u64, u64)> {
        let status = |node: u64| cluster.nodes[&node].status(cluster.now).elections_ms;
        (1..=3).filter_map(status).collect()
    };
    assert_eq!(kept(&cluster), [(1_000, 100); 3]);
    let tune = |timeout_ms| Command::TuneElections(TuneElections { timeout_ms });
    assert_eq!(write(&mut cluster, 1, tune(Some(4_000))), Reply::ElectionsTuned);
    cluster.pass(500);
    assert_eq!(kept(&cluster), [(4_000, 400); 3]);
    // A leader that falls silent is waited for that long.
    let leader = cluster.leader(0).expect("a leader");
    let other = leader % 3 + 1;
    cluster.down.insert(leader);
    cluster.pass(3_000);
    assert_eq!(cluster.leader(0), None);
    cluster.pass(7_000);
    assert!(cluster.leader(0).is_some());
    assert_eq!(write(&mut cluster, other, tune(None)), Reply::ElectionsTuned);
    cluster.pass(500);
    assert_eq!(cluster.nodes[&other].status(cluster.now).elections_ms, Some((1_000, 100)));
}
