//! `ikada lease`.

use clap::{Args, Subcommand};

use super::WatchArgs;

/// Commands about leases.
#[derive(Debug, Subcommand)]
pub(crate) enum LeaseCommand {
    /// Run a command only while holding a lease; it is killed if the lease is lost.
    Run(LeaseRunArgs),
    /// List the leases that somebody holds.
    #[command(
        after_help = "Examples:\n  ikada lease list\n  ikada lease list -f                          again every second, until Ctrl-C"
    )]
    List(WatchArgs),
    /// Show who holds a lease and who waits.
    #[command(
        after_help = "Examples:\n  ikada lease show backup\n  ikada lease show backup --watch"
    )]
    Show(LeaseShowArgs),
    /// Take a lease once; it ends after its ttl unless it is taken again by the same holder.
    #[command(
        after_help = "Examples:\n  ikada lease acquire backup --holder me --ttl-ms 60000 --output json"
    )]
    Acquire(LeaseTakeArgs),
    /// Give a lease back, or a place in its line.
    #[command(
        after_help = "Examples:\n  ikada lease release backup --holder me\n  ikada lease release backup --holder ann.me --force   takes it from another"
    )]
    Release(LeaseReleaseArgs),
}

const RUN_EXAMPLES: &str = "\
Examples:
  ikada lease run --name backup -- ./backup.sh          waits for its turn, runs once
  ikada lease run --name leader --again -- ./serve      whoever holds it serves; the others stand by
  ikada lease run --name nightly --no-wait -- ./job     does nothing (exit code 4) if another runs it

The command sees IKADA_LEASE and IKADA_FENCE. The fence rises with every holder: have whatever the
command writes to refuse lower ones. Its exit code is passed on; a lost lease gives exit code 3.";

/// Flags of `run`.
#[derive(Debug, Args)]
#[command(after_help = RUN_EXAMPLES)]
pub(crate) struct LeaseRunArgs {
    /// The lease.
    #[arg(long)]
    pub(crate) name: String,
    /// Who holds it; a name of this process alone when absent.
    #[arg(long)]
    pub(crate) holder: Option<String>,
    /// How long it is held unless renewed: after a crash, others wait this long.
    #[arg(long, default_value_t = 15_000, value_parser = clap::value_parser!(u32).range(500..=86_400_000))]
    pub(crate) ttl_ms: u32,
    /// Do not wait if another holds it.
    #[arg(long)]
    pub(crate) no_wait: bool,
    /// Wait at most this long for the turn.
    #[arg(long, conflicts_with = "no_wait")]
    pub(crate) wait_ms: Option<u64>,
    /// After the lease is lost, wait for it and run the command again.
    #[arg(long, conflicts_with = "no_wait")]
    pub(crate) again: bool,
    /// Time between the request to stop (SIGTERM) and the kill (SIGKILL) when the lease is lost.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=60_000))]
    pub(crate) grace_ms: u64,
    /// The command and its arguments.
    #[arg(last = true, required = true)]
    pub(crate) command: Vec<std::ffi::OsString>,
}

/// Flags of `show`.
#[derive(Debug, Args)]
pub(crate) struct LeaseShowArgs {
    /// The lease.
    pub(crate) name: String,
    /// Go on, and show each new holder.
    #[arg(long, short = 'f', visible_alias = "follow")]
    pub(crate) watch: bool,
}

/// Flags of `acquire`.
#[derive(Debug, Args)]
pub(crate) struct LeaseTakeArgs {
    /// The lease.
    pub(crate) name: String,
    /// Who takes it.
    #[arg(long)]
    pub(crate) holder: String,
    /// How long it is held unless renewed; 15000 when absent.
    #[arg(long)]
    pub(crate) ttl_ms: Option<u32>,
    /// How long to wait for the turn.
    #[arg(long, default_value_t = 0)]
    pub(crate) wait_ms: u64,
    /// The task with whose attempt it ends; needs --task-fence.
    #[arg(long, requires = "task_fence")]
    pub(crate) task: Option<String>,
    /// Fence of that attempt.
    #[arg(long, requires = "task")]
    pub(crate) task_fence: Option<u64>,
}

/// Flags of `release`.
#[derive(Debug, Args)]
pub(crate) struct LeaseReleaseArgs {
    /// The lease.
    pub(crate) name: String,
    /// Who gives it back.
    #[arg(long)]
    pub(crate) holder: String,
    /// Fence of the holding; absent: whatever the holder has.
    #[arg(long)]
    pub(crate) fence: Option<u64>,
    /// Take it from another: --holder is the whole name, as `show` has it. For operators and admins.
    #[arg(long)]
    pub(crate) force: bool,
}
