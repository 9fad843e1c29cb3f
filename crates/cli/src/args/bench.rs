//! `ikada bench`.

use clap::{Args, Subcommand};

/// Benches; each starts a cluster of its own on this machine and removes it afterwards.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum BenchCommand {
    /// Time cold starts: from nothing to one agreed leader per shard on every node.
    Startup(StartupArgs),
    /// Kill leaders under load: how long writes wait, and that nothing acknowledged is lost.
    Failover(FailoverArgs),
}

const EXAMPLES: &str = "\
Examples:
  ikada bench startup                           100 cold starts of three nodes, about two minutes
  ikada bench startup --runs 10 --shards 16
  ikada bench failover                          50 times kill -9 of a leader under 200 writes/s
  ikada bench failover --kills 5 --output json

Use a release build. Exit code 1 if a start never settles, or if anything acknowledged is missing or doubled.";

/// Flags of `startup`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct StartupArgs {
    /// How many cold starts.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000), value_name = "N")]
    pub(crate) runs: u32,
    /// How many nodes.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=7), value_name = "N")]
    pub(crate) nodes: u16,
    /// How many shards.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64), value_name = "N")]
    pub(crate) shards: u16,
}

/// Flags of `failover`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct FailoverArgs {
    /// How many leaders to kill.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000), value_name = "N")]
    pub(crate) kills: u32,
    /// Writes per second.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(10..=20_000), value_name = "N")]
    pub(crate) rate: u32,
    /// How many nodes.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(3..=7), value_name = "N")]
    pub(crate) nodes: u16,
    /// How many shards.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64), value_name = "N")]
    pub(crate) shards: u16,
}
