//! A database that comes back as it was before: whoever knew more stops, does nothing meanwhile, and stops the others (P2).
//!
//! What was taken back may be known to its writer alone. Whoever did not know goes on until it is told: a fork, which ends
//! with the mark of the first who misses something. Only if nobody who knew comes back does nobody notice.

use std::collections::BTreeMap;

use ikada_consensus::lease::{Answer, Chain, Work};
use ikada_consensus::{Entry, NodeId, Role};

use crate::database::{Database, Life};
use crate::world::{World, config};

/// How long a notice of it may take: a holder that writes nothing looks once per ttl.
const NOTICE_MS: u64 = 15_000;

fn settled(seed: u64) -> (World, NodeId) {
    let mut world = World::new(seed, 3);
    world.run(1_500);
    let leader = world.leader().expect("somebody leads");
    (world, leader)
}

/// Puts an older state in the place of the database; its clock goes on.
fn set_back(world: &mut World, older: &Database) {
    world.database = Database { clock_ms: world.database.clock_ms, ..older.clone() };
    world.is_forked = true;
    world.checks_one_leader = false;
}

fn has_halted(world: &World, node: NodeId) -> bool {
    world.nodes[&node].faults.iter().any(|fault| fault.what.contains("older state"))
}

/// Writes something that only its writer hears of, and gives the database as it was before.
fn written_alone(world: &mut World, leader: NodeId) -> Database {
    let older = world.database.clone();
    for node in world.nodes.values_mut() {
        node.is_paused = node.life.node != leader;
    }
    let at = world.propose(leader, "alone").unwrap();
    world.run(100);
    assert!(world.is_applied(leader, at, "alone"), "acknowledged");
    older
}

fn resume(world: &mut World, nodes: impl Fn(NodeId) -> bool) {
    for node in world.nodes.values_mut() {
        node.is_paused = !nodes(node.life.node);
    }
}

#[test]
fn p_2_what_only_the_writer_knew_is_missed_by_it_even_if_another_wrote_in_its_place() {
    for seed in 0..40 {
        let (mut world, writer) = settled(seed);
        let older = written_alone(&mut world, writer);
        let known = world.nodes[&writer].applied.clone();
        set_back(&mut world, &older);
        world.database.expires_ms = 0;
        // The others go on: one takes the lease, with the very epoch that may follow anyway, and writes at the same index.
        resume(&mut world, |node| node != writer);
        world.run(3_000);
        let next = world.leader().expect("nobody told them");
        world.propose(next, "alone").unwrap();
        world.propose(next, "more").unwrap();
        world.run(100);
        assert!(world.database.last_index() > known.last().unwrap().index);
        resume(&mut world, |_| true);
        world.run(NOTICE_MS);
        assert_eq!(world.nodes[&writer].applied, known, "seed {seed}: nothing more is applied");
        for node in 1..=3 {
            assert!(has_halted(&world, node), "seed {seed}: node {node} was not stopped");
        }
    }
}

#[test]
fn p_2_an_epoch_that_was_given_to_another_too_is_missed_by_its_first_holder() {
    let mut count = 0;
    for seed in 0..40 {
        let (mut world, old) = settled(seed);
        let older = world.database.clone();
        world.nodes.remove(&old);
        while world.leader().is_none() {
            world.step();
        }
        let first = world.leader().unwrap();
        let epoch = world.database.epoch;
        let other = (1..=3).find(|node| *node != old && *node != first).unwrap();
        let before = world.nodes[&first].applied.len();
        // The database never knew of it; the first holder sleeps while another gets the same epoch.
        set_back(&mut world, &older);
        world.database.expires_ms = 0;
        resume(&mut world, |node| node != first);
        let life = Life { node: other, number: 99 };
        let known = Default::default();
        world.database.carry_out(life, &Work::Take { ttl_ms: 60_000, known });
        assert_eq!(world.database.epoch, epoch);
        resume(&mut world, |node| node == first);
        world.run(NOTICE_MS);
        if world.database.epoch > epoch {
            // A taking that was on its way made it a later epoch, in which the first holder has no part.
            continue;
        }
        count += 1;
        assert!(has_halted(&world, first), "seed {seed}");
        assert_eq!(world.nodes[&first].consensus.role(0), Some(Role::Follower));
        let after = world.nodes[&first].applied.len();
        assert!(after <= before + 1, "seed {seed}: it applied what belongs to another");
    }
    assert!(count > 20, "{count}");
}

