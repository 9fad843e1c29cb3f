//! What a named scenario tells `cargo xtask scenarios`: a line of JSON in the file that `IKADA_SCENARIO_REPORT` names.
//!
//! Leaves out: any judgement. Tests judge; this only counts.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::time::Instant;

use crate::cluster::{Cluster, look};
use crate::wait::until;

const REPORT: &str = "IKADA_SCENARIO_REPORT";

/// A scenario under way.
pub struct Scenario {
    name: &'static str,
    began: Instant,
    terms: u64,
    throughput_percent: Option<u64>,
    gap_ms: Option<u64>,
}

/// The newest terms of all shards, added up: each change of a leader raises one of them.
async fn terms(cluster: &Cluster) -> u64 {
    let urls = cluster.urls();
    let seen = until("the nodes answer", || look(&urls)).await;
    let mut newest: BTreeMap<u16, u64> = BTreeMap::new();
    for part in seen.iter().flat_map(|node| &node.shards) {
        let term = newest.entry(part.shard).or_default();
        *term = part.term.max(*term);
    }
    newest.values().sum()
}

impl Scenario {
    /// Begins to count, with a cluster that is well.
    pub async fn begin(name: &'static str, cluster: &Cluster) -> Scenario {
        let (began, terms) = (Instant::now(), terms(cluster).await);
        Scenario { name, began, terms, throughput_percent: None, gap_ms: None }
    }

    /// Writes per second under the fault, in percent of those before it.
    pub fn throughput(&mut self, percent: f64) {
        self.throughput_percent = Some(percent.round() as u64);
    }

    /// When it began.
    pub fn began(&self) -> Instant {
        self.began
    }

    /// The longest time without writes.
    pub fn gap(&mut self, ms: u128) {
        self.gap_ms = Some(ms as u64);
    }

    /// Tells what came of it, with a cluster that is well again.
    pub async fn end(self, cluster: &Cluster) {
        let Some(file) = std::env::var_os(REPORT) else { return };
        let line = serde_json::json!({
            "scenario": self.name,
            "changes": terms(cluster).await - self.terms,
            "throughput_percent": self.throughput_percent,
            "gap_ms": self.gap_ms,
            "seconds": self.began.elapsed().as_secs(),
        });
        let mut file = File::options().create(true).append(true).open(file).expect("the report");
        writeln!(file, "{line}").expect("written");
    }
}
