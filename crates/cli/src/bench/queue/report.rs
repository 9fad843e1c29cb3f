//! What was measured, as a table and as JSON.

use serde::Serialize;

use super::rivals::RivalReport;
use crate::args::QueueBenchArgs;
use crate::render::{Document, Grid};

/// A phase that other systems have too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// With so many calls in flight.
    Enqueue(usize),
    Lifecycle,
    Drain,
}

/// One figure.
#[derive(Debug, Serialize)]
pub(super) struct Line {
    pub(super) what: String,
    pub(super) tasks: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tasks_per_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p50_us: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p99_us: Option<u64>,
    /// Of all nodes together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) server_cpu_s_per_100k: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    /// Its median in times of what the disks need for one record.
    #[serde(skip_serializing_if = "Option::is_none")]
    times_floor: Option<f64>,
    /// What it is compared by.
    #[serde(skip)]
    phase: Option<Phase>,
}

impl Line {
    pub(super) fn rate(what: String, tasks: u64, seconds: f64) -> Line {
        let tasks_per_s = Some(tasks as f64 / seconds.max(f64::EPSILON));
        Line { tasks_per_s, ..Line::size(what, tasks, 0) }.without_bytes()
    }

    pub(super) fn size(what: String, tasks: u64, bytes: u64) -> Line {
        Line {
            what,
            tasks,
            tasks_per_s: None,
            p50_us: None,
            p99_us: None,
            server_cpu_s_per_100k: None,
            bytes: Some(bytes),
            times_floor: None,
            phase: None,
        }
    }

    /// A figure that others have too.
    pub(super) fn of(mut self, phase: Phase) -> Line {
        self.phase = Some(phase);
        self
    }

    /// Processor time of all servers in this phase.
    pub(super) fn note_cpu(&mut self, seconds: Option<f64>) {
        self.server_cpu_s_per_100k =
            seconds.map(|used| used * 100_000.0 / self.tasks.max(1) as f64);
    }

    fn without_bytes(mut self) -> Line {
        self.bytes = None;
        self
    }

    pub(super) fn with_latencies(mut self, mut micros: Vec<u64>) -> Line {
        micros.sort_unstable();
        let rank = |percent: usize| {
            let position = (micros.len() * percent).div_ceil(100).saturating_sub(1);
            micros.get(position).copied()
        };
        self.p50_us = rank(50);
        self.p99_us = rank(99);
        self
    }

    pub(super) fn p50_us(&self) -> Option<u64> {
        self.p50_us
    }

    /// Says in its name how many times another time its median is, and what was aimed at.
    pub(super) fn in_times_of(mut self, other_us: Option<u64>, aim: f64) -> Line {
        if let (Some(ours), Some(other)) = (self.p50_us, other_us.filter(|other| *other > 0)) {
            let times = ours as f64 / other as f64;
            self.times_floor = Some(times);
            self.what = format!("{}: p50 is {times:.1} floors (aim {aim:.0})", self.what);
        }
        self
    }

    /// A row that sets it beside the same figure of another system.
    fn beside(&self, system: &str, theirs: &Line) -> Vec<String> {
        let ratio = |ours: Option<f64>, theirs: Option<f64>| match (ours, theirs) {
            (Some(ours), Some(theirs)) if theirs > 0.0 => format!("{:.2}x", ours / theirs),
            _ => "-".to_owned(),
        };
        let cpu = ratio(self.server_cpu_s_per_100k, theirs.server_cpu_s_per_100k);
        let rates = ratio(self.tasks_per_s, theirs.tasks_per_s);
        let [what, ours, ..] = self.cells();
        let [_, theirs, ..] = theirs.cells();
        vec![what, ours, system.to_owned(), theirs, rates, cpu]
    }

    /// For the terminal while the bench goes on.
    pub(super) fn headline(&self) -> String {
        let [what, rate, p50, p99, cpu, bytes] = self.cells();
        format!("{what}: {rate} {bytes} p50 {p50} p99 {p99} cpu {cpu}")
    }

    fn cells(&self) -> [String; 6] {
        let dash = || "-".to_owned();
        let ms = |us: Option<u64>| us.map_or_else(dash, |us| format!("{:.2} ms", us as f64 / 1e3));
        [
            self.what.clone(),
            self.tasks_per_s.map_or_else(dash, |rate| format!("{rate:.0}/s")),
            ms(self.p50_us),
            ms(self.p99_us),
            self.server_cpu_s_per_100k.map_or_else(dash, |cpu| format!("{cpu:.2} s")),
            self.bytes.map_or_else(dash, |bytes| format!("{bytes} B")),
        ]
    }
}

/// All figures.
#[derive(Debug, Serialize)]
pub(in crate::bench) struct QueueReport {
    cluster: String,
    payload_bytes: usize,
    lines: Vec<Line>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    beside: Vec<RivalReport>,
}

impl QueueReport {
    pub(super) fn new(
        args: &QueueBenchArgs,
        cluster: String,
        lines: Vec<Line>,
        beside: Vec<RivalReport>,
    ) -> QueueReport {
        QueueReport { cluster, payload_bytes: args.payload_bytes, lines, beside }
    }

    /// Ratios of ours to theirs, a row per figure that both have.
    fn ratios(&self) -> Vec<Vec<String>> {
        let mut rows = Vec::new();
        for line in self.lines.iter().filter(|line| line.phase.is_some()) {
            for rival in &self.beside {
                let theirs = rival.lines.iter().find(|theirs| theirs.phase == line.phase);
                rows.extend(theirs.map(|theirs| line.beside(&rival.system, theirs)));
            }
        }
        rows
    }
}

impl Document for QueueReport {
    fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self)
    }

    fn grids(&self) -> Vec<Grid> {
        let headings = &["phase", "tasks", "p50", "p99", "server CPU per 100k", "memory"];
        let rows = self.lines.iter().map(|line| line.cells().into()).collect();
        let mut grids = vec![Grid { headings, rows }];
        if !self.beside.is_empty() {
            let headings: &[_] = &["phase", "tasks", "beside", "its tasks", "ratio", "CPU ratio"];
            grids.push(Grid { headings, rows: self.ratios() });
        }
        grids
    }

    fn names(&self) -> Vec<String> {
        let rates = self.lines.iter().filter_map(|line| line.tasks_per_s);
        rates.map(|rate| format!("{rate:.0}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_times_that_were_met() {
        let line = Line::rate("x".into(), 100, 2.0).with_latencies((1..=100).rev().collect());
        assert_eq!((line.p50_us, line.p99_us), (Some(50), Some(99)));
        assert_eq!(line.cells()[1], "50/s");
        assert_eq!(line.cells()[5], "-");
    }

    #[test]
    fn figures_are_set_beside_those_of_the_same_phase() {
        let line = |tasks, cpu, phase| {
            let mut line = Line::rate("x".into(), tasks, 1.0).of(phase);
            line.note_cpu(Some(cpu));
            line
        };
        let theirs = vec![line(100, 4.0, Phase::Drain), line(50, 1.0, Phase::Enqueue(64))];
        let report = QueueReport {
            cluster: "own".into(),
            payload_bytes: 1,
            lines: vec![line(300, 3.0, Phase::Drain), line(9, 1.0, Phase::Lifecycle)],
            beside: vec![RivalReport { system: "other 1".into(), lines: theirs }],
        };
        assert_eq!(report.ratios(), [["x", "300/s", "other 1", "100/s", "3.00x", "0.25x"]]);
    }
}
