//! `ikada task`.

use clap::{Args, Subcommand};
use ikada_api::v1::TaskStateName;

/// Commands about tasks.
#[derive(Debug, Subcommand)]
pub(crate) enum TaskCommand {
    /// Submit a task.
    Enqueue(EnqueueArgs),
    /// Show one task.
    Show(ShowArgs),
    /// List tasks.
    List(ListArgs),
    /// Cancel a task that is not finished.
    #[command(after_help = "Examples:\n  ikada task cancel report-7")]
    Cancel {
        /// The task.
        id: String,
    },
    /// Tell why a task is not running.
    #[command(after_help = "Examples:\n  ikada task explain report-7")]
    Explain {
        /// The task.
        id: String,
    },
    /// Give dead or cancelled tasks fresh attempts; they keep their history.
    #[command(
        after_help = "Examples:\n  ikada task retry report-7 report-8\n  ikada task retry --queue mail --all        every dead task of the queue"
    )]
    Retry(ManyArgs),
    /// Remove finished tasks before their retention time is over.
    #[command(
        after_help = "Examples:\n  ikada task drop report-7\n  ikada task drop --queue mail --all              every dead task of the queue\n  ikada task drop --queue mail --all --finished   done and cancelled ones too"
    )]
    Drop(DropArgs),
}

/// Tasks by name, or all dead ones of a queue.
#[derive(Debug, Args)]
pub(crate) struct ManyArgs {
    /// The tasks.
    #[arg(required_unless_present = "all")]
    pub(crate) ids: Vec<String>,
    /// The queue whose dead tasks are meant.
    #[arg(long, short, requires = "all", conflicts_with = "ids")]
    pub(crate) queue: Option<String>,
    /// All dead tasks of the queue.
    #[arg(long, requires = "queue")]
    pub(crate) all: bool,
}

/// Flags of `drop`.
#[derive(Debug, Args)]
pub(crate) struct DropArgs {
    #[command(flatten)]
    pub(crate) many: ManyArgs,
    /// With --all: done and cancelled tasks too.
    #[arg(long, requires = "all")]
    pub(crate) finished: bool,
}

const ENQUEUE_EXAMPLES: &str = "\
Examples:
  ikada task enqueue --queue mail --payload '{\"to\": \"ann\"}'
  ikada task enqueue --id nightly-2031-04-01 --delay-ms 60000
  ikada task enqueue --payload-file picture.raw --output quiet
  ikada task enqueue --key deploy-42 --payload 1      repeating this line submits nothing new";

/// Flags of `enqueue`.
#[derive(Debug, Args)]
#[command(after_help = ENQUEUE_EXAMPLES)]
pub(crate) struct EnqueueArgs {
    /// The queue.
    #[arg(long, short, default_value = "default")]
    pub(crate) queue: String,
    /// The task's id; drawn when absent.
    #[arg(long)]
    pub(crate) id: Option<String>,
    /// What to do: JSON, or any text (then stored as a JSON string).
    #[arg(long, short, conflicts_with = "payload_file")]
    pub(crate) payload: Option<String>,
    /// What to do: the bytes of a file, or of standard input for `-`.
    #[arg(long, value_name = "FILE")]
    pub(crate) payload_file: Option<String>,
    /// 0 to 9, 9 first.
    #[arg(long)]
    pub(crate) priority: Option<u8>,
    /// Not before this many ms from now.
    #[arg(long, conflicts_with = "run_at_ms")]
    pub(crate) delay_ms: Option<u64>,
    /// Not before this time (ms since 1970).
    #[arg(long)]
    pub(crate) run_at_ms: Option<u64>,
    /// Most attempts; the queue's setting when absent.
    #[arg(long)]
    pub(crate) max_attempts: Option<u16>,
    /// How long a claim lives without renewal; the queue's setting when absent.
    #[arg(long)]
    pub(crate) ttl_ms: Option<u32>,
    /// Request id: repeating a command under the same key does nothing new.
    #[arg(long)]
    pub(crate) key: Option<String>,
}

/// Flags of `show`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ikada task show report-7\n  ikada task show report-7 --output json | jq .result\n  ikada task show report-7 --stale        answered by the asked node alone"
)]
pub(crate) struct ShowArgs {
    /// The task.
    pub(crate) id: String,
    /// Take what the asked node has, without asking the leader.
    #[arg(long)]
    pub(crate) stale: bool,
}

/// Flags of `list`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ikada task list --queue mail --state dead\n  ikada task list --limit 1000 --output quiet"
)]
pub(crate) struct ListArgs {
    /// Only this queue.
    #[arg(long, short)]
    pub(crate) queue: Option<String>,
    /// Only this state: scheduled, ready, claimed, done, dead or cancelled.
    #[arg(long, short)]
    pub(crate) state: Option<TaskStateName>,
    /// Most tasks to show.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: u32,
    /// Take what the asked node has, without asking the leaders.
    #[arg(long)]
    pub(crate) stale: bool,
}
