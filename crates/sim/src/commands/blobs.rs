//! `blobs`: seeds of the world in which only the bytes of objects matter.

use anyhow::Result;

use crate::args::Blobs;
use crate::blobs::{Mischief, Tally, World};

/// Does the command.
pub fn perform(args: &Blobs) -> Result<bool> {
    let seeds = args.from..args.from.saturating_add(args.seeds);
    if args.mischief {
        return Ok(find_all(args, seeds));
    }
    let mut sum = Tally::default();
    for seed in seeds {
        let mut world = World::new(seed, Mischief::Nothing);
        if let Err(broken) = world.run(args.steps) {
            println!("seed {seed}: {}", broken.0);
            println!("again: ikada-sim blobs --from {seed} --seeds 1 --steps {}", args.steps);
            return Ok(false);
        }
        sum += world.tally;
    }
    println!("seeds {}  nothing was violated", args.seeds);
    println!("{sum:?}");
    Ok(true)
}

/// Whether each mischief breaks a promise in some seed.
fn find_all(args: &Blobs, seeds: std::ops::Range<u64>) -> bool {
    let mut all = true;
    for mischief in Mischief::ALL {
        let broken = |seed| World::new(seed, mischief).run(args.steps).err().map(|why| (seed, why));
        let found = seeds.clone().find_map(broken);
        match &found {
            Some((seed, why)) => println!("{mischief:?}: seed {seed}: {}", why.0),
            None => println!("{mischief:?}: not found"),
        }
        all &= found.is_some();
    }
    all
}
