//! Traces: what became of jobs, tasks and attempts, as OpenTelemetry spans, sent to a collector by OTLP over HTTP. Off unless
//! a collector is named.
//!
//! The leader of a shard makes the spans of a task when the task has ended, from its record: one for the task, one for each
//! of its attempts, and one for the job when that has ended with it. Times are log times. Identifiers are derived from names
//! (`ids.rs`), so that they are known before anything has ended: a worker hands the attempt's to the program, whose own spans
//! hang below it.
//!
//! Promise: nothing waits for the collector. What it does not take in time is dropped and counted.
//! Left out: spans of a task that ended while its shard changed leaders may be sent twice (the same span) or not at all.

mod export;
mod ids;
mod spans;

use std::time::Duration;

use ikada_api::courier::Courier;
use ikada_replica::output::Ended;
use ikada_store::Identity;
use tokio::sync::mpsc::Sender;
use tokio::task::JoinHandle;

use self::export::export;
use crate::config::Config;
use crate::counters::SharedCounters;
pub(crate) use ids::traceparent;

/// Most ended tasks and jobs that wait to be sent.
const WAITING_MAX: usize = 16_384;
/// How long the last spans may take when the node stops.
const END_PATIENCE: Duration = Duration::from_secs(2);

/// Whose spans these are.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    /// The cluster.
    pub cluster: u64,
    /// This node.
    pub node: u64,
    /// Its name for people.
    pub name: String,
}

/// The driver's end of the line to the exporter.
pub(crate) type EndedSender = Sender<Ended>;

/// A collector that cannot be sent to.
#[derive(Debug, thiserror::Error)]
#[error("otlp {0}")]
pub struct BadCollector(String);

/// Starts to send to the collector, if there is one: gives the line to it, and the task that sends until that is closed.
pub(crate) fn begin(
    config: &Config,
    identity: &Identity,
    counters: &SharedCounters,
) -> Result<(Option<EndedSender>, JoinHandle<()>), BadCollector> {
    let Some(url) = &config.otlp else {
        return Ok((None, tokio::spawn(async {})));
    };
    let headers = std::env::var("OTEL_EXPORTER_OTLP_HEADERS").unwrap_or_default();
    let collector = collector(url, &headers).map_err(BadCollector)?;
    let (cluster, node, name) = (identity.cluster, identity.node, identity.name.clone());
    let origin = Origin { cluster, node, name };
    let (sender, line) = tokio::sync::mpsc::channel(WAITING_MAX);
    let task = tokio::spawn(export(origin, collector, line, counters.clone()));
    Ok((Some(sender), task))
}

/// The driver's end of the line is gone: the exporter sends what is left, if it can do so soon.
pub(crate) async fn end(exporting: JoinHandle<()>) {
    let _ = tokio::time::timeout(END_PATIENCE, exporting).await;
}

/// The way to a collector. `url` is its base, or the whole address for traces; headers (for access) come as the environment
/// variable that is usual for them gives them: `name=value,name=value`.
pub(crate) fn collector(url: &str, headers: &str) -> Result<Courier, String> {
    let url = url.trim_end_matches('/');
    let url = match url.ends_with("/v1/traces") {
        true => url.to_owned(),
        false => format!("{url}/v1/traces"),
    };
    let mut map = hyper::HeaderMap::new();
    for pair in headers.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
        let Some((name, value)) = pair.split_once('=') else {
            return Err("OTEL_EXPORTER_OTLP_HEADERS must be name=value,name=value".to_owned());
        };
        let name: Result<hyper::header::HeaderName, _> = name.trim().to_lowercase().parse();
        let value: Result<hyper::header::HeaderValue, _> = value.trim().parse();
        match (name, value) {
            (Ok(name), Ok(value)) => drop(map.insert(name, value)),
            _ => return Err("OTEL_EXPORTER_OTLP_HEADERS holds what no header can".to_owned()),
        }
    }
    Courier::new(&url, map)
}
