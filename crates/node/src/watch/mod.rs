//! Watching over queues: figures taken now and then, and what follows from them (TQ-23, TQ-24).
//!
//! A node samples its own copy of all shards and keeps the samples in memory; nothing of it is replicated. So every node
//! gives its own, nearly equal judgement, and one that has just started needs a while to tell rates and growth.

mod judge;
mod samples;

pub(crate) use judge::{ALERTS, judge};
pub(crate) use samples::Samples;

use std::time::Duration;

/// Time between two samples.
pub(crate) const SAMPLE_EVERY: Duration = Duration::from_secs(10);

/// Milliseconds since 1970 by this machine's clock.
pub(crate) fn wall_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}
