//! `ikada task`.

use clap::{Args, Subcommand};
use ikada_api::v1::{NewTask, TaskStateName, WorkInput};

use super::WatchArgs;
use super::claim::{ClaimArgs, CompleteArgs, FailArgs, HeldArgs};

/// Commands about tasks.
#[derive(Debug, Subcommand)]
pub(crate) enum TaskCommand {
    /// Submit a task, or a file of tasks.
    Enqueue(Box<EnqueueArgs>),
    /// Take tasks to run them by hand or in a script.
    Claim(ClaimArgs),
    /// Settle a claimed task as done.
    Complete(Box<CompleteArgs>),
    /// End the attempt of a claimed task as failed.
    Fail(FailArgs),
    /// Keep a claim alive for another ttl.
    #[command(after_help = "Examples:\n  ikada task renew report-7 --fence 42")]
    Renew(HeldArgs),
    /// Show one task.
    Show(ShowArgs),
    /// List tasks.
    List(ListArgs),
    /// Cancel a task that is not finished.
    #[command(
        after_help = "Examples:\n  ikada task cancel report-7\n  ikada task cancel user-7:mail        a task with a key goes by key:id"
    )]
    Cancel {
        /// The task: its id, or key:id if it has a key.
        id: String,
    },
    /// Tell why a task is not running.
    #[command(after_help = "Examples:\n  ikada task explain report-7\n  ikada task explain last")]
    Explain {
        /// The task: its id, key:id if it has a key, or `last` for the newest.
        id: String,
    },
    /// Print what a task's program has said.
    Logs(LogsArgs),
    /// Give dead or cancelled tasks fresh attempts; they keep their history.
    #[command(
        after_help = "Examples:\n  ikada task retry report-7 report-8\n  ikada task retry --queue mail --all        every dead task of the queue"
    )]
    Retry(ManyArgs),
    /// Remove finished tasks before their retention time is over.
    #[command(
        after_help = "Examples:\n  ikada task drop report-7\n  ikada task drop --queue mail --all              every dead task of the queue\n  ikada task drop --queue mail --all --finished   done and cancelled ones too\n  ikada task drop --queue mail --all --yes        does not ask, as it would on a terminal"
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
    /// Do not ask.
    #[arg(long, short)]
    pub(crate) yes: bool,
}

const ENQUEUE_EXAMPLES: &str = "\
Examples:
  ikada task enqueue --queue mail --payload '{\"to\": \"ann\"}'
  ikada task enqueue --id nightly-2031-04-01 --delay-ms 60000
  ikada task enqueue --payload-file picture.raw --output quiet
  ikada task enqueue --key user-7 --payload 1         in order after earlier tasks with this key
  ikada task enqueue --label gpu=a100 --timeout-ms 600000
  ikada task enqueue --id build --then '{\"id\": \"test\"}' --then '{\"id\": \"lint\"}'
  ikada task enqueue --program wordcount --set top=5 --input a.txt=texts/a.txt
  ikada task enqueue --idempotency-key deploy-42      repeating this line submits nothing new
  ikada task enqueue --file tasks.ndjson --queue mail   one task as JSON per line, each with an outcome of its own
  producer | ikada task enqueue --file - --output quiet

A file is sent a part at a time; with --output json there is one document per part. A bad line is refused alone. Repeating the
line with the same file and --idempotency-key submits what is missing.";

/// Flags of `enqueue`.
#[derive(Debug, Args)]
#[command(after_help = ENQUEUE_EXAMPLES)]
pub(crate) struct EnqueueArgs {
    /// The task's id; drawn when absent.
    #[arg(long)]
    pub(crate) id: Option<String>,
    #[command(flatten)]
    pub(crate) settings: TaskSettings,
    /// Not before this time (ms since 1970).
    #[arg(long, conflicts_with = "delay_ms")]
    pub(crate) run_at_ms: Option<u64>,
    /// Not begun at or after this time (ms since 1970).
    #[arg(long, conflicts_with = "deadline_in_ms")]
    pub(crate) deadline_ms: Option<u64>,
    /// A follow-up as JSON, submitted when this task is completed; may be given several times.
    #[arg(long = "then", value_name = "JSON", value_parser = read_follow_up)]
    pub(crate) then: Vec<NewTask>,
    /// Tasks as JSON, one per line, of this file, or of standard input for `-`; those without a queue go to --queue.
    #[arg(long, short, value_name = "FILE", conflicts_with_all = [
        "id", "run_at_ms", "deadline_ms", "then", "payload", "payload_file", "priority", "delay_ms", "max_attempts", "ttl_ms",
        "backoff_base_ms", "key", "key_limit", "labels", "timeout_ms", "deadline_in_ms", "retention_ms", "program",
    ])]
    pub(crate) file: Option<String>,
    /// Request id: repeating a command under the same one does nothing new.
    #[arg(long, value_name = "KEY")]
    pub(crate) idempotency_key: Option<String>,
}

