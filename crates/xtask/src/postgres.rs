//! `cargo xtask postgres`: the tests of whole processes, queue, jobs, objects and all, with every cluster's logs in a Postgres that
//! each test starts for itself.
//!
//! Promise: one switch for all of them; a test that needs Postgres and does not find it fails here instead of passing over itself.
//! Leaves out: what this mode has not, which the tests name and pass over (docs/guides/postgres.md).

use std::path::Path;
use std::process::Command;

use anyhow::Context;

/// What the tests of processes look at (`crates/store/tests/postgres/missing.rs`), and the one that takes a minute.
const SWITCHES: [&str; 2] = ["IKADA_TEST_POSTGRES", "IKADA_TEST_BALANCE"];

/// Settings of a run.
#[derive(Debug, clap::Args)]
pub struct PostgresArgs {
    /// Only tests whose name contains this, e.g. jobs:: or ls_14.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// So many tests beside each other; as many as nextest takes by itself when absent.
    #[arg(long, value_name = "COUNT")]
    threads: Option<u32>,
}

/// Runs them; true if all passed.
pub fn run(root: &Path, args: &PostgresArgs) -> anyhow::Result<bool> {
    let mut command = Command::new("cargo");
    // One package alone would have all dependencies built again, with the features that it asks for itself.
    command.args(["nextest", "run", "--locked", "--workspace", "--test", "process"]);
    command.args(filter(args));
    if let Some(threads) = args.threads {
        command.args(["--test-threads", &threads.to_string()]);
    }
    command.current_dir(root).envs(SWITCHES.map(|switch| (switch, "1")));
    Ok(command.status().context("cargo nextest (.ci/run installs it)")?.success())
}

fn filter(args: &PostgresArgs) -> Vec<String> {
    match &args.only {
        None => Vec::new(),
        Some(only) => vec!["-E".to_owned(), format!("test({only})")],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_tests_of_processes_are_run_or_those_that_were_named() {
        let args =
            |only: Option<&str>| PostgresArgs { only: only.map(str::to_owned), threads: None };
        assert!(filter(&args(None)).is_empty());
        assert_eq!(filter(&args(Some("jobs::"))), ["-E", "test(jobs::)"]);
    }
}
