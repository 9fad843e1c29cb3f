//! Tasks of a job that functions run, beside whole lives of plain tasks on the same cluster.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use ikada_api::client::Enqueuer;
use ikada_api::v1::OutcomeKind;
use tokio::task::JoinSet;

use super::super::queue::{CONSUMERS, SUBMITTERS, consume, task};
use super::report::{Aim, Row};
use super::{Bench, NOTHING, median, plain_job};
use crate::failure::Failure;

/// Bytes of a plain task's payload, as in the queue's bench.
const PAYLOAD_BYTES: usize = 100;
/// Tasks of a job should be at least this share of plain ones.
const SHARE_MIN: f64 = 0.8;
/// Tasks before those that are counted.
const WARM: u64 = 1_000;

impl Bench<'_> {
    pub(super) async fn handlers(&mut self) -> Result<(), Failure> {
        let total = self.args.handlers;
        self.whole_lives("bench-warm", WARM).await?;
        let (mut lives, mut jobs) = (Vec::new(), Vec::new());
        for round in 0..self.args.rounds {
            lives.push(self.whole_lives(&format!("bench-plain-{round}"), total).await?);
            let queue = format!("bench-handlers-{round}");
            let workers = self.handler_workers(&queue).await?;
            self.timed(&plain_job(&queue, NOTHING, WARM)).await?;
            jobs.push(self.timed(&plain_job(&queue, NOTHING, total)).await?.1);
            for mut worker in workers {
                worker.drain();
                worker.wait().await;
            }
        }
        let (plain, seconds) = (median(&mut lives), median(&mut jobs));
        let what = format!("plain tasks, {SUBMITTERS} submitters, {CONSUMERS} consumers, batched");
        self.note(Row::rate(what, total, plain));
        self.note(Row::rate("tasks of a job, run by functions".to_owned(), total, seconds));
        let row = Row::new("tasks of a job beside plain ones".to_owned(), plain / seconds, "times");
        self.note(row.with(Aim::AtLeast(SHARE_MIN)));
        Ok(())
    }

    /// Enqueues, claims and completes plain tasks at the same time; gives the seconds.
    async fn whole_lives(&self, queue: &str, total: u64) -> Result<f64, Failure> {
        let began = Instant::now();
        let (sent, done) = tokio::join!(
            self.send(queue, total),
            consume(&self.client, queue, CONSUMERS, total, Arc::new(|_| {})),
        );
        sent?;
        Ok((done? - began).as_secs_f64())
    }

    async fn send(&self, queue: &str, total: u64) -> Result<(), Failure> {
        let (next, template) = (Arc::new(AtomicU64::new(0)), task(queue, PAYLOAD_BYTES));
        let enqueuer = Enqueuer::new(self.client.clone());
        let mut callers = JoinSet::new();
        for _ in 0..SUBMITTERS {
            let (next, template, enqueuer) = (next.clone(), template.clone(), enqueuer.clone());
            callers.spawn(async move {
                while next.fetch_add(1, Ordering::Relaxed) < total {
                    let sent = enqueuer.enqueue(template.clone()).await;
                    let sent = sent.map_err(|error| Failure::failed(error.to_string()))?;
                    if sent.outcome != OutcomeKind::Created {
                        let detail = format!("a new task came back as {:?}", sent.outcome);
                        return Err(Failure::failed(detail));
                    }
                }
                Ok(())
            });
        }
        while let Some(ended) = callers.join_next().await {
            ended.map_err(|error| Failure::failed(format!("a caller has ended: {error}")))??;
        }
        Ok(())
    }
}
