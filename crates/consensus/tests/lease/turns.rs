//! Who follows a holder, and when: a lease that is free always finds a node that takes it.

use crate::world::{World, config};

/// How long after another each node tries, in the order of their ids, as the replica sets it.
const TURN_MS: u64 = 300;

fn settled(seed: u64) -> (World, u64) {
    let mut world = World::new(seed, 3);
    for (id, node) in &mut world.nodes {
        node.consensus.set_turn(0, (id - 1) * TURN_MS);
    }
    world.run(1_500);
    let leader = world.leader().expect("somebody takes a lease that nobody has");
    assert_eq!(leader, 1, "the first in line");
    (world, leader)
}

// Looks come every half second, and the third in line waits longer than that.
#[test]
fn ls_15_the_last_node_left_takes_the_lease_without_the_others() {
    for seed in 0..20 {
        let (mut world, leader) = settled(seed);
        world.nodes.remove(&leader);
        world.nodes.remove(&2);
        let config = config();
        world.run(config.ttl_ms + 2 * TURN_MS + config.spread_ms + config.poll_ms);
        assert_eq!(world.leader(), Some(3), "seed {seed}");
        assert_eq!(world.database.epoch, 3);
    }
}

#[test]
fn ls_10_a_lease_given_to_a_node_that_died_goes_to_another() {
    for seed in 0..20 {
        let (mut world, leader) = settled(seed);
        assert!(world.transfer(leader, 2));
        world.nodes.remove(&2);
        world.run(100);
        world.nodes.remove(&leader);
        let config = config();
        world.run(config.favour_ms + 2 * TURN_MS + config.spread_ms + 2 * config.poll_ms);
        assert_eq!(world.leader(), Some(3), "seed {seed}");
    }
}

// The append before the release wakes everybody too: what comes while they read must not be lost to them.
#[test]
fn ls_10_a_lease_given_back_while_the_heir_reads_is_taken_without_a_poll() {
    for seed in 0..60 {
        let (mut world, leader) = settled(seed);
        (world.delay_ms, world.has_notices) = (30, true);
        world.propose(leader, "last").unwrap();
        assert!(world.transfer(leader, 2));
        while world.database.favoured.is_none() {
            world.step();
        }
        // The rest of an early reading, a reading that shows the release, the taking, a reading of its own.
        let longest_ms = 2 * world.delay_ms + 2;
        world.run(5 * longest_ms);
        assert_eq!(world.leader(), Some(2), "seed {seed}");
    }
}
