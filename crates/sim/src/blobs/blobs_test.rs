//! The blob world holds over many seeds, does what it says it does, and finds each mischief.

use super::{Mischief, Tally, World};

/// Seeds of one run, unless `IKADA_BLOB_SEEDS` says otherwise.
const SEEDS: u64 = 60;
const STEPS: u32 = 600;

fn seeds() -> u64 {
    let wanted = std::env::var("IKADA_BLOB_SEEDS").ok();
    wanted.and_then(|wanted| wanted.parse().ok()).unwrap_or(SEEDS)
}

// A1, A2, A3, F-37
#[test]
fn no_acknowledged_object_loses_its_bytes() {
    let mut sum = Tally::default();
    for seed in 0..seeds() {
        let mut world = World::new(seed, Mischief::Nothing);
        if let Err(broken) = world.run(STEPS) {
            panic!("seed {seed}: {broken:?}");
        }
        sum += world.tally;
    }
    let all = sum.counts();
    assert!(all.iter().all(|count| *count > 0), "something never happened: {sum:?}");
}

#[test]
fn each_mischief_is_found() {
    for mischief in Mischief::ALL {
        let found = (0..2_000).find_map(|seed| World::new(seed, mischief).run(STEPS).err());
        assert!(found.is_some(), "{mischief:?}");
        println!("{mischief:?}: {found:?}");
    }
}

#[test]
fn a_seed_gives_the_same_run_again() {
    let tally = |seed| {
        let mut world = World::new(seed, Mischief::Nothing);
        let _ = world.run(STEPS);
        world.tally
    };
    assert_eq!(tally(7), tally(7));
    assert_ne!(tally(7), tally(8));
}
