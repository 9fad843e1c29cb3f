//! `ikada worker-pool`.

use clap::{Args, Subcommand};

use super::WatchArgs;

/// Commands about workers.
#[derive(Debug, Subcommand)]
pub(crate) enum WorkerPoolCommand {
    /// List all workers: alive, draining or dead, slots, queues, labels.
    #[command(
        after_help = "Examples:\n  ikada worker-pool list\n  ikada worker-pool list -f                    again every second, until Ctrl-C"
    )]
    List(WatchArgs),
    /// Show what the autoscaler did lately, and why; every node tells the same.
    #[command(after_help = "Examples:\n  ikada worker-pool scaling")]
    Scaling,
    /// Show one worker.
    #[command(after_help = "Examples:\n  ikada worker-pool show mailer-1")]
    Show(WorkerName),
    /// Let a worker finish what it has and leave.
    #[command(after_help = "Examples:\n  ikada worker-pool drain mailer-1")]
    Drain(WorkerName),
    /// End a worker's session at once; its tasks are run by others.
    #[command(after_help = "Examples:\n  ikada worker-pool remove mailer-1")]
    Remove(WorkerName),
}

/// A worker.
#[derive(Debug, Args)]
pub(crate) struct WorkerName {
    /// The worker, as `list` shows it.
    pub(crate) name: String,
}
