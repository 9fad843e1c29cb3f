//! Workers: who is alive, and how many slots there are.

use ikada_api::v1::{
    ScalingPage, WorkerChanged, WorkerInfo, WorkerPage, WorkerStateName, WorkerSummary,
};

use super::{Document, Grid, or_dash, pretty};
use crate::render::time::{length, moment};

const HEADINGS: &[&str] =
    &["worker", "state", "busy", "slots", "queues", "labels", "version", "since", "heard"];
const SUMMARY: &[&str] = &["workers", "alive", "draining", "dead", "slots open", "slots"];

fn state(state: WorkerStateName) -> String {
    let word = match state {
        WorkerStateName::Alive => "alive",
        WorkerStateName::Draining => "draining",
        WorkerStateName::Dead => "dead",
    };
    word.to_owned()
}

fn row(worker: &WorkerInfo) -> Vec<String> {
    let labels: Vec<String> =
        worker.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
    vec![
        worker.id.clone(),
        state(worker.state),
        worker.busy.to_string(),
        worker.slots.to_string(),
        worker.queues.join(","),
        or_dash((!labels.is_empty()).then(|| labels.join(","))),
        worker.version.clone(),
        moment(worker.since_ms),
        or_dash(worker.heard_ms_ago.map(|ms| format!("{} ago", length(ms)))),
    ]
}

/// Workers summed up, as one line.
pub(super) fn summary(workers: &WorkerSummary) -> Grid {
    let row = vec![
        workers.status.clone(),
        workers.alive.to_string(),
        workers.draining.to_string(),
        workers.dead.to_string(),
        workers.slots.open.to_string(),
        workers.slots.total.to_string(),
    ];
    Grid { headings: SUMMARY, rows: vec![row] }
}

impl Document for WorkerPage {
    fn json(&self) -> Result<String, serde_json::Error> {
        pretty(self)
    }

    fn grids(&self) -> Vec<Grid> {
        let rows = self.workers.iter().map(row).collect();
        vec![summary(&self.summary), Grid { headings: HEADINGS, rows }]
    }

    fn names(&self) -> Vec<String> {
        self.workers.iter().map(|worker| worker.id.clone()).collect()
    }
}

impl Document for ScalingPage {
    fn json(&self) -> Result<String, serde_json::Error> {
        pretty(self)
    }

    fn grids(&self) -> Vec<Grid> {
        let rows = self.decisions.iter().map(|decision| {
            vec![
                moment(decision.at_ms),
                decision.from.to_string(),
                decision.to.to_string(),
                decision.reason.clone(),
                or_dash(decision.node.clone()),
                or_dash(decision.error.clone()),
            ]
        });
        let headings = &["when", "from", "to", "reason", "node", "error"];
        vec![Grid { headings, rows: rows.collect() }]
    }

    fn names(&self) -> Vec<String> {
        self.decisions.iter().map(|decision| decision.to.to_string()).collect()
    }
}

impl Document for WorkerInfo {
    fn json(&self) -> Result<String, serde_json::Error> {
        pretty(self)
    }

    fn grids(&self) -> Vec<Grid> {
        let session = format!("{:016x}", self.session.0);
        let impostor = self.impostor.map(|session| format!("{:016x} is kept out", session.0));
        let facts = [("session", session), ("another of this name", or_dash(impostor))];
        let facts = facts.into_iter().map(|(name, value)| vec![name.to_owned(), value]).collect();
        vec![
            Grid { headings: HEADINGS, rows: vec![row(self)] },
            Grid { headings: &["fact", "value"], rows: facts },
        ]
    }

    fn names(&self) -> Vec<String> {
        vec![self.id.clone()]
    }
}

impl Document for WorkerChanged {
    fn json(&self) -> Result<String, serde_json::Error> {
        pretty(self)
    }

    fn grids(&self) -> Vec<Grid> {
        let row = vec![self.id.clone(), self.outcome.clone()];
        vec![Grid { headings: &["worker", "outcome"], rows: vec![row] }]
    }

    fn names(&self) -> Vec<String> {
        vec![self.id.clone()]
    }
}
