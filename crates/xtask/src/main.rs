//! `cargo xtask`: the one gate that every change passes, and the tools around it.
//!
//! Promises: `verify` and `tidy` never edit a tracked file; `fix` is the only command that does. Every rule of the
//! house that a machine can check is checked here and nowhere else, so that CI and a developer run the same thing.
//! `chaos` runs a cluster of real processes under faults, `mixed` one of two versions, `scenarios` the named faults one by
//! one, `postgres` the tests of processes with their logs in a database, `fuzz` libFuzzer, `hostile` programs that attack their worker, `walk` times the first page of the docs, and `sbom` lists
//! what is linked. Leaves out: releases and benchmarks.
//!
//! This file only routes: it reads the arguments and picks the exit code.

mod chaos;
mod fix;
mod fuzz;
mod hostile;
mod mixed;
mod postgres;
mod sbom;
mod scenarios;
mod tidy;
mod tree;
mod verify;
mod walk;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Parser, Subcommand};

const EXAMPLES: &str = "\
Examples:
  cargo xtask verify                  everything CI runs, with a table at the end
  cargo xtask verify --only tidy,fmt  two steps
  cargo xtask verify --list           the names of the steps
  cargo xtask tidy                    the house rules alone, in seconds
  cargo xtask fix                     format, and let clippy mend what it can
  cargo xtask chaos --minutes 10 --faults kill,partition,pause,worker
  cargo xtask mixed --from v0.1.0     that version and this one in one cluster, forward and back
  cargo xtask scenarios               who leads when links, disks and processes fail, in one table
  cargo xtask postgres                every test of whole processes, with the logs in Postgres
  cargo xtask fuzz --seconds 600 log  libFuzzer on one target; all of them if none is named
  cargo xtask sbom                    what goes into the binary, for scanners (CycloneDX)
  cargo xtask hostile                 what hostile modules and commands tried, and how each ended
  cargo xtask walk                    docs/first-job.md with a clock: build, start and commands apart";

/// Checks and mends this repository.
#[derive(Parser)]
#[command(name = "xtask", bin_name = "cargo xtask", after_help = EXAMPLES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run every check; edits nothing.
    #[command(after_help = EXAMPLES)]
    Verify {
        /// Run only these steps, separated by commas, in the order of the list.
        #[arg(long, value_delimiter = ',', value_name = "STEP")]
        only: Vec<String>,
        /// Print the steps and what each one runs, then stop.
        #[arg(long)]
        list: bool,
    },
    /// Format the code and apply clippy's suggestions; edits files.
    Fix,
    /// Run a cluster of real processes under faults, and judge what its clients saw.
    Chaos(chaos::ChaosArgs),
    /// Run another version and this one in one cluster, rolling forward and back.
    Mixed(mixed::MixedArgs),
    /// Run the named scenarios in the simulator and with real processes, and print one table.
    Scenarios(scenarios::ScenarioArgs),
    /// Run every test of whole processes with its logs in a Postgres of its own.
    Postgres(postgres::PostgresArgs),
    /// Run libFuzzer on every reader of bytes from outside; needs a nightly compiler and cargo-fuzz.
    Fuzz(fuzz::FuzzArgs),
    /// Run hostile modules and commands in the worker's sandbox, and print what each tried and how it ended.
    Hostile(hostile::HostileArgs),
    /// Follow docs/first-job.md as it stands, and time the build, the start and its commands apart.
    Walk(walk::WalkArgs),
    /// Write down what goes into the binary: packages, versions, licences and checksums.
    Sbom(sbom::SbomArgs),
    /// Check the house rules: arrows, purity, sizes, headers, papers; edits nothing.
    Tidy,
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Runs the chosen command and says whether everything was in order.
fn run() -> anyhow::Result<bool> {
    let arguments = Arguments::parse();
    let root = workspace_root()?;
    match arguments.command {
        Command::Verify { list: true, .. } => {
            verify::list();
            Ok(true)
        }
        Command::Verify { only, .. } => verify::run(&root, &only),
        Command::Fix => fix::run(&root),
        Command::Chaos(args) => chaos::run(&root, &args),
        Command::Mixed(args) => mixed::run(&root, &args),
        Command::Scenarios(args) => scenarios::run(&root, &args),
        Command::Postgres(args) => postgres::run(&root, &args),
        Command::Fuzz(args) => fuzz::run(&root, &args),
        Command::Hostile(args) => hostile::run(&root, &args),
        Command::Walk(args) => walk::run(&root, &args),
        Command::Sbom(args) => sbom::run(&root, &args),
        Command::Tidy => tidy::run(&root),
    }
}

/// The folder of the workspace manifest: two above this crate's, which cargo names when it runs or builds us.
fn workspace_root() -> anyhow::Result<PathBuf> {
    let manifest_dir = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    manifest_dir
        .parent()
        .and_then(Path::parent)
        .map(Path::to_path_buf)
        .with_context(|| format!("no workspace above {}", manifest_dir.display()))
}
