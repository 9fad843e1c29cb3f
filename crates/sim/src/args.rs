//! Flags and commands.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand};

/// Runs simulated clusters from seeds and checks every promise after every event.
#[derive(Debug, Parser)]
#[command(name = "ikada-sim", version, after_help = "Example: ikada-sim run --seeds 2000")]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run many seeds and report violations, marks and speed.
    Run(Run),
    /// Run seeds twice, and again in a fresh process: the traces must be equal.
    Meta(Meta),
    /// Step through one seed.
    Replay(Replay),
    /// Show that every planted defect is found (needs the cargo feature `planted`).
    Planted(Planted),
    /// Count rare states over many seeds and name those that are too rare.
    Marks(Run),
    /// Crash leaders and count how many elections settle in the first round (MQ-15).
    Elections(Elections),
    /// Run seeds of the world of blobs: uploads, removals, rot, members that come and leave.
    Blobs(Blobs),
    /// Play the named scenarios: broken links, paused processes, slow disks, restarts.
    Scenarios(Scenarios),
}

/// Which seeds, and how.
#[derive(Debug, Clone, ClapArgs)]
pub struct Run {
    /// How many seeds.
    #[arg(long, default_value_t = 300)]
    pub seeds: u64,
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    pub from: u64,
    /// Client operations per seed.
    #[arg(long, default_value_t = 500)]
    pub ops: u64,
    /// Seeds at a time; one core each.
    #[arg(long)]
    pub jobs: Option<usize>,
    /// Print one line of JSON as well.
    #[arg(long)]
    pub json: bool,
    /// Write the trace of the first seed to this file.
    #[arg(long)]
    pub trace: Option<PathBuf>,
    /// Go on after the first violation.
    #[arg(long)]
    pub keep_going: bool,
    /// Keep the logs in a simulated Postgres instead of on the nodes' disks.
    #[arg(long)]
    pub postgres: bool,
}

/// Determinism.
#[derive(Debug, Clone, ClapArgs)]
pub struct Meta {
    /// How many seeds.
    #[arg(long, default_value_t = 100)]
    pub seeds: u64,
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    pub from: u64,
    /// Client operations per seed.
    #[arg(long, default_value_t = 500)]
    pub ops: u64,
    /// Keep the logs in a simulated Postgres instead of on the nodes' disks.
    #[arg(long)]
    pub postgres: bool,
    /// Print hashes only and start no other process (used by the command itself).
    #[arg(long, hide = true)]
    pub hashes: bool,
}

/// One seed.
#[derive(Debug, Clone, ClapArgs)]
pub struct Replay {
    /// Which seed.
    #[arg(long)]
    pub seed: u64,
    /// Client operations.
    #[arg(long, default_value_t = 500)]
    pub ops: u64,
    /// Wait for a key (enter: one line; number: so many lines; `s`: state of all nodes; `q`: quit) after each line.
    #[arg(long)]
    pub step: bool,
    /// Show lines from this number on.
    #[arg(long, default_value_t = 0)]
    pub from: u64,
    /// Show lines up to this number.
    #[arg(long)]
    pub to: Option<u64>,
    /// Show only lines of this node (and of the world).
    #[arg(long)]
    pub node: Option<u64>,
    /// Show only lines with this word.
    #[arg(long)]
    pub what: Option<String>,
    /// Show only the last lines before the violation.
    #[arg(long)]
    pub until_violation: bool,
    /// Write the whole trace to this file.
    #[arg(long)]
    pub trace: Option<PathBuf>,
    /// Keep the logs in a simulated Postgres instead of on the nodes' disks.
    #[arg(long)]
    pub postgres: bool,
    /// Print the plan of the seed.
    #[arg(long)]
    pub plan: bool,
}

/// Seeds of the world of blobs.
#[derive(Debug, Clone, ClapArgs)]
pub struct Blobs {
    /// How many seeds.
    #[arg(long, default_value_t = 1_000)]
    pub seeds: u64,
    /// The first seed.
    #[arg(long, default_value_t = 0)]
    pub from: u64,
    /// Steps per seed.
    #[arg(long, default_value_t = 600)]
    pub steps: u32,
    /// Show that every mischief is found instead.
    #[arg(long)]
    pub mischief: bool,
}

/// Planted defects.
#[derive(Debug, Clone, ClapArgs)]
pub struct Planted {
    /// Give up on a defect after this many seeds.
    #[arg(long, default_value_t = 2_000)]
    pub seeds: u64,
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    pub from: u64,
    /// Client operations per seed.
    #[arg(long, default_value_t = 500)]
    pub ops: u64,
    /// Only defects whose name contains this.
    #[arg(long)]
    pub only: Option<String>,
    /// Defects at a time; one core each.
    #[arg(long)]
    pub jobs: Option<usize>,
}

/// Elections.
#[derive(Debug, Clone, ClapArgs)]
pub struct Elections {
    /// How many crashes of a leader.
    #[arg(long, default_value_t = 1_000)]
    pub crashes: u64,
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    pub from: u64,
    /// Nodes in the cluster.
    #[arg(long, default_value_t = 3)]
    pub nodes: u64,
}

/// Named scenarios.
#[derive(Debug, Clone, ClapArgs)]
pub struct Scenarios {
    /// The seed of all of them.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Print one line of JSON each.
    #[arg(long)]
    pub json: bool,
}
