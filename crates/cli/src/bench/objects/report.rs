//! What was measured, as a table and as a document.

use std::time::Duration;

use serde::Serialize;

use super::speak::End;
use crate::failure::Failure;
use crate::render::{Document, Grid};

/// Calls of one kind. Every call is in exactly one of the first four.
#[derive(Debug, Clone, Default, Serialize)]
pub(in crate::bench) struct Calls {
    pub(super) kind: String,
    pub(super) good: u64,
    pub(super) shed: u64,
    pub(super) failed: u64,
    /// Not sent, because as many were in flight as may be.
    pub(super) held_back: u64,
    pub(super) success_percent: f64,
    pub(super) mean_ms: f64,
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
    /// Of calls that were turned away.
    pub(super) shed_p99_ms: f64,
}

/// A figure with its name.
#[derive(Debug, Clone, Serialize)]
pub(in crate::bench) struct Figure {
    pub(super) what: String,
    pub(super) value: String,
}

/// All of a run.
#[derive(Debug, Serialize)]
pub(in crate::bench) struct ObjectsReport {
    pub(super) about: String,
    pub(super) calls: Vec<Calls>,
    pub(super) figures: Vec<Figure>,
    /// Acknowledged uploads that were read back in the end.
    pub(super) checked: u64,
    /// Of those, the ones that were not as written.
    pub(super) lost: u64,
    /// Promises that the run did not keep, in words.
    pub(super) missed: Vec<String>,
}

/// Gathers calls of one kind.
#[derive(Default)]
pub(super) struct Tally {
    good: Vec<Duration>,
    shed: Vec<Duration>,
    failed: u64,
    pub(super) held_back: u64,
}

impl Tally {
    pub(super) fn add(&mut self, end: End, took: Duration) {
        match end {
            End::Good => self.good.push(took),
            End::Shed => self.shed.push(took),
            End::Failed => self.failed += 1,
        }
    }

    pub(super) fn calls(mut self, kind: &str) -> Calls {
        self.good.sort_unstable();
        self.shed.sort_unstable();
        let all = self.good.len() as u64 + self.shed.len() as u64 + self.failed;
        let sum: Duration = self.good.iter().sum();
        Calls {
            kind: kind.to_owned(),
            good: self.good.len() as u64,
            shed: self.shed.len() as u64,
            failed: self.failed,
            held_back: self.held_back,
            success_percent: self.good.len() as f64 * 100.0 / all.max(1) as f64,
            mean_ms: sum.as_secs_f64() * 1000.0 / self.good.len().max(1) as f64,
            p50_ms: rank(&self.good, 50),
            p99_ms: rank(&self.good, 99),
            shed_p99_ms: rank(&self.shed, 99),
        }
    }
}

/// A percentile of sorted times, by nearest rank, in milliseconds.
pub(super) fn rank(sorted: &[Duration], percent: usize) -> f64 {
    let place = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(place).map_or(0.0, |time| time.as_secs_f64() * 1000.0)
}

impl ObjectsReport {
    /// Whether every acknowledged upload is there, and all else that was promised held.
    pub(in crate::bench) fn verdict(&self) -> Result<(), Failure> {
        if self.lost > 0 {
            let lost = format!("{} acknowledged uploads are missing or changed", self.lost);
            return Err(Failure::failed(lost));
        }
        match self.missed.is_empty() {
            true => Ok(()),
            false => Err(Failure::failed(self.missed.join("; "))),
        }
    }
}

impl Document for ObjectsReport {
    fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self)
    }

    fn grids(&self) -> Vec<Grid> {
        let row = |calls: &Calls| {
            vec![
                calls.kind.clone(),
                calls.good.to_string(),
                calls.shed.to_string(),
                calls.failed.to_string(),
                calls.held_back.to_string(),
                format!("{:.2} %", calls.success_percent),
                format!("{:.2} ms", calls.mean_ms),
                format!("{:.2} ms", calls.p99_ms),
                format!("{:.2} ms", calls.shed_p99_ms),
            ]
        };
        let mut grids = Vec::new();
        if !self.calls.is_empty() {
            let headings = &[
                "calls",
                "good",
                "shed",
                "failed",
                "held back",
                "success",
                "mean",
                "p99",
                "p99 of shed",
            ];
            grids.push(Grid { headings, rows: self.calls.iter().map(row).collect() });
        }
        let checked = Figure {
            what: "acknowledged uploads read back".to_owned(),
            value: format!("{}, {} lost or changed", self.checked, self.lost),
        };
        let checked = (self.checked > 0).then_some(&checked);
        let figures = self.figures.iter().chain(checked);
        let rows = figures.map(|figure| vec![figure.what.clone(), figure.value.clone()]).collect();
        grids.push(Grid { headings: &["figure", "value"], rows });
        grids
    }

    fn names(&self) -> Vec<String> {
        self.calls.iter().map(|calls| calls.good.to_string()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    // CH-31: every call is in exactly one column, and only good ones count as successes.
    #[test]
    fn ch_31_each_call_counts_once_and_failures_are_no_successes() {
        let mut tally = Tally::default();
        for number in 1..=100 {
            tally.add(End::Good, ms(number));
        }
        (0..60).for_each(|_| tally.add(End::Failed, ms(9_000)));
        (0..40).for_each(|_| tally.add(End::Shed, ms(2)));
        tally.held_back = 7;
        let calls = tally.calls("download");
        assert_eq!((calls.good, calls.shed, calls.failed, calls.held_back), (100, 40, 60, 7));
        assert_eq!(calls.success_percent, 50.0, "of those that were sent");
        assert_eq!((calls.mean_ms, calls.p50_ms, calls.p99_ms), (50.5, 50.0, 99.0));
        assert_eq!(calls.shed_p99_ms, 2.0);
        let none = Tally::default().calls("upload");
        assert_eq!((none.good, none.success_percent, none.p99_ms), (0, 0.0, 0.0));
    }

    // CH-31, CH-32: a lost upload fails the run.
    #[test]
    fn ch_31_a_lost_upload_is_no_success() {
        let (calls, figures) = (Vec::new(), Vec::new());
        let mut report = ObjectsReport {
            about: String::new(),
            calls,
            figures,
            checked: 5,
            lost: 0,
            missed: Vec::new(),
        };
        assert!(report.verdict().is_ok());
        report.lost = 1;
        assert!(report.verdict().is_err());
    }
}
