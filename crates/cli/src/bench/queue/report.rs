//! What was measured, as a table and as JSON.

use serde::Serialize;

use crate::args::QueueBenchArgs;
use crate::render::{Document, Grid};

/// One figure.
#[derive(Debug, Serialize)]
pub(super) struct Line {
    pub(super) what: String,
    pub(super) tasks: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    tasks_per_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p50_us: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p99_us: Option<u64>,
    /// Of all nodes together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) server_cpu_s_per_100k: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
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
        }
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
}

impl QueueReport {
    pub(super) fn new(args: &QueueBenchArgs, cluster: String, lines: Vec<Line>) -> QueueReport {
        QueueReport { cluster, payload_bytes: args.payload_bytes, lines }
    }
}

impl Document for QueueReport {
    fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self)
    }

    fn grids(&self) -> Vec<Grid> {
        let headings = &["phase", "tasks", "p50", "p99", "server CPU per 100k", "memory"];
        vec![Grid { headings, rows: self.lines.iter().map(|line| line.cells().into()).collect() }]
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
}
