//! `ikada cluster`.

use clap::{Args, Subcommand};

/// Commands about the cluster.
#[derive(Debug, Subcommand)]
pub(crate) enum ClusterCommand {
    /// Show members, shards and leaders.
    #[command(
        after_help = "Examples:\n  ikada cluster status\n  ikada cluster status --output json | jq .shards"
    )]
    Status,
    /// Show the role changes of one node, with reasons.
    Events(EventsArgs),
    /// Move leadership to another node.
    Transfer(TransferArgs),
}

/// Flags of `events`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ikada cluster events --url http://127.0.0.1:7410\n  ikada cluster events --follow"
)]
pub(crate) struct EventsArgs {
    /// Go on as new ones come, until Ctrl-C.
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Only events after this number.
    #[arg(long, default_value_t = 0, value_name = "SEQUENCE")]
    pub(crate) after: u64,
}

/// Flags of `transfer`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ikada cluster transfer --shard 2 --to 17\n  ikada cluster transfer            every shard moves to its most caught-up other voter"
)]
pub(crate) struct TransferArgs {
    /// The shard; all when absent.
    #[arg(long)]
    pub(crate) shard: Option<u16>,
    /// The new leader's node id; the most caught-up other voter when absent.
    #[arg(long, value_name = "NODE")]
    pub(crate) to: Option<u64>,
}
