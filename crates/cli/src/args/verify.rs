//! `ikada verify`.

use clap::Args;

/// Flags of `verify`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ikada verify --url http://127.0.0.1:7400 --url http://127.0.0.1:7410 --seconds 60\n\nFor test clusters: it makes a queue of its own and fills it. Pull plugs meanwhile. Exit code 1 if anything is violated."
)]
pub(crate) struct VerifyArgs {
    /// How long to work.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400), value_name = "N")]
    pub(crate) seconds: u64,
    /// Submissions per second.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=5_000), value_name = "N")]
    pub(crate) rate: u32,
    /// No worker dies or comes back late.
    #[arg(long)]
    pub(crate) calm_workers: bool,
}
