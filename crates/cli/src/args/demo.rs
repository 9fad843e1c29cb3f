//! `ikada demo`.

use clap::Args;

const EXAMPLES: &str = "\
Examples:
  ikada demo                      about ten seconds; exit code 0 when nothing was lost or done twice
  ikada demo --tasks 20000        more work
  ikada demo --keep               leave the cluster running until Ctrl-C, to look around";

/// Flags of the demo.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DemoArgs {
    /// How many tasks to run.
    #[arg(long, default_value_t = 3_000, value_parser = clap::value_parser!(u32).range(10..=1_000_000))]
    pub(crate) tasks: u32,
    /// Stay up afterwards until Ctrl-C.
    #[arg(long)]
    pub(crate) keep: bool,
}
