//! `cargo xtask hostile`: programs that try to get out of the worker's sandbox or to use everything up, in one table (X11, X12).
//!
//! Promises: every probe that ran is a row, also one that got through; the verdict is that all were contained and that there
//! were as many as are asked for. Leaves out: the probes, which are tests of the worker.

mod table;

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Context;

use table::Row;

/// Fewer modules are no report.
const MODULES_MIN: usize = 25;
/// Fewer commands are none either.
const COMMANDS_MIN: usize = 30;
/// The tests that send probes.
const TESTS: &str = "test(/x_1[12]_/)";

/// Settings of a run.
#[derive(Debug, clap::Args)]
pub struct HostileArgs {
    /// Print one line of JSON per row instead of a table.
    #[arg(long)]
    json: bool,
}

/// Runs all; true if every probe was contained.
pub fn run(root: &Path, args: &HostileArgs) -> anyhow::Result<bool> {
    let folder = root.join("target").join("hostile");
    std::fs::create_dir_all(&folder).context("target/hostile")?;
    let report = folder.join("report.jsonl");
    let _ = std::fs::remove_file(&report);
    let status = Command::new("cargo")
        // The whole workspace, as every verification builds it: with other features it would be built anew.
        .args(["nextest", "run", "--locked", "--no-fail-fast", "--workspace"])
        .args(["--test", "programs", "-E", TESTS])
        .env("IKADA_HOSTILE_REPORT", &report)
        .current_dir(root)
        .stdout(Stdio::null())
        .status()
        .context("cargo nextest; install it with: cargo install cargo-nextest --locked")?;
    let text = std::fs::read_to_string(&report).context("the tests told nothing")?;
    let mut rows: Vec<Row> = text.lines().map(Row::read).collect::<anyhow::Result<_>>()?;
    rows.sort();
    match args.json {
        true => rows.iter().for_each(|row| println!("{}", row.json())),
        false => println!("{}", table::table(&rows)),
    }
    let missing = missing(&rows);
    missing.iter().for_each(|what| eprintln!("{what}"));
    Ok(status.success() && missing.is_empty() && rows.iter().all(|row| row.contained))
}

/// What keeps the rows from being a report.
fn missing(rows: &[Row]) -> Vec<String> {
    [("module", MODULES_MIN), ("command", COMMANDS_MIN)]
        .into_iter()
        .filter_map(|(kind, least)| {
            let count = rows.iter().filter(|row| row.kind == kind).count();
            (count < least)
                .then(|| format!("only {count} probes by a {kind} ran, {least} are wanted"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x_12_too_few_probes_are_no_report() {
        let line = |kind: &str| {
            format!(
                r#"{{"kind":"{kind}","wall":"w","tried":"t","ended":"e","contained":true,"seconds":0.5}}"#
            )
        };
        let rows = |kind: &str, count| vec![Row::read(&line(kind)).expect("a row"); count];
        let enough = [rows("module", MODULES_MIN), rows("command", COMMANDS_MIN)].concat();
        assert_eq!(missing(&enough), Vec::<String>::new());
        assert_eq!(missing(&enough[1..]).len(), 1);
        assert_eq!(missing(&[]).len(), 2);
        assert!(Row::read("nonsense").is_err());
    }
}
