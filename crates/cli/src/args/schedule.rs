//! `ikada schedule`.

use clap::{Args, Subcommand, ValueEnum};
use ikada_api::v1::{MissedPolicy, NewTask, OverlapPolicy};

use super::WatchArgs;
use super::task::{TaskSettings, read_follow_up};

/// Commands about schedules.
#[derive(Debug, Subcommand)]
pub(crate) enum ScheduleCommand {
    /// Make a schedule, or replace it as a whole.
    Set(Box<ScheduleSetArgs>),
    /// List all schedules.
    #[command(
        after_help = "Examples:\n  ikada schedule list\n  ikada schedule list -f --every 10            again every ten seconds, until Ctrl-C"
    )]
    List(WatchArgs),
    /// Show a schedule: settings, last and next instants, what was missed.
    #[command(after_help = "Examples:\n  ikada schedule show nightly")]
    Show(ScheduleName),
    /// Let a schedule rest; instants that pass meanwhile do not count.
    #[command(after_help = "Examples:\n  ikada schedule pause nightly")]
    Pause(ScheduleName),
    /// Let a schedule go on, from now.
    #[command(after_help = "Examples:\n  ikada schedule resume nightly")]
    Resume(ScheduleName),
    /// Remove a schedule; the tasks it submitted stay.
    #[command(
        after_help = "Examples:\n  ikada schedule delete nightly            asks first, if this is a terminal\n  ikada schedule delete nightly --yes"
    )]
    Delete(ScheduleDeleteArgs),
}

/// A schedule.
#[derive(Debug, Args)]
pub(crate) struct ScheduleName {
    /// The schedule.
    pub(crate) name: String,
}

/// Flags of `delete`.
#[derive(Debug, Args)]
pub(crate) struct ScheduleDeleteArgs {
    /// The schedule.
    pub(crate) name: String,
    /// Do not ask.
    #[arg(long, short)]
    pub(crate) yes: bool,
}

const SET_EXAMPLES: &str = "\
Examples:
  ikada schedule set nightly --cron '30 2 * * mon-fri' --zone Europe/Berlin --queue reports
  ikada schedule set beat --every-ms 60000 --payload '{\"ping\": 1}'
  ikada schedule set import --cron @hourly --overlap skip --missed all --label gpu=a100
  ikada schedule set count --cron @daily --program wordcount --then '{\"queue\": \"mail\"}'

The task of an instant is named after both, as in nightly.20310401T003000Z.";

/// What becomes of missed instants.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Missed {
    /// None is made up for.
    Skip,
    /// The newest is made up for.
    One,
    /// All are made up for, the newest hundred at most.
    All,
}

impl From<Missed> for MissedPolicy {
    fn from(missed: Missed) -> MissedPolicy {
        match missed {
            Missed::Skip => MissedPolicy::Skip,
            Missed::One => MissedPolicy::One,
            Missed::All => MissedPolicy::All,
        }
    }
}

/// What becomes of an instant while the task before is unfinished.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Overlap {
    /// It is kept.
    Allow,
    /// It is left out.
    Skip,
}

impl From<Overlap> for OverlapPolicy {
    fn from(overlap: Overlap) -> OverlapPolicy {
        match overlap {
            Overlap::Allow => OverlapPolicy::Allow,
            Overlap::Skip => OverlapPolicy::Skip,
        }
    }
}

/// Flags of `set`.
#[derive(Debug, Args)]
#[command(after_help = SET_EXAMPLES)]
pub(crate) struct ScheduleSetArgs {
    /// The schedule.
    pub(crate) name: String,
    /// When: minute, hour, day of month, month, day of week; or a word such as @daily.
    #[arg(long, value_name = "LINE", required_unless_present = "every_ms")]
    pub(crate) cron: Option<String>,
    /// Time zone of the cron line; UTC when absent.
    #[arg(long, requires = "cron")]
    pub(crate) zone: Option<String>,
    /// When: every so many ms, at least 1000.
    #[arg(long, conflicts_with = "cron")]
    pub(crate) every_ms: Option<u64>,
    /// One of the interval's instants (ms since 1970); now when absent.
    #[arg(long, requires = "every_ms")]
    pub(crate) anchor_ms: Option<u64>,
    /// What becomes of instants that are late by more than the grace time; `one` when absent.
    #[arg(long, value_enum)]
    pub(crate) missed: Option<Missed>,
    /// What becomes of an instant while the task before is unfinished; `allow` when absent.
    #[arg(long, value_enum)]
    pub(crate) overlap: Option<Overlap>,
    /// How late an instant may be before it counts as missed; 60000 when absent.
    #[arg(long)]
    pub(crate) grace_ms: Option<u64>,
    /// Make it without letting it run yet.
    #[arg(long)]
    pub(crate) paused: bool,
    /// Refuse unless the schedule still has this version; 0 is one that does not exist.
    #[arg(long, value_name = "VERSION")]
    pub(crate) expected_version: Option<u64>,
    /// A follow-up as JSON, submitted when the task of an instant is completed; may be given several times.
    #[arg(long = "then", value_name = "JSON", value_parser = read_follow_up)]
    pub(crate) then: Vec<NewTask>,
    #[command(flatten)]
    pub(crate) task: TaskSettings,
}
