//! A line per probe for the report on hostile programs (`cargo xtask hostile`).
//!
//! Promises: a probe is noted before it is judged, so that one that got through is in the report too. Leaves out: the
//! table, which is made of the lines of all tests.

use std::fs::OpenOptions;
use std::io::Write;
use std::time::Duration;

/// Names the file that the lines go to; without it nothing is written.
const REPORT: &str = "IKADA_HOSTILE_REPORT";

/// What a probe came to.
pub struct Probe<'a> {
    /// `module` or `command`.
    pub kind: &'static str,
    /// The wall that it runs against.
    pub wall: &'static str,
    /// What it tried.
    pub tried: &'a str,
    /// How it ended, in the worker's words.
    pub ended: &'a str,
    /// Whether it was held back.
    pub contained: bool,
    /// How long it ran.
    pub took: Duration,
}

/// Notes a probe, if somebody asked for a report.
pub fn note(probe: &Probe<'_>) {
    let Some(path) = std::env::var_os(REPORT) else { return };
    let line = serde_json::json!({
        "kind": probe.kind,
        "wall": probe.wall,
        "tried": probe.tried,
        "ended": probe.ended,
        "contained": probe.contained,
        "seconds": probe.took.as_millis() as f64 / 1_000.0,
    });
    let mut file = OpenOptions::new().create(true).append(true).open(path).expect("the report");
    // In one piece: tests in other processes write to the same file.
    file.write_all(format!("{line}\n").as_bytes()).expect("a line of the report");
}
