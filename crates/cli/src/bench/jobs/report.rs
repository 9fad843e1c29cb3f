//! What was measured, as a table and as JSON.

use serde::Serialize;

use crate::render::{Document, Grid};

/// What a figure should be.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Aim {
    /// No more.
    AtMost(f64),
    /// No less.
    AtLeast(f64),
}

impl Aim {
    fn is_met(self, figure: f64) -> bool {
        match self {
            Aim::AtMost(most) => figure <= most,
            Aim::AtLeast(least) => figure >= least,
        }
    }

    fn words(self) -> String {
        match self {
            Aim::AtMost(most) => format!("at most {most}"),
            Aim::AtLeast(least) => format!("at least {least}"),
        }
    }
}

/// One figure.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Row {
    what: String,
    figure: f64,
    unit: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    aim: Option<Aim>,
    #[serde(skip_serializing_if = "Option::is_none")]
    met: Option<bool>,
}

impl Row {
    pub(super) fn new(what: String, figure: f64, unit: &'static str) -> Row {
        Row { what, figure, unit, aim: None, met: None }
    }

    /// So many in so many seconds.
    pub(super) fn rate(what: String, count: u64, seconds: f64) -> Row {
        Row::new(what, count as f64 / seconds.max(f64::EPSILON), "tasks/s")
    }

    pub(super) fn with(mut self, aim: Aim) -> Row {
        (self.aim, self.met) = (Some(aim), Some(aim.is_met(self.figure)));
        self
    }

    pub(super) fn headline(&self) -> String {
        self.cells().join("  ").trim_end().to_owned()
    }

    fn cells(&self) -> Vec<String> {
        let digits = if self.figure.abs() >= 100.0 { 0 } else { 2 };
        vec![
            self.what.clone(),
            format!("{:.digits$} {}", self.figure, self.unit),
            self.aim.map_or_else(String::new, Aim::words),
            self.met.map_or("", |met| if met { "yes" } else { "no" }).to_owned(),
        ]
    }
}

/// All figures.
#[derive(Debug, Serialize)]
pub(in crate::bench) struct JobsReport {
    pub(super) nodes: u16,
    pub(super) shards: u16,
    pub(super) rows: Vec<Row>,
}

impl Document for JobsReport {
    fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self)
    }

    fn grids(&self) -> Vec<Grid> {
        let headings = &["what", "figure", "aim", "met"];
        vec![Grid { headings, rows: self.rows.iter().map(Row::cells).collect() }]
    }

    fn names(&self) -> Vec<String> {
        self.rows.iter().map(|row| row.what.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_held_against_its_aim() {
        let row = |figure| Row::new("x".into(), figure, "ms").with(Aim::AtMost(1.0));
        assert_eq!((row(1.0).met, row(1.01).met), (Some(true), Some(false)));
        let row = |figure| Row::new("x".into(), figure, "times").with(Aim::AtLeast(0.8));
        assert_eq!((row(0.8).met, row(0.79).met), (Some(true), Some(false)));
        assert_eq!(Row::rate("x".into(), 300, 2.0).headline(), "x  150 tasks/s");
        assert_eq!(row(0.5).headline(), "x  0.50 times  at least 0.8  no");
    }
}
