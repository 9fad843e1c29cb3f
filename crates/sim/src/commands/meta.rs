//! `meta`: the same seed gives the same trace, byte for byte: twice in this process, and in a fresh one (S-2).

use anyhow::{Context, Result, bail};

use super::campaign;
use crate::args::Meta;

/// Does the command.
pub fn perform(args: &Meta) -> Result<bool> {
    let run = |seed| campaign::run_plan(campaign::draw_plan(seed, args.ops, args.postgres), true);
    let hashes = campaign::spread(args.seeds, campaign::threads(None), |number| {
        let seed = args.from + number;
        let first = run(seed);
        let same = args.hashes || {
            let second = run(seed);
            first.text == second.text && first.outcome.trace_hash == second.outcome.trace_hash
        };
        ((seed, first.outcome.trace_hash, same), false)
    });
    if args.hashes {
        for (seed, hash, _) in &hashes {
            println!("{seed} {hash:016x}");
        }
        return Ok(true);
    }
    let fresh = in_fresh_process(args)?;
    let mut differ = 0;
    for (seed, hash, same) in &hashes {
        let line = format!("{seed} {hash:016x}");
        let same_there = fresh.lines().any(|other| other == line);
        if !same || !same_there {
            differ += 1;
            println!(
                "seed {seed}: traces differ (here {}, in a fresh process {})",
                !same, !same_there
            );
        }
    }
    println!(
        "{} of {} seeds identical, twice here and once in a fresh process",
        hashes.len() - differ,
        hashes.len()
    );
    Ok(differ == 0)
}

fn in_fresh_process(args: &Meta) -> Result<String> {
    let program = std::env::current_exe().context("this program's own path")?;
    let output = std::process::Command::new(program)
        .args(["meta", "--hashes"])
        .args(["--seeds", &args.seeds.to_string()])
        .args(["--from", &args.from.to_string()])
        .args(["--ops", &args.ops.to_string()])
        .args(args.postgres.then_some("--postgres"))
        .output()
        .context("starting a fresh process")?;
    if !output.status.success() {
        bail!("the fresh process failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
