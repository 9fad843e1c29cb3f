//! `ikada queue`.

use clap::{Args, Subcommand};
use ikada_api::v1::{AlertsBody, BackoffBody, QueueSettingsBody};

use super::WatchArgs;

/// Commands about queues.
#[derive(Debug, Subcommand)]
pub(crate) enum QueueCommand {
    /// List all queues.
    #[command(
        after_help = "Examples:\n  ikada queue list\n  ikada queue list -f --every 5                again every five seconds, until Ctrl-C\n  ikada queue list --namespace blue --output json"
    )]
    List(WatchArgs),
    /// Show a queue's settings and counts.
    #[command(after_help = "Examples:\n  ikada queue show mail")]
    Show(QueueName),
    /// Change a queue's settings.
    Set(QueueSetArgs),
    /// Hold a queue's tasks back; it goes on taking new ones.
    #[command(after_help = "Examples:\n  ikada queue pause mail")]
    Pause(QueueName),
    /// Hand a queue's tasks out again.
    #[command(after_help = "Examples:\n  ikada queue resume mail")]
    Resume(QueueName),
    /// Cancel all tasks of a queue that wait: scheduled and ready.
    #[command(
        after_help = "Examples:\n  ikada queue purge mail               asks first\n  ikada queue purge mail --yes\n  ikada queue purge mail --claimed     takes tasks from workers, too\n\nCancelled tasks are listed until their retention time is over; `ikada task retry` brings one back."
    )]
    Purge(PurgeArgs),
}

/// Flags of `purge`.
#[derive(Debug, Args)]
pub(crate) struct PurgeArgs {
    /// The queue.
    pub(crate) name: String,
    /// Cancel tasks that workers hold, too.
    #[arg(long)]
    pub(crate) claimed: bool,
    /// Do not ask.
    #[arg(long, short)]
    pub(crate) yes: bool,
}

/// A queue.
#[derive(Debug, Args)]
pub(crate) struct QueueName {
    /// The queue.
    pub(crate) name: String,
}

/// Flags of `set`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ikada queue set mail --max-attempts 10 --ttl-ms 60000\n  ikada queue set mail --backoff-base-ms 500 --backoff-cap-ms 30000\n  ikada queue set mail --key-limit 4 --timeout-ms 600000 --deadline-in-ms 86400000"
)]
pub(crate) struct QueueSetArgs {
    /// The queue.
    pub(crate) name: String,
    /// Most attempts of tasks that name none.
    #[arg(long)]
    max_attempts: Option<u16>,
    /// Claim lifetime of tasks that name none.
    #[arg(long)]
    ttl_ms: Option<u32>,
    /// Wait after the first failure.
    #[arg(long, requires = "backoff_cap_ms")]
    backoff_base_ms: Option<u32>,
    /// Longest wait between attempts.
    #[arg(long, requires = "backoff_base_ms")]
    backoff_cap_ms: Option<u32>,
    /// Done and cancelled tasks kept per shard.
    #[arg(long)]
    retention_count: Option<u32>,
    /// How long a done or cancelled task is kept.
    #[arg(long)]
    retention_ms: Option<u64>,
    /// Most unfinished tasks per shard; 0 lifts the bound.
    #[arg(long)]
    pending_max: Option<u64>,
    /// Alert: more waiting tasks than this; 0 turns it off.
    #[arg(long)]
    alert_pending: Option<u64>,
    /// Alert: a claim older than this share of its lifetime, in percent; 0 turns it off.
    #[arg(long)]
    alert_claim_age_percent: Option<u32>,
    /// Alert: a larger share of dead among finished tasks, in percent; 0 turns it off.
    #[arg(long)]
    alert_dead_percent: Option<u32>,
    /// Alert: unfinished tasks have only become more for this many seconds; 0 turns it off.
    #[arg(long)]
    alert_growing_s: Option<u32>,
    /// Longest time for a whole attempt of tasks that name none; 0 is no limit.
    #[arg(long)]
    timeout_ms: Option<u32>,
    /// Time from submission to the deadline of tasks that name none; 0 is no deadline.
    #[arg(long)]
    deadline_in_ms: Option<u64>,
    /// Most tasks of one key that run at one time, unless a task says otherwise: 1 is strict order, 0 no limit.
    #[arg(long)]
    key_limit: Option<u16>,
    /// Most dead tasks per shard: at it the queue takes no new ones; 0 lifts the bound.
    #[arg(long)]
    dead_max: Option<u32>,
    /// How long a dead task is kept.
    #[arg(long)]
    dead_retention_ms: Option<u64>,
    /// How far waits between attempts are spread either way, in thousandths, at most 500.
    #[arg(long)]
    jitter_permille: Option<u16>,
    /// Refuse unless the settings still have this version.
    #[arg(long, value_name = "VERSION")]
    expected_version: Option<u64>,
}

impl QueueSetArgs {
    /// The settings to send; none if nothing would change.
    pub(crate) fn settings(&self) -> Option<QueueSettingsBody> {
        let backoff = self.backoff_base_ms.zip(self.backoff_cap_ms);
        let alerts = AlertsBody {
            pending: self.alert_pending,
            claim_age_percent: self.alert_claim_age_percent,
            dead_percent: self.alert_dead_percent,
            growing_s: self.alert_growing_s,
        };
        let settings = QueueSettingsBody {
            paused: None,
            max_attempts: self.max_attempts,
            ttl_ms: self.ttl_ms,
            backoff: backoff.map(|(base_ms, cap_ms)| BackoffBody { base_ms, cap_ms }),
            retention_count: self.retention_count,
            retention_ms: self.retention_ms,
            pending_max: self.pending_max,
            alerts: (alerts != AlertsBody::default()).then_some(alerts),
            timeout_ms: self.timeout_ms,
            deadline_in_ms: self.deadline_in_ms,
            key_limit: self.key_limit,
            dead_max: self.dead_max,
            dead_retention_ms: self.dead_retention_ms,
            jitter_permille: self.jitter_permille,
            expected_version: self.expected_version,
        };
        let blank = QueueSettingsBody {
            expected_version: self.expected_version,
            ..QueueSettingsBody::default()
        };
        (settings != blank).then_some(settings)
    }
}
