//! Changes of membership as recorded in shard 0: one at a time, ids never used again, somebody stays (R9, F-17).

mod common;
use common::*;
use ikada_state::*;

fn member(node: u64) -> Member {
    let (peer_addr, client_addr) = (format!("p{node}"), format!("c{node}"));
    Member { node, incarnation: node * 10, peer_addr, client_addr }
}

fn world() -> World {
    World::of(Shard::genesis(0, 2, &[member(1), member(2), member(3)]))
}

fn change(add: Option<Member>, remove: Option<u64>) -> Command {
    Command::ChangeMembers(ChangeMembers { add, remove, level: 0 })
}

fn begun(reply: &Reply) -> u64 {
    match reply {
        Reply::ChangeBegun { number } => *number,
        other => panic!("{other:?}"),
    }
}

fn settle(number: u64) -> Command {
    Command::SettleChange(SettleChange { number })
}

fn nodes(world: &World) -> Vec<u64> {
    world.shard.members().iter().map(|member| member.node).collect()
}

#[test]
fn a_node_takes_the_place_of_another() {
    let mut world = world();
    let number = begun(&world.run(change(Some(member(4)), Some(2))));
    // Known at once, so that it can be linked to; the other goes when every shard has followed.
    assert_eq!(nodes(&world), [1, 2, 3, 4]);
    assert_eq!(world.run(change(Some(member(4)), Some(2))), Reply::ChangeBegun { number });
    let other = world.run(change(Some(member(5)), None));
    assert_eq!(other, refused(RefusalCode::ChangePending));
    assert_eq!(world.run(settle(number + 1)), refused(RefusalCode::VersionConflict));
    let mut world = world.reload();
    assert_eq!(world.run(settle(number)), Reply::ChangeSettled);
    assert_eq!(nodes(&world), [1, 3, 4]);
    let roster = world.shard.roster().unwrap();
    assert_eq!((roster.change, roster.removed.as_slice()), (None, &[2][..]));
    // Resends of what is done are harmless.
    assert_eq!(world.run(change(Some(member(4)), Some(2))), Reply::ChangeBegun { number: 0 });
    assert_eq!(world.run(change(None, Some(2))), Reply::ChangeBegun { number: 0 });
    let back = world.run(change(Some(member(2)), None));
    assert_eq!(back, refused(RefusalCode::NodeRemoved), "an id is never used again");
    assert!(invariants::all(&world.reload().shard).is_ok());
}

#[test]
fn what_cannot_be_is_refused() {
    let mut world = world();
    let refusals = [
        (change(None, None), RefusalCode::BadValue),
        (change(None, Some(9)), RefusalCode::NodeNotFound),
        (change(Some(Member { incarnation: 7, ..member(3) }), None), RefusalCode::NodeExists),
        (change(Some(Member { node: 9, ..member(3) }), None), RefusalCode::NodeExists),
        (change(Some(Member { node: 0, ..member(9) }), None), RefusalCode::BadValue),
        (
            change(Some(Member { peer_addr: "x".repeat(300), ..member(9) }), None),
            RefusalCode::BadValue,
        ),
    ];
    for (order, code) in refusals {
        assert_eq!(world.run(order.clone()), refused(code), "{order:?}");
    }
    let mut lone = World::of(Shard::genesis(0, 1, &[member(1)]));
    assert_eq!(lone.run(change(None, Some(1))), refused(RefusalCode::LastVoter));
    let many: Vec<Member> = (1..=7).map(member).collect();
    let mut full = World::of(Shard::genesis(0, 1, &many));
    assert_eq!(full.run(change(Some(member(8)), None)), refused(RefusalCode::TooManyMembers));
    let mut away = World::of(Shard::genesis(1, 2, &[member(1)]));
    assert_eq!(away.run(change(Some(member(8)), None)), refused(RefusalCode::WrongShard));
}

#[test]
fn an_addition_can_be_called_off() {
    let mut world = world();
    let first = begun(&world.run(change(Some(member(4)), None)));
    let second = begun(&world.run(change(None, Some(4))));
    assert!(second > first);
    assert_eq!(world.run(settle(second)), Reply::ChangeSettled);
    assert_eq!(nodes(&world), [1, 2, 3]);
}

#[test]
fn mq_29_leadership_is_steered_by_recorded_wishes() {
    let mut world = world();
    let steer =
        |node, cordoned, priority| Command::SteerMember(SteerMember { node, cordoned, priority });
    assert_eq!(world.run(steer(2, Some(true), Some(5))), Reply::MemberSteered);
    assert_eq!(world.run(steer(9, Some(true), None)), refused(RefusalCode::NodeNotFound));
    assert_eq!(world.run(steer(2, None, Some(1_001))), refused(RefusalCode::BadValue));
    let mut world = world.reload();
    let roster = world.shard.roster().unwrap();
    assert!(roster.is_cordoned(2) && !roster.is_cordoned(1));
    assert_eq!(roster.priority(2), Some(5));
    // A node that leaves takes its wishes along.
    let number = begun(&world.run(change(None, Some(2))));
    assert_eq!(world.run(settle(number)), Reply::ChangeSettled);
    assert!(!world.shard.roster().unwrap().is_cordoned(2));
}

