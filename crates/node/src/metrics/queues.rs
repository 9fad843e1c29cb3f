//! Figures of queues. Label values are bounded: those with an alert are listed first, then the fullest, and how many are
//! not is said. So an alert is heard of unless more queues have one than are listed.

use std::cmp::Reverse;

use ikada_api::v1::QueueHealth;
use ikada_replica::state::QueueView;

use super::render::{Page, escape};
use crate::watch::ALERTS;

/// Queues listed; each has about sixteen lines.
const QUEUES_MAX: usize = 200;

type Family = (&'static str, &'static str, &'static str, fn(&QueueView, &QueueHealth) -> u64);

const FAMILIES: &[Family] = &[
    ("ikada_queue_pending", "gauge", "Tasks that wait: scheduled and ready.", |q, _| {
        q.scheduled + q.ready
    }),
    ("ikada_queue_ready", "gauge", "Tasks waiting for a worker.", |q, _| q.ready),
    ("ikada_queue_claimed", "gauge", "Tasks held by workers.", |q, _| q.claimed),
    ("ikada_queue_dead", "gauge", "Dead tasks still kept.", |q, _| q.dead),
    ("ikada_queue_paused", "gauge", "Whether tasks are held back.", |q, _| {
        q.settings.paused.into()
    }),
    ("ikada_queue_oldest_ready_age_seconds", "gauge", "Wait of the oldest ready task.", |_, h| {
        h.oldest_ready_age_ms.unwrap_or(0) / 1000
    }),
    ("ikada_queue_oldest_claim_age_seconds", "gauge", "Age of the oldest claim.", |_, h| {
        h.oldest_claim_age_ms.unwrap_or(0) / 1000
    }),
    ("ikada_queue_submitted_total", "counter", "Tasks created.", |q, _| q.counters.submitted),
    ("ikada_queue_done_total", "counter", "Tasks completed.", |q, _| q.counters.done),
    ("ikada_queue_dead_total", "counter", "Tasks given up.", |q, _| q.counters.dead),
    (
        "ikada_queue_dead_dropped_total",
        "counter",
        "Dead tasks removed for want of room.",
        |q, _| q.counters.dead_dropped.unwrap_or(0),
    ),
    ("ikada_queue_cancelled_total", "counter", "Tasks cancelled.", |q, _| q.counters.cancelled),
    ("ikada_queue_retried_total", "counter", "Tasks given fresh attempts.", |q, _| {
        q.counters.retried
    }),
    ("ikada_queue_failed_attempts_total", "counter", "Attempts failed or expired.", |q, _| {
        q.counters.failed
    }),
];

/// Writes the figures of all queues, which are sums over all shards.
pub(super) fn queues(page: &mut Page, mut all: Vec<(QueueView, QueueHealth)>) {
    let fullness = |view: &QueueView| Reverse(view.scheduled + view.ready + view.claimed);
    all.sort_by_cached_key(|(view, health)| {
        (health.alerts.is_empty(), fullness(view), view.namespace.clone(), view.name.clone())
    });
    let unlisted = all.len().saturating_sub(QUEUES_MAX) as u64;
    all.truncate(QUEUES_MAX);
    let labels = |view: &QueueView| {
        let (namespace, queue) = (escape(view.namespace.as_str()), escape(view.name.as_str()));
        format!("namespace=\"{namespace}\",queue=\"{queue}\"")
    };
    for (name, kind, about, value) in FAMILIES {
        page.family(name, kind, about);
        for (view, health) in &all {
            page.sample(name, &labels(view), value(view, health));
        }
    }
    let name = "ikada_queue_alert";
    page.family(name, "gauge", "Whether an alert of the queue holds; its settings say when.");
    for (view, health) in &all {
        for alert in ALERTS {
            let holds = health.alerts.iter().any(|held| held == alert);
            let labels = format!("{},alert=\"{alert}\"", labels(view));
            page.sample(name, &labels, holds.into());
        }
    }
    let about = "Queues left out above because others have an alert or hold more tasks.";
    page.one("ikada_queues_unlisted", "gauge", about, unlisted);
}
