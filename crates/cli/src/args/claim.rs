//! `ikada task claim|complete|fail|renew`: what a worker does, by hand or in a script.

use clap::Args;
use ikada_api::v1::NewTask;

use super::task::{read_follow_up, read_label};

/// Who holds claims that name nobody.
const WORKER_DEFAULT: &str = "cli";

/// Flags of `claim`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ikada task claim --queue mail\n  ikada task claim --queue mail --count 10 --wait 30 --output json\n  ikada task claim --queue mail --output quiet        prints the id and the fence of each\n\nA claim lives for the task's ttl: complete, fail or renew it in time, or another worker gets the task.\nExit code 0 even if there was nothing to claim."
)]
pub(crate) struct ClaimArgs {
    /// The queue; may be given several times.
    #[arg(long, short, default_value = "default")]
    pub(crate) queue: Vec<String>,
    /// Who claims; give the same name to complete, fail and renew.
    #[arg(long, default_value = WORKER_DEFAULT, value_name = "NAME")]
    pub(crate) worker: String,
    /// Most tasks to take.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000), value_name = "N")]
    pub(crate) count: u32,
    /// How long to wait for a task, in seconds.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=60), value_name = "SECONDS")]
    pub(crate) wait: u64,
    /// What the worker has; may be given several times.
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = read_label)]
    pub(crate) labels: Vec<(String, String)>,
}

/// Which claim.
#[derive(Debug, Args)]
pub(crate) struct HeldArgs {
    /// The task: its id, or key:id if it has a key.
    pub(crate) id: String,
    /// The fence that the claim gave.
    #[arg(long, value_name = "N")]
    pub(crate) fence: u64,
    /// Who claimed it.
    #[arg(long, default_value = WORKER_DEFAULT, value_name = "NAME")]
    pub(crate) worker: String,
}

/// Flags of `complete`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ikada task complete report-7 --fence 42\n  ikada task complete report-7 --fence 42 --result '{\"pages\": 3}'\n  ikada task complete report-7 --fence 42 --result-file out.bin --then '{\"queue\": \"mail\"}'\n\nSafe to repeat. Refused (exit code 4) with stale_fence once another attempt has taken over."
)]
pub(crate) struct CompleteArgs {
    #[command(flatten)]
    pub(crate) held: HeldArgs,
    /// What came of it: JSON, or any text (then stored as a JSON string).
    #[arg(long, short, conflicts_with = "result_file")]
    pub(crate) result: Option<String>,
    /// What came of it: the bytes of a file, or of standard input for `-`.
    #[arg(long, value_name = "FILE")]
    pub(crate) result_file: Option<String>,
    /// A follow-up as JSON, submitted in the same step; may be given several times.
    #[arg(long = "then", value_name = "JSON", value_parser = read_follow_up)]
    pub(crate) then: Vec<NewTask>,
}

/// Flags of `fail`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ikada task fail report-7 --fence 42 --error 'no paper'\n  ikada task fail report-7 --fence 42 --error 'bad address' --give-up\n  ikada task fail report-7 --fence 42 --error 'busy' --delay-ms 60000"
)]
pub(crate) struct FailArgs {
    #[command(flatten)]
    pub(crate) held: HeldArgs,
    /// What went wrong.
    #[arg(long, short, default_value = "")]
    pub(crate) error: String,
    /// No further attempt can mend it: the task is dead at once.
    #[arg(long, conflicts_with = "delay_ms")]
    pub(crate) give_up: bool,
    /// Wait before the next attempt; the task's backoff when absent.
    #[arg(long, value_name = "MS")]
    pub(crate) delay_ms: Option<u64>,
}
