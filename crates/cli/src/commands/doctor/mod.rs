//! `ikada doctor`: checks a machine before it runs a node, and a cluster that runs.
//!
//! Promises: changes nothing but a file in the data folder, which it removes again; every finding says what to do. Leaves out: repairs.

mod clock;
mod cluster;
mod machine;
mod peers;

use serde::Serialize;

use crate::args::{DoctorArgs, SharedArgs};
use crate::failure::Failure;
use crate::render::{Document, Grid, Screen};

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    /// As it should be.
    Good,
    /// Works, but think about it.
    Doubtful,
    /// Mend it.
    Bad,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
pub(super) struct Finding {
    check: &'static str,
    verdict: Verdict,
    /// What was seen.
    seen: String,
    /// What to do; empty when nothing is wrong.
    advice: String,
}

impl Finding {
    fn good(check: &'static str, seen: impl Into<String>) -> Finding {
        Finding { check, verdict: Verdict::Good, seen: seen.into(), advice: String::new() }
    }

    fn doubtful(check: &'static str, seen: impl Into<String>, advice: &str) -> Finding {
        Finding { check, verdict: Verdict::Doubtful, seen: seen.into(), advice: advice.to_owned() }
    }

    fn bad(check: &'static str, seen: impl Into<String>, advice: &str) -> Finding {
        Finding { check, verdict: Verdict::Bad, seen: seen.into(), advice: advice.to_owned() }
    }
}

/// All that was looked at.
#[derive(Debug, Serialize)]
struct Report {
    findings: Vec<Finding>,
}

pub(crate) async fn doctor(
    shared: &SharedArgs,
    args: &DoctorArgs,
    screen: &mut Screen,
) -> Result<(), Failure> {
    let mut findings = vec![
        machine::sync_speed(&args.data),
        machine::open_files(),
        machine::memory(),
        clock::time_source().await,
    ];
    for address in &args.listen {
        findings.push(machine::port(address).await);
    }
    for address in &args.peer {
        findings.push(peers::reach(address).await);
    }
    findings.extend(cluster::look(shared).await?);
    let report = Report { findings };
    screen.show(&report)?;
    let bad = report.findings.iter().filter(|finding| finding.verdict == Verdict::Bad).count();
    match bad {
        0 => Ok(()),
        count => {
            Err(Failure::failed(format!("{count} of {} checks are bad", report.findings.len())))
        }
    }
}

impl Document for Report {
    fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self)
    }

    fn grids(&self) -> Vec<Grid> {
        let word = |verdict| match verdict {
            Verdict::Good => "good",
            Verdict::Doubtful => "doubtful",
            Verdict::Bad => "BAD",
        };
        let row = |finding: &Finding| {
            let verdict = word(finding.verdict).to_owned();
            vec![finding.check.to_owned(), verdict, finding.seen.clone(), finding.advice.clone()]
        };
        let rows = self.findings.iter().map(row).collect();
        vec![Grid { headings: &["check", "verdict", "seen", "what to do"], rows }]
    }

    fn names(&self) -> Vec<String> {
        let bad = self.findings.iter().filter(|finding| finding.verdict == Verdict::Bad);
        bad.map(|finding| finding.check.to_owned()).collect()
    }
}
