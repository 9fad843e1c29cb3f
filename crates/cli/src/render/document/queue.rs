//! Queues and their settings.

use ikada_api::v1::{QueueInfo, QueuePage, SweepAnswer};

use super::{Document, Grid, pretty};
use crate::render::time::span;

fn queue_row(queue: &QueueInfo) -> Vec<String> {
    let counts = queue.counts;
    vec![
        queue.name.clone(),
        if queue.settings.paused { "paused".to_owned() } else { "running".to_owned() },
        counts.scheduled.to_string(),
        counts.ready.to_string(),
        counts.claimed.to_string(),
        counts.done_total.to_string(),
        counts.dead_total.to_string(),
        counts.cancelled_total.to_string(),
    ]
}

const QUEUE_HEADINGS: &[&str] =
    &["name", "state", "scheduled", "ready", "claimed", "done", "dead", "cancelled"];

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
            count => format!("{count} tasks"),
        };
        let (base_ms, cap_ms) = (settings.backoff.base_ms, settings.backoff.cap_ms);
        let facts = [
            ("version", settings.version.to_string()),
            ("max attempts", settings.max_attempts.to_string()),
            ("claim lifetime", span(u64::from(settings.ttl_ms))),
            (
                "waits between attempts",
                format!("{} to {}", span(u64::from(base_ms)), span(u64::from(cap_ms))),
            ),
            (
                "finished tasks kept",
                format!(
                    "the last {}, for {}",
                    settings.retention_count,
                    span(settings.retention_ms)
                ),
            ),
            ("waiting tasks at most", no_limit(settings.pending_max)),
        ];
        let rows = facts.into_iter().map(|(name, value)| vec![name.to_owned(), value]).collect();
        vec![
            Grid { headings: QUEUE_HEADINGS, rows: vec![queue_row(self)] },
            Grid { headings: &["setting", "value"], rows },
        ]
    }

    fn names(&self) -> Vec<String> {
        vec![self.name.clone()]
    }
}
