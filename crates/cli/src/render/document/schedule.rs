//! Schedules: when they run, and what they missed.

use ikada_api::v1::{
    MissedPolicy, OverlapPolicy, ScheduleInfo, SchedulePage, ScheduleRemoved, ScheduledTask,
};

use super::{Document, Grid, or_dash, pretty};
use crate::render::time::{moment, span};

const HEADINGS: &[&str] =
    &["name", "state", "timing", "queue", "last", "next", "fired", "missed", "alarms"];

fn timing(schedule: &ScheduleInfo) -> String {
    match (&schedule.cron, schedule.every_ms) {
        (Some(line), _) => format!("{line} ({})", schedule.zone.as_deref().unwrap_or("UTC")),
        (None, Some(every_ms)) => format!("every {}", span(every_ms)),
        (None, None) => "-".to_owned(),
    }
}

fn alarms(schedule: &ScheduleInfo) -> String {
    match schedule.alarms.is_empty() {
        true => "none".to_owned(),
        false => schedule.alarms.join(", "),
    }
}

fn row(schedule: &ScheduleInfo) -> Vec<String> {
    vec![
        schedule.name.clone(),
        if schedule.paused { "paused".to_owned() } else { "running".to_owned() },
        timing(schedule),
        schedule.task.queue.clone(),
        or_dash(schedule.last_ms.map(moment)),
        or_dash(schedule.next_ms.first().copied().map(moment)),
        schedule.fired_total.to_string(),
        schedule.missed_total.to_string(),
        alarms(schedule),
    ]
}

/// What a schedule submits: only what it names, as JSON.
fn template(task: &ScheduledTask) -> String {
    serde_json::to_string(task).unwrap_or_else(|_| "-".to_owned())
}

impl Document for SchedulePage {
    fn json(&self) -> Result<String, serde_json::Error> {
        pretty(self)
    }

    fn grids(&self) -> Vec<Grid> {
        vec![Grid { headings: HEADINGS, rows: self.schedules.iter().map(row).collect() }]
    }

    fn names(&self) -> Vec<String> {
        self.schedules.iter().map(|schedule| schedule.name.clone()).collect()
    }
}

impl Document for ScheduleInfo {
    fn json(&self) -> Result<String, serde_json::Error> {
        pretty(self)
    }

    fn grids(&self) -> Vec<Grid> {
        let missed = match self.missed {
            MissedPolicy::Skip => "none is made up for",
            MissedPolicy::One => "the newest is made up for",
            MissedPolicy::All => "all are made up for",
        };
        let overlap = match self.overlap {
            OverlapPolicy::Allow => "kept while the task before is unfinished",
            OverlapPolicy::Skip => "left out while the task before is unfinished",
        };
        let next: Vec<String> = self.next_ms.iter().copied().map(moment).collect();
        let facts = [
            ("version", self.version.to_string()),
            ("key", or_dash(self.task.key.clone())),
            ("task", template(&self.task)),
            ("missed instants", format!("{missed}, after {}", span(self.grace_ms))),
            ("overlapping instants", overlap.to_owned()),
            ("last task", or_dash(self.last_task.clone())),
            ("last missed", or_dash(self.last_missed_ms.map(moment))),
            ("overlapped", self.overlapped_total.to_string()),
            ("last overlapped", or_dash(self.last_overlapped_ms.map(moment))),
            ("next instants (UTC)", or_dash((!next.is_empty()).then(|| next.join(", ")))),
        ];
        let facts = facts.into_iter().map(|(name, value)| vec![name.to_owned(), value]).collect();
        vec![
            Grid { headings: HEADINGS, rows: vec![row(self)] },
            Grid { headings: &["fact", "value"], rows: facts },
        ]
    }

    fn names(&self) -> Vec<String> {
        vec![self.name.clone()]
    }
}

impl Document for ScheduleRemoved {
    fn json(&self) -> Result<String, serde_json::Error> {
        pretty(self)
    }

    fn grids(&self) -> Vec<Grid> {
        let row = vec![self.name.clone(), "removed".to_owned()];
        vec![Grid { headings: &["name", "outcome"], rows: vec![row] }]
    }

    fn names(&self) -> Vec<String> {
        vec![self.name.clone()]
    }
}
