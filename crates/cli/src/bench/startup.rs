//! How long a new cluster takes from nothing to one agreed leader per shard on every node (B4-44).

use std::time::{Duration, Instant};

use serde::Serialize;

use super::summary::{Summary, ms};
use crate::args::StartupArgs;
use crate::failure::Failure;
use crate::local::{Nodes, Shape};
use crate::render::bar;
use crate::render::{Document, Grid};

/// A run that takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(30);
/// What a start should stay below.
const GOAL: Duration = Duration::from_secs(5);

/// What was measured.
#[derive(Debug, Serialize)]
pub(super) struct StartupReport {
    nodes: u16,
    shards: u16,
    runs: u32,
    /// Runs that settled at all.
    settled: u32,
    /// Runs below the goal.
    under_5_s: u32,
    /// Of the settled runs.
    start: Summary,
    /// Each run, in order; absent if it did not settle.
    runs_ms: Vec<Option<u64>>,
}

/// Runs cold starts, each with fresh folders and ports.
pub(super) async fn measure(args: &StartupArgs) -> Result<StartupReport, Failure> {
    let shape = Shape { name: "bench", nodes: args.nodes, shards: args.shards };
    let bar = bar(u64::from(args.runs), "cold starts");
    let mut runs = Vec::new();
    for _ in 0..args.runs {
        let mut nodes = Nodes::prepare(shape)?;
        let began = Instant::now();
        nodes.start_missing()?;
        match nodes.agree(PATIENCE).await {
            Ok(_) => runs.push(Some(ms(began.elapsed()))),
            // A node that ended by itself is no slow start.
            Err(failure) if began.elapsed() < PATIENCE => return Err(failure),
            Err(failure) => {
                bar.suspend(|| eprintln!("{failure}: {}", nodes.keep_logs()));
                runs.push(None);
            }
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    let settled = runs.iter().flatten().count() as u32;
    let under = runs.iter().flatten().filter(|run| **run < ms(GOAL)).count() as u32;
    Ok(StartupReport {
        nodes: args.nodes,
        shards: args.shards,
        runs: args.runs,
        settled,
        under_5_s: under,
        start: Summary::of(runs.iter().copied().flatten()),
        runs_ms: runs,
    })
}

impl StartupReport {
    /// Whether every run settled.
    pub(super) fn verdict(&self) -> Result<(), Failure> {
        match self.runs - self.settled {
            0 => Ok(()),
            stuck => {
                let patience = PATIENCE.as_secs();
                Err(Failure::failed(format!("{stuck} cold starts did not settle in {patience} s")))
            }
        }
    }
}

impl Document for StartupReport {
    fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self)
    }

    fn grids(&self) -> Vec<Grid> {
        let [p50, p99, max] = self.start.cells();
        let row = vec![
            format!("{} nodes, {} shards", self.nodes, self.shards),
            format!("{}/{}", self.settled, self.runs),
            p50,
            p99,
            max,
            format!("{}/{}", self.under_5_s, self.runs),
        ];
        let headings = &["cold start", "settled", "p50", "p99", "max", "under 5 s"];
        vec![Grid { headings, rows: vec![row] }]
    }

    fn names(&self) -> Vec<String> {
        self.runs_ms.iter().flatten().map(u64::to_string).collect()
    }
}
