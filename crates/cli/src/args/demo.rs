//! `ikada demo`.

use clap::Args;

const EXAMPLES: &str = "\
Examples:
  ikada demo                      about ten seconds; exit code 0 when nothing was lost or counted twice
  ikada demo --texts 1000         more work
  ikada demo --keep               leave the cluster running until Ctrl-C, to look around";

/// Flags of the demo.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DemoArgs {
    /// How many texts to count the words of, one task each.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(40..=10_000))]
    pub(crate) texts: u32,
    /// Stay up afterwards until Ctrl-C.
    #[arg(long)]
    pub(crate) keep: bool,
}
