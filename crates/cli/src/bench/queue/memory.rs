//! A million waiting tasks: what each costs in memory, and whether the queue is as fast as with a thousand.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Bench;
use super::lifecycle::CONSUMERS;
use super::report::Line;
use super::tasks::consume;
use crate::failure::Failure;

const FILLERS: usize = 1_024;
/// Waiting tasks of the small backlog.
const FEW: u64 = 1_000;
/// Memory is read when the nodes have been quiet this long, so that snapshots and logs are out of the way.
const QUIET: Duration = Duration::from_secs(5);

impl Bench<'_> {
    pub(super) async fn memory(&mut self) -> Result<(), Failure> {
        let (queue, pending) = ("pending", self.args.pending);
        self.send_all(queue, FILLERS, FEW, true).await?;
        self.probe(FEW).await?;
        tokio::time::sleep(QUIET).await;
        let before = self.servers.memory_bytes();
        self.send_all(queue, FILLERS, pending - FEW, true).await?;
        tokio::time::sleep(QUIET).await;
        if let (Some(before), Some(after)) = (before, self.servers.memory_bytes()) {
            let nodes = after.len().max(1) as u64;
            let grown: u64 = after.iter().sum::<u64>().saturating_sub(before.iter().sum());
            let what = format!("memory of {pending} waiting tasks, bytes each per node");
            self.note(Line::size(what, pending, grown / nodes / (pending - FEW).max(1)), None);
        }
        self.probe(pending).await
    }

    /// Whole lives in another queue while so many tasks wait.
    async fn probe(&mut self, pending: u64) -> Result<(), Failure> {
        let (queue, total) = (format!("probe-{pending}"), self.args.tasks);
        let mark = self.servers.cpu_seconds();
        let began = Instant::now();
        let (sent, done) = tokio::join!(
            self.send_all(&queue, FILLERS, total, true),
            consume(&self.client, &queue, CONSUMERS, total, Arc::new(|_| {})),
        );
        sent?;
        let seconds = (done? - began).as_secs_f64();
        let what = format!("lifecycle, batched, while {pending} tasks wait");
        self.note(Line::rate(what, total, seconds), mark);
        Ok(())
    }
}
