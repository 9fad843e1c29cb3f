//! Queues and their settings.

use ikada_api::v1::{AlertsInfo, QueueHealth, QueueInfo, QueuePage, SweepAnswer};

use super::{Document, Grid, or_dash, pretty};
use crate::render::time::{length, span};

fn queue_row(queue: &QueueInfo) -> Vec<String> {
    let counts = queue.counts;
    vec![
        queue.name.clone(),
        if queue.settings.paused { "paused".to_owned() } else { "running".to_owned() },
        counts.scheduled.to_string(),
        counts.ready.to_string(),
        counts.claimed.to_string(),
        counts.done_total.to_string(),
        counts.dead.to_string(),
        counts.dead_total.to_string(),
        counts.cancelled_total.to_string(),
    ]
}

fn thresholds(alerts: &AlertsInfo) -> String {
    let off = |on: bool, text: String| if on { text } else { "off".to_owned() };
    format!(
        "pending {}, claim age {}, dead rate {}, growing {}",
        off(alerts.pending > 0, format!("> {}", alerts.pending)),
        off(alerts.claim_age_percent > 0, format!("> {} %", alerts.claim_age_percent)),
        off(alerts.dead_percent > 0, format!("> {} %", alerts.dead_percent)),
        off(alerts.growing_s > 0, format!("for {} s", alerts.growing_s)),
    )
}

fn health_rows(health: &QueueHealth) -> Vec<Vec<String>> {
    let age = |age_ms: Option<u64>| or_dash(age_ms.map(length));
    let rate = |per_1000_s: u64| match health.rates_over_ms {
        0 => "-".to_owned(),
        _ => format!("{}.{:03}/s", per_1000_s / 1000, per_1000_s % 1000),
    };
    let alerts = match health.alerts.is_empty() {
        true => "none".to_owned(),
        false => health.alerts.join(", "),
    };
    let facts = [
        ("alerts", alerts),
        ("oldest ready task waits", age(health.oldest_ready_age_ms)),
        ("oldest claim is held", age(health.oldest_claim_age_ms)),
        ("submitted", rate(health.submitted_per_1000_s)),
        ("completed", rate(health.done_per_1000_s)),
        ("failed attempts", rate(health.failed_per_1000_s)),
    ];
    facts.into_iter().map(|(name, value)| vec![name.to_owned(), value]).collect()
}

const QUEUE_HEADINGS: &[&str] = &[
    "name",
    "state",
    "scheduled",
    "ready",
    "claimed",
    "done",
    "dead now",
    "dead ever",
    "cancelled",
];

impl Document for QueuePage {
    fn json(&self) -> Result<String, serde_json::Error> {
        pretty(self)
    }

    fn grids(&self) -> Vec<Grid> {
        let rows = self.queues.iter().map(queue_row).collect();
        vec![Grid { headings: QUEUE_HEADINGS, rows }]
    }

    fn names(&self) -> Vec<String> {
        self.queues.iter().map(|queue| queue.name.clone()).collect()
    }
}

impl Document for SweepAnswer {
    fn json(&self) -> Result<String, serde_json::Error> {
        pretty(self)
    }

    fn grids(&self) -> Vec<Grid> {
        let complete = if self.complete { "yes" } else { "no, run it again" };
        let row = vec![self.queue.clone(), self.count.to_string(), complete.to_owned()];
        vec![Grid { headings: &["queue", "tasks changed", "complete"], rows: vec![row] }]
    }

    fn names(&self) -> Vec<String> {
        vec![self.count.to_string()]
    }
}

impl Document for QueueInfo {
    fn json(&self) -> Result<String, serde_json::Error> {
        pretty(self)
    }

    fn grids(&self) -> Vec<Grid> {
        let settings = &self.settings;
        let no_limit = |count: u64| match count {
            0 => "no limit".to_owned(),
            1 => "1 task".to_owned(),
            count => format!("{count} tasks"),
        };
        let no_limit_span = |ms: u64| if ms == 0 { "no limit".to_owned() } else { span(ms) };
        let (base_ms, cap_ms) = (settings.backoff.base_ms, settings.backoff.cap_ms);
        let facts = [
            ("version", settings.version.to_string()),
            ("max attempts", settings.max_attempts.to_string()),
            ("claim lifetime", span(u64::from(settings.ttl_ms))),
            (
                "waits between attempts",
                format!(
                    "{} to {}, spread by {} %",
                    span(u64::from(base_ms)),
                    span(u64::from(cap_ms)),
                    f64::from(settings.jitter_permille) / 10.0
                ),
            ),
            (
                "done and cancelled tasks kept",
                format!(
                    "the last {}, for {}",
                    settings.retention_count,
                    span(settings.retention_ms)
                ),
            ),
            ("dead tasks kept", format!("for {}", span(settings.dead_retention_ms))),
            ("dead tasks at most", no_limit(u64::from(settings.dead_max))),
            ("waiting tasks at most", no_limit(settings.pending_max)),
            ("alerts", thresholds(&settings.alerts)),
            ("attempt timeout", no_limit_span(u64::from(settings.timeout_ms))),
            ("deadline after submission", no_limit_span(settings.deadline_in_ms)),
            ("running tasks per key", no_limit(u64::from(settings.key_limit))),
        ];
        let rows = facts.into_iter().map(|(name, value)| vec![name.to_owned(), value]).collect();
        vec![
            Grid { headings: QUEUE_HEADINGS, rows: vec![queue_row(self)] },
            Grid { headings: &["health", "value"], rows: health_rows(&self.health) },
            Grid { headings: &["setting", "value"], rows },
        ]
    }

    fn names(&self) -> Vec<String> {
        vec![self.name.clone()]
    }
}