#[test]
fn p_2_a_node_that_missed_something_refuses_after_a_restart_until_it_is_there_again() {
    let (mut world, writer) = settled(3);
    let older = written_alone(&mut world, writer);
    let newer = world.database.clone();
    world.run(2_000);
    set_back(&mut world, &older);
    world.run(NOTICE_MS);
    assert!(has_halted(&world, writer));
    // Even of a database that bears no mark, and that somebody wrote as much to.
    world.database.missing = None;
    resume(&mut world, |_| false);
    let index = world.database.last_index() + 1;
    let (life, epoch) = (world.nodes[&writer].life, world.database.epoch);
    let entry = Entry { term: epoch, index, ..newer.log.last().unwrap().clone() };
    let after = world.database.chains.last().map_or(Chain::UNKNOWN, |(.., chain)| *chain);
    world.database.holder = Some(Life { number: 77, ..life });
    let work = Work::Append { epoch, after, entries: vec![entry] };
    let wrote = world.database.carry_out(Life { number: 77, ..life }, &work);
    assert!(matches!(wrote, Answer::Appended { .. }));
    world.start(writer, 1_000);
    world.run(2_000);
    assert!(has_halted(&world, writer), "its disk remembers which entry that was");
    set_back(&mut world, &newer);
    world.start(writer, 1_000);
    world.run(2_000);
    assert!(world.nodes[&writer].faults.is_empty(), "{:?}", world.nodes[&writer].faults);
}

#[test]
fn p_2_a_lease_is_taken_only_after_a_reading_that_succeeded() {
    for seed in 0..40 {
        let (mut world, leader) = settled(seed);
        world.nodes.remove(&leader);
        let epoch = world.database.epoch;
        world.run(config().ttl_ms - 2 * config().renew_ms);
        // Readings fail from now on, over the time at which the lease could be had; takings get through.
        world.readings_fail = true;
        world.run(10_000);
        assert_eq!(world.database.epoch, epoch, "seed {seed}: taken without a look");
        world.readings_fail = false;
        world.run(2_000);
        assert_eq!(world.database.epoch, epoch + 1);
    }
}

/// The database is set back at some moment by so much that only some knew more. Gives how many did.
fn storm(seed: u64) -> usize {
    let (mut world, _) = settled(seed);
    world.delay_ms = world.rng.u64(1..200);
    world.lost_percent = world.rng.u64(0..10);
    let mut older = world.database.clone();
    for step in 0..world.rng.u64(20..60) {
        if let Some(leader) = world.leader() {
            world.propose(leader, &format!("t{step}"));
        }
        if world.rng.u64(0..10) == 0 {
            older = world.database.clone();
        }
        let ms = world.rng.u64(1..120);
        world.run(ms);
    }
    let knows = |world: &World, node: NodeId| {
        let last = world.nodes[&node].applied.last();
        last.is_some_and(|last| last.index > older.last_index())
            || world.nodes[&node].consensus.term(0) > older.epoch
    };
    let knew: BTreeMap<NodeId, Vec<Entry>> = (1..=3)
        .filter(|node| knows(&world, *node))
        .map(|node| (node, world.nodes[&node].applied.clone()))
        .collect();
    let original = world.database.clone();
    set_back(&mut world, &older);
    (world.delay_ms, world.lost_percent) = (3, 0);
    for step in 0..60 {
        if let Some(leader) = world.leader() {
            world.propose(leader, &format!("fork{step}"));
        }
        world.run(NOTICE_MS / 60);
    }
    for (node, before) in &knew {
        assert!(has_halted(&world, *node), "seed {seed}: node {node} knew and goes on");
        // What it applied since was on its way when the database went back.
        let new = &world.nodes[node].applied[before.len()..];
        let of_before = |entry: &&Entry| original.log.contains(entry);
        assert!(new.iter().all(|entry| of_before(&entry)), "seed {seed}: node {node}: {new:?}");
    }
    if !knew.is_empty() {
        let going: Vec<NodeId> = (1..=3).filter(|node| !has_halted(&world, *node)).collect();
        assert!(going.is_empty(), "seed {seed}: {going:?} were not told; {:?} knew", knew.keys());
    }
    knew.len()
}

#[test]
fn p_2_whoever_knew_stops_and_stops_the_others_whenever_it_happens() {
    let mut counts = [0; 4];
    for seed in 0..200 {
        counts[storm(seed)] += 1;
    }
    assert!(counts.iter().all(|count| *count > 0), "nobody, one, two and all knew: {counts:?}");
}
