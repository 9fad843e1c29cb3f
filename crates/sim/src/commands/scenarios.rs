//! `scenarios`: the named ones, each with its outcome.

use anyhow::Result;

use crate::args::Scenarios;
use crate::scenario::{SCENARIOS, Told};

/// Does the command.
pub fn perform(args: &Scenarios) -> Result<bool> {
    let mut is_well = true;
    for scenario in SCENARIOS {
        let told = scenario.run(args.seed);
        is_well &= told.violation.is_none();
        if args.json {
            println!("{}", json(scenario.name, scenario.what, &told));
        } else {
            let result = told.violation.as_deref().unwrap_or("ok");
            let Told { changes, changes_max, .. } = told;
            println!(
                "{:<10} {changes:>3} of {changes_max:>3} changes  {}: {result}",
                scenario.name, scenario.what
            );
        }
    }
    Ok(is_well)
}

fn json(name: &str, what: &str, told: &Told) -> serde_json::Value {
    serde_json::json!({
        "scenario": name,
        "what": what,
        "where": "simulator",
        "ok": told.violation.is_none(),
        "violation": told.violation,
        "changes": told.changes,
        "changes_max": told.changes_max,
        "throughput_percent": told.throughput_percent,
        "gap_ms": told.gap_ms,
        "seconds": told.simulated_s,
    })
}
