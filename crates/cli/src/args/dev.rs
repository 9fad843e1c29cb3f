//! `ikada dev`.

use std::path::PathBuf;

use clap::Args;

const EXAMPLES: &str = "\
Examples:
  ikada dev                       a node with two slots for tasks on 127.0.0.1:7400, data in ./ikada-data
  ikada dev --slots 8 --port 7500
  ikada job run --map wordcount --input 'texts/*.txt' --reduce merge     in another terminal

Everything runs in this one process, for loopback only. Commands may run here without being allowed by name.";

/// Flags of `dev`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DevArgs {
    /// Where data is kept; run it again to go on with it.
    #[arg(long, default_value = "ikada-data")]
    pub(crate) data: PathBuf,
    /// The port for clients; the next one is for peers.
    #[arg(long, default_value_t = 7400, value_parser = clap::value_parser!(u16).range(1..=65_534))]
    pub(crate) port: u16,
    /// How many tasks run at one time.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) slots: u32,
    /// A queue to take tasks from; may be given several times.
    #[arg(long, default_value = "default", value_delimiter = ',')]
    pub(crate) queue: Vec<String>,
}
