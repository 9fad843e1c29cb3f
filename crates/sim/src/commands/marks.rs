//! `marks`: which rare states are too rare (S-3: at least 100 in 10,000 seeds).

use anyhow::Result;

use super::run;
use crate::args::Run;

/// Hits wanted per this many seeds.
const HITS_MIN: u64 = 100;
const PER_SEEDS: u64 = 10_000;

/// Does the command.
pub fn perform(args: &Run) -> Result<bool> {
    let report = run::campaign(&Run { keep_going: true, ..args.clone() });
    let wanted = (HITS_MIN * report.seeds).div_ceil(PER_SEEDS);
    let mut all = true;
    for (mark, count) in report.marks.iter().filter(|(mark, _)| mark.belongs(args.postgres)) {
        let enough = count >= wanted;
        all &= enough;
        println!("{} {count:>9}  {}", if enough { "ok  " } else { "rare" }, mark.words());
    }
    println!("{} seeds, {wanted} hits wanted of each", report.seeds);
    Ok(all && report.failed.is_empty())
}