fn raise(level: u32, nodes: &[u64]) -> Command {
    Command::RaiseLevel(RaiseLevel { level, nodes: nodes.to_vec() })
}

// F-28: a rolling upgrade.
#[test]
fn f_28_the_level_rises_once_every_member_is_named_and_never_falls() {
    let mut world = world();
    let unnamed = world.run(raise(1, &[1, 3]));
    assert_eq!(unnamed, refused(RefusalCode::ChangePending), "node 2 was not heard");
    assert_eq!((world.shard.level(), world.shard.roster()), (0, None));
    assert_eq!(world.run(raise(1, &[1, 2, 3, 9])), Reply::LevelRaised);
    for level in [0, 1] {
        let lower = world.run(raise(level, &[1, 2, 3]));
        assert_eq!(lower, refused(RefusalCode::VersionConflict), "{level}");
    }
    let mut world = world.reload();
    assert_eq!(world.shard.level(), 1);
    // Records of that level are in the state of a cluster that begins with it.
    let members = vec![member(7)];
    assert_eq!(world.run(Command::Refound(Refound { epoch: 1, members })), Reply::EpochRaised);
    assert_eq!(world.reload().shard.level(), 1);
    let mut away = World::of(Shard::genesis(1, 2, &[]));
    assert_eq!(away.run(raise(1, &[1])), refused(RefusalCode::WrongShard));
}

#[test]
fn f_28_a_node_of_an_older_version_does_not_join() {
    let mut world = world();
    let join =
        |level| Command::ChangeMembers(ChangeMembers { add: Some(member(4)), remove: None, level });
    assert_eq!(world.run(raise(1, &[1, 2, 3])), Reply::LevelRaised);
    assert_eq!(world.run(join(0)), refused(RefusalCode::NodeTooOld));
    assert_eq!(nodes(&world), [1, 2, 3]);
    // What was heard before it became a member does not count for it.
    begun(&world.run(join(1)));
    assert_eq!(world.run(raise(2, &[1, 2, 3])), refused(RefusalCode::ChangePending));
}

/// A node of before computes the same hash: it knows no level, and neither does the record.
#[test]
fn f_28_a_roster_without_a_level_is_stored_as_before() {
    let none = Roster::default();
    let four = [0x84, 0xf6, 0x80, 0x80, 0x80];
    assert_eq!(minicbor::to_vec(&none).unwrap(), four);
    let some = minicbor::to_vec(Roster { level: Some(1), ..none }).unwrap();
    assert_eq!((some[0], some.last()), (0x85, Some(&1)));
}

#[test]
fn f_28_a_level_that_this_program_does_not_know_stops_it() {
    let mut world = world();
    let mut builder = BatchBuilder::new();
    builder.push(&order(raise(LEVEL + 1, &[1, 2, 3])));
    let index = world.shard.applied().index + 1;
    let applied = world.shard.apply(Lsn { term: 1, index }, &builder.finish(world.now_ms));
    assert!(applied.is_newer);
    let snapshot = Shard::restore(world.shard.freeze().chunks());
    let error = snapshot.expect_err("of a newer version");
    assert_eq!(error, RestoreError::Level(LEVEL + 1));
    assert!(error.to_string().contains("start the version of the other nodes"), "{error}");
    world = World::of(Shard::genesis(0, 2, &[member(1)]));
    let known = world.shard.apply(Lsn { term: 1, index: 1 }, &{
        let mut builder = BatchBuilder::new();
        builder.push(&order(raise(LEVEL, &[1])));
        builder.finish(1_000)
    });
    assert!(!known.is_newer);
}

// MQ-33
#[test]
fn mq_33_the_wait_before_elections_is_a_recorded_setting() {
    let mut world = world();
    let tune = |timeout_ms| Command::TuneElections(TuneElections { timeout_ms });
    assert_eq!(world.run(tune(Some(5_000))), Reply::ElectionsTuned);
    for timeout_ms in [0, ELECTION_MS_MIN - 1, ELECTION_MS_MAX + 1, u32::MAX] {
        assert_eq!(world.run(tune(Some(timeout_ms))), refused(RefusalCode::BadValue));
    }
    let mut world = world.reload();
    assert_eq!(world.shard.roster().unwrap().election_ms, Some(5_000));
    assert_eq!(world.run(tune(None)), Reply::ElectionsTuned);
    assert_eq!(world.reload().shard.roster().unwrap().election_ms, None);
    let mut away = World::of(Shard::genesis(1, 2, &[]));
    assert_eq!(away.run(tune(None)), refused(RefusalCode::WrongShard));
}
