//! `run`: many seeds, one report.

use std::time::Instant;

use anyhow::{Context, Result};

use super::campaign::{self, Finished};
use crate::args::Run;
use crate::marks::Marks;
use crate::world::tally::Tally;

/// What a campaign came to.
pub struct Report {
    /// Seeds that ran.
    pub seeds: u64,
    /// Seeds with a violation.
    pub failed: Vec<(u64, String)>,
    /// Rare states.
    pub marks: Marks,
    /// Counts.
    pub tally: Tally,
    /// Simulated seconds.
    pub simulated_s: f64,
    /// Real seconds.
    pub real_s: f64,
    /// Seconds of computing, if the system tells: what a shared machine gave us.
    pub cpu_s: Option<f64>,
    /// Hash over all trace hashes.
    pub trace_hash: u64,
}

/// Runs the seeds.
pub fn campaign(args: &Run) -> Report {
    let (began, cpu_began_s) = (Instant::now(), cpu_s());
    let keep_going = args.keep_going;
    let finished = campaign::spread(args.seeds, campaign::threads(args.jobs), |number| {
        let mut finished = run(args.from + number, args, false);
        finished.text = None;
        let failed = finished.outcome.violation.is_some();
        (finished, failed && !keep_going)
    });
    let spent_s = cpu_s().zip(cpu_began_s).map(|(now_s, began_s)| now_s - began_s);
    report(finished, began.elapsed().as_secs_f64(), spent_s)
}

fn run(seed: u64, args: &Run, with_text: bool) -> Finished {
    campaign::run_plan(campaign::draw_plan(seed, args.ops, args.postgres), with_text)
}

/// Seconds of computing of this process so far.
fn cpu_s() -> Option<f64> {
    const TICKS_PER_S: f64 = 100.0;
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program, in brackets, may hold spaces.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    Some((ticks()? + ticks()?) / TICKS_PER_S)
}

fn report(finished: Vec<Finished>, real_s: f64, cpu_s: Option<f64>) -> Report {
    let mut report = Report {
        seeds: finished.len() as u64,
        failed: Vec::new(),
        marks: Marks::default(),
        tally: Tally::default(),
        simulated_s: 0.0,
        real_s,
        cpu_s,
        trace_hash: 0,
    };
    for Finished { seed, outcome, .. } in finished {
        report.marks.add(&outcome.marks);
        report.tally.add(&outcome.tally);
        report.simulated_s += outcome.simulated_us as f64 / 1e6;
        report.trace_hash = report.trace_hash.rotate_left(1) ^ outcome.trace_hash;
        if let Some(violation) = outcome.violation {
            report.failed.push((seed, violation.to_string()));
        }
    }
    report
}

/// Does the command.
pub fn perform(args: &Run) -> Result<bool> {
    if let Some(path) = &args.trace {
        let finished = run(args.from, args, true);
        let text = finished.text.unwrap_or_default();
        std::fs::write(path, text).with_context(|| format!("trace file {}", path.display()))?;
    }
    let report = campaign(args);
    print(&report, args);
    if args.json {
        println!("{}", json(&report, args));
    }
    Ok(report.failed.is_empty())
}

/// Prints a report.
fn print(report: &Report, args: &Run) {
    let Report { seeds, tally, .. } = report;
    println!(
        "seeds {seeds}  operations {}  acked {}  refused {}  unknown {}  unavailable {}  reads {}",
        tally.operations, tally.acked, tally.refused, tally.unknown, tally.unavailable, tally.reads
    );
    println!(
        "events {}  frames {}  entries committed {}  elections {}",
        tally.events, tally.frames, tally.committed, tally.elections
    );
    let faults: Vec<String> = tally.faults.iter().map(|(kind, n)| format!("{kind} {n}")).collect();
    println!("faults: {}", faults.join(", "));
    for (mark, count) in report.marks.iter() {
        println!("mark {count:>9}  {}", mark.words());
    }
    let threads = campaign::threads(args.jobs) as f64;
    let cpu_s = report.cpu_s.unwrap_or(report.real_s * threads);
    println!(
        "simulated {:.2} h in {:.1} s, {cpu_s:.1} s of computing: {:.0}x real time, {:.0}x per core",
        report.simulated_s / 3600.0,
        report.real_s,
        report.simulated_s / report.real_s.max(1e-9),
        report.simulated_s / cpu_s.max(1e-9)
    );
    println!("violations {}", report.failed.len());
    for (seed, violation) in &report.failed {
        println!(
            "seed {seed}: {violation}\n  {}",
            campaign::replay_command(*seed, args.ops, args.postgres)
        );
    }
}

fn json(report: &Report, args: &Run) -> serde_json::Value {
    let marks: serde_json::Map<String, serde_json::Value> =
        report.marks.iter().map(|(mark, count)| (format!("{mark:?}"), count.into())).collect();
    serde_json::json!({
        "test": "S-1",
        "seeds": report.seeds,
        "from": args.from,
        "operations": report.tally.operations,
        "ok": report.tally.acked,
        "refused": report.tally.refused,
        "unknown": report.tally.unknown,
        "unavailable": report.tally.unavailable,
        "faults": report.tally.faults,
        "marks": marks,
        "simulated_hours": report.simulated_s / 3600.0,
        "wall_seconds": report.real_s,
        "cpu_seconds": report.cpu_s,
        "trace": format!("{:016x}", report.trace_hash),
        "violations": report.failed.len(),
        "first_failing_seed": report.failed.first().map(|(seed, _)| seed),
    })
}
