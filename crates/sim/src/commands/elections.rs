//! `elections`: leaders of a calm cluster are killed one after the other; how many elections settle in the first round?

use anyhow::{Result, bail};

use crate::args::Elections;
use crate::plan::Plan;
use crate::world::World;

/// Does the command.
pub fn perform(args: &Elections) -> Result<bool> {
    if args.nodes < 3 {
        bail!("an election needs at least 3 nodes");
    }
    let mut gaps_ms = Vec::new();
    let mut first_round = 0u64;
    let mut seed = args.from;
    while (gaps_ms.len() as u64) < args.crashes {
        let mut world = World::new(Plan::calm(seed, args.nodes, 1, 0), false);
        for killed in world.kill_leaders(20.min(args.crashes as usize - gaps_ms.len()))? {
            first_round += u64::from(killed.terms == 1);
            gaps_ms.push(killed.gap_us as f64 / 1_000.0);
        }
        seed += 1;
    }
    gaps_ms.sort_by(f64::total_cmp);
    let at = |share: f64| gaps_ms[((gaps_ms.len() - 1) as f64 * share) as usize];
    let crashes = gaps_ms.len();
    println!(
        "crashes {crashes}  settled in the first round {first_round} ({:.1} %)",
        first_round as f64 * 100.0 / crashes as f64
    );
    println!(
        "leaderless time: p50 {:.0} ms  p90 {:.0} ms  p99 {:.0} ms  max {:.0} ms",
        at(0.5),
        at(0.9),
        at(0.99),
        at(1.0)
    );
    // MQ-15
    Ok(first_round * 100 >= crashes as u64 * 90)
}
