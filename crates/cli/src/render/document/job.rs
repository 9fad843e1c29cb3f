//! Jobs: where they stand, stage by stage and task by task.

use ikada_api::v1::{JobInfo, JobPage, JobTaskPage};

use super::{Document, Grid, or_dash, pretty};
use crate::render::time::{length, moment};

const HEADINGS: &[&str] =
    &["id", "name", "status", "assignment", "tasks done", "created", "took", "reason"];
const STAGE_HEADINGS: &[&str] = &[
    "stage",
    "program",
    "tasks",
    "begun",
    "running",
    "done",
    "reused",
    "dead",
    "cancelled",
    "settled",
];
const TASK_HEADINGS: &[&str] = &["task", "stage", "number", "state", "attempts", "worker", "error"];

fn row(job: &JobInfo) -> Vec<String> {
    let took = job.finished_ms.map(|ended_ms| length(ended_ms.saturating_sub(job.created_ms)));
    vec![
        job.id.clone(),
        or_dash(Some(job.name.clone()).filter(|name| !name.is_empty())),
        job.status.clone(),
        job.assignment.clone(),
        format!("{}/{}", job.tasks_done, job.tasks_total),
        moment(job.created_ms),
        or_dash(took),
        or_dash(job.reason.clone()),
    ]
}

impl Document for JobPage {
    fn json(&self) -> Result<String, serde_json::Error> {
        pretty(self)
    }

    fn grids(&self) -> Vec<Grid> {
        vec![Grid { headings: HEADINGS, rows: self.jobs.iter().map(row).collect() }]
    }

    fn names(&self) -> Vec<String> {
        self.jobs.iter().map(|job| job.id.clone()).collect()
    }
}

impl Document for JobInfo {
    fn json(&self) -> Result<String, serde_json::Error> {
        pretty(self)
    }

    fn grids(&self) -> Vec<Grid> {
        let stages = self.stages.iter().map(|stage| {
            vec![
                stage.name.clone(),
                stage.program.clone(),
                stage.tasks.to_string(),
                stage.begun.to_string(),
                stage.claimed.to_string(),
                stage.done.to_string(),
                stage.reused.to_string(),
                stage.dead.to_string(),
                stage.cancelled.to_string(),
                if stage.settled { "yes".to_owned() } else { "no".to_owned() },
            ]
        });
        vec![
            Grid { headings: HEADINGS, rows: vec![row(self)] },
            Grid { headings: STAGE_HEADINGS, rows: stages.collect() },
        ]
    }

    fn names(&self) -> Vec<String> {
        vec![self.id.clone()]
    }
}

impl Document for JobTaskPage {
    fn json(&self) -> Result<String, serde_json::Error> {
        pretty(self)
    }

    fn grids(&self) -> Vec<Grid> {
        let rows = self.tasks.iter().map(|task| {
            vec![
                task.id.clone(),
                task.stage.clone(),
                task.index.to_string(),
                task.state.clone(),
                task.attempts_begun.to_string(),
                or_dash(task.worker.clone()),
                or_dash(task.error.clone()),
            ]
        });
        vec![Grid { headings: TASK_HEADINGS, rows: rows.collect() }]
    }

    fn names(&self) -> Vec<String> {
        self.tasks.iter().map(|task| task.id.clone()).collect()
    }
}