/// What a task is told, whoever submits it.
#[derive(Debug, Args)]
pub(crate) struct TaskSettings {
    /// The queue.
    #[arg(long, short, default_value = "default")]
    pub(crate) queue: String,
    /// What to do: JSON, or any text (then stored as a JSON string).
    #[arg(long, short, conflicts_with = "payload_file")]
    pub(crate) payload: Option<String>,
    /// What to do: the bytes of a file, or of standard input for `-`.
    #[arg(long, value_name = "FILE")]
    pub(crate) payload_file: Option<String>,
    /// 0 to 9, 9 first.
    #[arg(long)]
    pub(crate) priority: Option<u8>,
    /// Not before this many ms from submission.
    #[arg(long)]
    pub(crate) delay_ms: Option<u64>,
    /// Most attempts; the queue's setting when absent.
    #[arg(long)]
    pub(crate) max_attempts: Option<u16>,
    /// How long a claim lives without renewal; the queue's setting when absent.
    #[arg(long)]
    pub(crate) ttl_ms: Option<u32>,
    /// Wait after the first failure; the queue's setting when absent.
    #[arg(long, requires = "backoff_cap_ms")]
    pub(crate) backoff_base_ms: Option<u32>,
    /// Longest wait between attempts.
    #[arg(long, requires = "backoff_base_ms")]
    pub(crate) backoff_cap_ms: Option<u32>,
    /// Ordering key: tasks with the same key in a queue are handed out one by one, in order.
    #[arg(long)]
    pub(crate) key: Option<String>,
    /// Most tasks of the key that run at one time: 1 is strict order, 0 no limit.
    #[arg(long)]
    pub(crate) key_limit: Option<u16>,
    /// What the worker must have; may be given several times.
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = read_label)]
    pub(crate) labels: Vec<(String, String)>,
    /// Longest time for a whole attempt, renewed or not; 0 is no limit.
    #[arg(long)]
    pub(crate) timeout_ms: Option<u32>,
    /// Not begun after this many ms from submission; 0 is no deadline.
    #[arg(long)]
    pub(crate) deadline_in_ms: Option<u64>,
    /// How long the finished task is kept, whatever the queue's settings say.
    #[arg(long)]
    pub(crate) retention_ms: Option<u64>,
    /// The program to run, by name.
    #[arg(long)]
    pub(crate) program: Option<String>,
    /// A setting for the program; may be given several times.
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = read_label, requires = "program")]
    pub(crate) set: Vec<(String, String)>,
    /// A file for the program: its name there and an object, or an address; may be given several times.
    #[arg(long = "input", value_name = "NAME=BUCKET/KEY", value_parser = read_input, requires = "program")]
    pub(crate) inputs: Vec<WorkInput>,
    /// Use the result of the same program, settings, payload and inputs instead of running it again.
    #[arg(long, requires = "program")]
    pub(crate) reuse: bool,
}

pub(super) fn read_label(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("must be NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// `NAME=BUCKET/KEY`, or `NAME=URL`.
fn read_input(text: &str) -> Result<WorkInput, String> {
    let (name, place) = text.split_once('=').ok_or("must be NAME=BUCKET/KEY or NAME=URL")?;
    let mut input = WorkInput { name: name.to_owned(), ..WorkInput::default() };
    if place.contains("://") {
        input.url = Some(place.to_owned());
        return Ok(input);
    }
    let (bucket, key) = place.split_once('/').ok_or("must be NAME=BUCKET/KEY or NAME=URL")?;
    (input.bucket, input.key) = (Some(bucket.to_owned()), Some(key.to_owned()));
    Ok(input)
}

pub(super) fn read_follow_up(text: &str) -> Result<NewTask, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// Flags of `show`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ikada task show report-7\n  ikada task show report-7 -f            again every second, until Ctrl-C\n  ikada task show last\n  ikada task show report-7 --output json | jq .result\n  ikada task show report-7 --stale        answered by the asked node alone"
)]
pub(crate) struct ShowArgs {
    /// The task: its id, key:id if it has a key, or `last` for the newest.
    pub(crate) id: String,
    /// Take what the asked node has, without asking the leader.
    #[arg(long)]
    pub(crate) stale: bool,
    #[command(flatten)]
    pub(crate) watch: WatchArgs,
}

/// Flags of `logs`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ikada task logs report-7\n  ikada task logs report-7 -f              goes on until the task is finished\n  ikada task logs report-7 --attempt 1\n\nLogs are kept as long as their task. They reach the cluster a second or more after they were written."
)]
pub(crate) struct LogsArgs {
    /// The task: its id, key:id if it has a key, or `last` for the newest.
    pub(crate) id: String,
    /// Which attempt; the newest when absent.
    #[arg(long)]
    pub(crate) attempt: Option<u16>,
    /// Go on until the task is finished.
    #[arg(long, short)]
    pub(crate) follow: bool,
}

/// Flags of `list`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ikada task list --queue mail --state dead\n  ikada task list --state claimed -f         again every second, until Ctrl-C\n  ikada task list --find invoice-2026\n  ikada task list --limit 1000 --output quiet"
)]
pub(crate) struct ListArgs {
    /// Only this queue.
    #[arg(long, short)]
    pub(crate) queue: Option<String>,
    /// Only this state: scheduled, ready, claimed, done, dead or cancelled.
    #[arg(long, short)]
    pub(crate) state: Option<TaskStateName>,
    /// Only tasks whose newest attempt is this worker's; with --state claimed: what it runs now.
    #[arg(long)]
    pub(crate) worker: Option<String>,
    /// Only tasks with this text in their ids.
    #[arg(long, value_name = "TEXT")]
    pub(crate) find: Option<String>,
    /// Most tasks to show.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: u32,
    /// Take what the asked node has, without asking the leaders.
    #[arg(long)]
    pub(crate) stale: bool,
    #[command(flatten)]
    pub(crate) watch: WatchArgs,
}
