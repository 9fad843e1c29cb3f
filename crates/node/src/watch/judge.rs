//! Ages, rates and alerts of one queue.

use ikada_api::v1::QueueHealth;
use ikada_replica::state::QueueView;

use super::SAMPLE_EVERY;
use super::samples::Sample;

/// All alerts by name.
pub(crate) const ALERTS: [&str; 4] = ["pending", "claim_age", "dead_rate", "growing"];

/// Samples over which rates are measured.
const RATE_SAMPLES: usize = 6;

/// Judges a queue by its figures now and its samples, oldest first.
pub(crate) fn judge(view: &QueueView, samples: &[Sample], now_ms: u64) -> QueueHealth {
    let now = Sample::of(view, now_ms);
    let age = |since_ms: u64| now_ms.saturating_sub(since_ms);
    let base = samples.len().saturating_sub(RATE_SAMPLES);
    let base = samples.get(base).copied().unwrap_or(now);
    let over_ms = age(base.at_ms);
    let rate = |now: u64, before: u64| {
        (now.saturating_sub(before) * 1_000_000).checked_div(over_ms).unwrap_or(0)
    };
    let holds = |alert: &&str| match *alert {
        "pending" => too_many(view),
        "claim_age" => view.claim_alert_ms.is_some_and(|late_ms| late_ms <= now_ms),
        "dead_rate" => dies_often(view, samples, &now),
        _ => grows(view, samples),
    };
    QueueHealth {
        oldest_ready_age_ms: view.oldest_ready_ms.map(age),
        oldest_claim_age_ms: view.oldest_claim_ms.map(age),
        rates_over_ms: over_ms,
        submitted_per_1000_s: rate(now.submitted, base.submitted),
        done_per_1000_s: rate(now.done, base.done),
        failed_per_1000_s: rate(now.failed, base.failed),
        alerts: ALERTS.into_iter().filter(holds).map(str::to_owned).collect(),
    }
}

/// More tasks wait than the threshold says.
fn too_many(view: &QueueView) -> bool {
    let pending_max = view.settings.alerts.pending;
    pending_max > 0 && view.scheduled + view.ready > pending_max
}

/// Of the tasks that were done or died since the oldest sample, too many died.
fn dies_often(view: &QueueView, samples: &[Sample], now: &Sample) -> bool {
    let percent = u64::from(view.settings.alerts.dead_percent);
    let Some(first) = samples.first() else {
        return false;
    };
    let dead = now.dead.saturating_sub(first.dead);
    let done = now.done.saturating_sub(first.done);
    percent > 0 && dead * 100 > percent * (dead + done)
}

/// Every sample of the watched time shows more unfinished tasks than the one before.
fn grows(view: &QueueView, samples: &[Sample]) -> bool {
    let every_s = SAMPLE_EVERY.as_secs() as usize;
    let steps = (view.settings.alerts.growing_s as usize).div_ceil(every_s);
    let Some(first) = samples.len().checked_sub(steps + 1) else {
        return false;
    };
    steps > 0 && samples[first..].windows(2).all(|pair| pair[0].unfinished < pair[1].unfinished)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::Samples;
    use ikada_replica::state::{Namespace, QueueCounters, QueueHandle, QueueName, QueueSettings};

    fn view(ready: u64, done: u64, dead: u64) -> QueueView {
        let submitted = ready + done + dead;
        QueueView {
            handle: QueueHandle(0),
            namespace: Namespace::default(),
            name: QueueName::parse("q").unwrap(),
            settings: QueueSettings::default(),
            counters: QueueCounters { submitted, done, dead, ..QueueCounters::default() },
            scheduled: 0,
            ready,
            claimed: 0,
            finished: 0,
            dead: 0,
            oldest_ready_ms: None,
            oldest_claim_ms: None,
            claim_alert_ms: None,
            settled: true,
        }
    }

    fn alerts_of(views: &[QueueView]) -> Vec<String> {
        let mut samples = Samples::default();
        for (position, view) in views.iter().enumerate() {
            samples.take(std::slice::from_ref(view), position as u64 * 10_000);
        }
        let last = views.last().unwrap();
        judge(last, &samples.of(last), views.len() as u64 * 10_000).alerts
    }

    // TQ-24
    #[test]
    fn tq_24_more_than_a_thousand_pending_tasks_alert() {
        assert!(alerts_of(&[view(1_000, 0, 0)]).is_empty());
        assert_eq!(alerts_of(&[view(1_001, 0, 0)]), ["pending"]);
        let mut off = view(5_000, 0, 0);
        off.settings.alerts.pending = 0;
        assert!(alerts_of(&[off]).is_empty());
    }

    #[test]
    fn tq_24_a_claim_older_than_twice_its_lifetime_alerts() {
        let mut held = view(0, 0, 0);
        (held.oldest_claim_ms, held.claim_alert_ms) = (Some(1_000), Some(61_000));
        assert!(judge(&held, &[], 60_999).alerts.is_empty());
        let health = judge(&held, &[], 61_000);
        assert_eq!(health.alerts, ["claim_age"]);
        assert_eq!(health.oldest_claim_age_ms, Some(60_000));
    }

    #[test]
    fn tq_24_more_than_five_percent_dead_alert() {
        assert!(alerts_of(&[view(0, 0, 0), view(0, 95, 5)]).is_empty());
        assert_eq!(alerts_of(&[view(0, 0, 0), view(0, 94, 6)]), ["dead_rate"]);
        assert!(alerts_of(&[view(0, 94, 6), view(0, 94, 6)]).is_empty(), "long ago");
    }

    #[test]
    fn tq_24_a_queue_that_only_grows_alerts() {
        let rising: Vec<QueueView> = (0..7).map(|step| view(step * 10, 0, 0)).collect();
        assert_eq!(alerts_of(&rising), ["growing"]);
        assert!(alerts_of(&rising[1..]).is_empty(), "not long enough");
        let mut pause = rising;
        pause[4].ready = pause[3].ready;
        assert!(alerts_of(&pause).is_empty());
    }

    // TQ-23
    #[test]
    fn tq_23_rates_are_measured_over_a_minute() {
        let mut samples = Samples::default();
        for step in 0..20u64 {
            samples.take(&[view(0, step * 50, 0)], step * 10_000);
        }
        let last = view(0, 20 * 50, 0);
        let health = judge(&last, &samples.of(&last), 200_000);
        assert_eq!((health.rates_over_ms, health.done_per_1000_s), (60_000, 5_000));
        assert_eq!(judge(&last, &[], 200_000).rates_over_ms, 0);
    }
}
