//! The well-behaved caller: enqueues tasks at a fixed rate, on a connection that it keeps and on one of its own each time.
//!
//! Open loop: the time of a call counts from when it was due, so that a stall shows in full.

use std::time::Duration;

use tokio::time::{Instant, interval};

use super::super::objects::speak::Line;
use super::way::Way;

/// Calls on the kept connection, and as many on fresh ones: 40 of each per second.
const EVERY: Duration = Duration::from_millis(25);
/// How long a call may take; one that takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(10);
const TASK: &[u8] = br#"{"tasks":[{"queue":"friend"}]}"#;
/// What an enqueue is answered with.
const DONE: std::ops::Range<u16> = 200..300;

/// Times of calls that went well, in microseconds.
#[derive(Debug, Default)]
pub(super) struct Times(Vec<u64>);

impl Times {
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    #[cfg(test)]
    pub(super) fn of(us: Vec<u64>) -> Times {
        Times(us)
    }

    pub(super) fn add(&mut self, more: Times) {
        self.0.extend(more.0);
    }

    /// By nearest rank; absent without calls.
    pub(super) fn p99_us(&self) -> Option<u64> {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        sorted.get((sorted.len() * 99).div_ceil(100).saturating_sub(1)).copied()
    }
}

/// What the caller met.
#[derive(Debug, Default)]
pub(super) struct Heard {
    pub(super) kept: Times,
    pub(super) fresh: Times,
    pub(super) failed: u64,
}

impl Heard {
    pub(super) fn add(&mut self, more: Heard) {
        self.kept.add(more.kept);
        self.fresh.add(more.fresh);
        self.failed += more.failed;
    }
}

pub(super) struct Friend {
    way: Way,
}

impl Friend {
    pub(super) fn new(way: &Way) -> Friend {
        Friend { way: way.clone() }
    }

    /// Calls for so long.
    pub(super) async fn call_for(&self, length: Duration) -> Heard {
        let (kept, fresh) = tokio::join!(self.paced(length, true), self.paced(length, false));
        Heard { failed: kept.1 + fresh.1, kept: kept.0, fresh: fresh.0 }
    }

    async fn paced(&self, length: Duration, keep: bool) -> (Times, u64) {
        let (mut times, mut failed, mut line) = (Times::default(), 0, None);
        let mut pulse = interval(EVERY);
        let end = Instant::now() + length;
        loop {
            let due = pulse.tick().await;
            if due >= end {
                return (times, failed);
            }
            match self.call(line.take()).await {
                Some(used) => {
                    times.0.push(due.elapsed().as_micros() as u64);
                    line = Some(used).filter(|_| keep);
                }
                None => failed += 1,
            }
        }
    }

    /// One call; gives the connection if it went well.
    async fn call(&self, line: Option<Line>) -> Option<Line> {
        let mut line = match line {
            Some(line) => line,
            None => tokio::time::timeout(PATIENCE, self.way.line()).await.ok()?.ok()?,
        };
        let heard = line.call("POST", "/v1/tasks", TASK, PATIENCE, false).await.ok()?;
        DONE.contains(&heard.status).then_some(line)
    }
}
