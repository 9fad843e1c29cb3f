//! Figures of schedules (LS-17). Their number is bounded by the state; each has a handful of lines.

use ikada_api::v1::ScheduleInfo;

use super::render::{Page, escape};

/// Schedules listed; those with an alarm come first.
const SCHEDULES_MAX: usize = 200;
/// All alarms that a schedule may raise.
const ALARMS: [&str; 4] = ["overdue", "missed", "overlapped", "unreadable"];

type Family = (&'static str, &'static str, &'static str, fn(&ScheduleInfo) -> u64);

const FAMILIES: &[Family] = &[
    ("ikada_schedule_fired_total", "counter", "Instants kept.", |s| s.fired_total),
    ("ikada_schedule_missed_total", "counter", "Instants missed and not made up for.", |s| {
        s.missed_total
    }),
    (
        "ikada_schedule_overlapped_total",
        "counter",
        "Instants left out because the task before was unfinished.",
        |s| s.overlapped_total,
    ),
    ("ikada_schedule_paused", "gauge", "Whether it has no instants.", |s| s.paused.into()),
    (
        "ikada_schedule_last_instant_seconds",
        "gauge",
        "The newest instant kept; 0 if none was.",
        |s| s.last_ms.unwrap_or(0) / 1000,
    ),
    (
        "ikada_schedule_next_instant_seconds",
        "gauge",
        "The next instant; 0 if there is none.",
        |s| s.next_ms.first().copied().unwrap_or(0) / 1000,
    ),
];

/// Writes the figures of all schedules, each with its namespace.
pub(super) fn schedules(page: &mut Page, mut all: Vec<(String, ScheduleInfo)>) {
    if all.is_empty() {
        return;
    }
    all.sort_by_key(|(_, schedule)| schedule.alarms.is_empty());
    let unlisted = all.len().saturating_sub(SCHEDULES_MAX) as u64;
    all.truncate(SCHEDULES_MAX);
    let labels = |namespace: &str, schedule: &ScheduleInfo| {
        let (namespace, name) = (escape(namespace), escape(&schedule.name));
        format!("namespace=\"{namespace}\",schedule=\"{name}\"")
    };
    for (name, kind, about, value) in FAMILIES {
        page.family(name, kind, about);
        for (namespace, schedule) in &all {
            page.sample(name, &labels(namespace, schedule), value(schedule));
        }
    }
    let name = "ikada_schedule_alarm";
    page.family(name, "gauge", "Whether an alarm of the schedule holds.");
    for (namespace, schedule) in &all {
        for alarm in ALARMS {
            let holds = schedule.alarms.iter().any(|held| held == alarm);
            let labels = format!("{},alarm=\"{alarm}\"", labels(namespace, schedule));
            page.sample(name, &labels, holds.into());
        }
    }
    let about = "Schedules left out above; none of those has more to tell.";
    page.one("ikada_schedules_unlisted", "gauge", about, unlisted);
}
