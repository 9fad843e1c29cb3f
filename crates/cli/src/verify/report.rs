//! What a run came to: one line of JSON, or a table.

use serde::Serialize;

use crate::render::{Document, Grid};

/// The judgement of one run.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Report {
    /// Tasks that were submitted, whatever was answered.
    pub(super) tasks: u64,
    /// Of them acknowledged.
    pub(super) acknowledged: u64,
    /// Calls noted.
    pub(super) calls: u64,
    /// Calls whose outcome stayed unknown.
    pub(super) unknown: u64,
    /// Tasks handed to workers, again and again.
    pub(super) grants: u64,
    /// Completions refused because another attempt had taken over.
    pub(super) stale: u64,
    /// Tasks with too many calls to search for an order.
    pub(super) too_long: u64,
    /// Whether all work was finished in time.
    pub(super) drained: bool,
    /// How many violations there are.
    pub(super) violation_count: u64,
    /// The first of them.
    pub(crate) violations: Vec<String>,
}

impl Document for Report {
    fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    fn grids(&self) -> Vec<Grid> {
        let word = if self.violations.is_empty() { "clean" } else { "VIOLATED" };
        let numbers =
            [self.tasks, self.acknowledged, self.calls, self.unknown, self.grants, self.stale];
        let mut row: Vec<String> = numbers.iter().map(u64::to_string).collect();
        row.push(word.to_owned());
        let headings =
            &["tasks", "acknowledged", "calls", "unknown", "grants", "stale", "judgement"];
        let mut grids = vec![Grid { headings, rows: vec![row] }];
        if !self.violations.is_empty() {
            let rows = self.violations.iter().map(|violation| vec![violation.clone()]).collect();
            grids.push(Grid { headings: &["violations"], rows });
        }
        grids
    }

    fn names(&self) -> Vec<String> {
        vec![if self.violations.is_empty() { "clean" } else { "violated" }.to_owned()]
    }
}
