//! Enqueue alone: one task per call with few and many calls in flight, then with the client's own batching.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use ikada_api::client::Enqueuer;
use ikada_api::v1::{ItemOutcome, NewTask, OutcomeKind};
use tokio::task::JoinSet;

use super::report::{Line, Phase};
use super::tasks::task;
use super::{Bench, IN_FLIGHT, LONE_SHARE};
use crate::failure::Failure;

/// How tasks are handed over.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// One call per task.
    Single,
    /// The client gathers concurrent calls.
    Batched,
}

impl Bench<'_> {
    pub(super) async fn enqueue(&mut self) -> Result<(), Failure> {
        for in_flight in IN_FLIGHT {
            let share = if in_flight == 1 { LONE_SHARE } else { 1 };
            self.enqueue_with(in_flight, self.args.tasks / share, Way::Single).await?;
        }
        self.enqueue_with(IN_FLIGHT[2], self.args.tasks, Way::Batched).await
    }

    async fn enqueue_with(
        &mut self,
        in_flight: usize,
        total: u64,
        way: Way,
    ) -> Result<(), Failure> {
        let queue = format!("enqueue-{in_flight}-{}", way == Way::Batched);
        let mark = self.servers.cpu_seconds();
        let (seconds, latencies) =
            self.send_all(&queue, in_flight, total, way == Way::Batched).await?;
        let what = match way {
            Way::Single => format!("enqueue, {in_flight} in flight, one task per call"),
            Way::Batched => format!("enqueue, {in_flight} callers, batched by the client"),
        };
        let line = Line::rate(what, total, seconds).with_latencies(latencies);
        self.note(line.of(Phase::Enqueue(in_flight)), mark);
        let held = self.client.queue(&queue).await?.counts.submitted_total;
        if held != total {
            return Err(Failure::failed(format!("{total} tasks were acknowledged, {held} exist")));
        }
        Ok(())
    }

    /// Sends tasks with so many callers; gives the seconds it took and each call's microseconds.
    pub(super) async fn send_all(
        &self,
        queue: &str,
        in_flight: usize,
        total: u64,
        batched: bool,
    ) -> Result<(f64, Vec<u64>), Failure> {
        let next = Arc::new(AtomicU64::new(0));
        let enqueuer = batched.then(|| Enqueuer::new(self.client.clone()));
        let template = task(queue, self.args.payload_bytes);
        let mut callers = JoinSet::new();
        let began = Instant::now();
        for _ in 0..in_flight {
            let (client, enqueuer) = (self.client.clone(), enqueuer.clone());
            let (next, template) = (next.clone(), template.clone());
            callers.spawn(async move {
                let mut latencies = Vec::new();
                while next.fetch_add(1, Ordering::Relaxed) < total {
                    let called = Instant::now();
                    let outcome = match &enqueuer {
                        Some(enqueuer) => enqueuer
                            .enqueue(template.clone())
                            .await
                            .map_err(|error| Failure::failed(error.to_string()))?,
                        None => single(&client, template.clone()).await?,
                    };
                    latencies.push(called.elapsed().as_micros() as u64);
                    if outcome.outcome != OutcomeKind::Created {
                        let detail = format!("a new task came back as {:?}", outcome.outcome);
                        return Err(Failure::failed(detail));
                    }
                }
                Ok(latencies)
            });
        }
        let mut latencies = Vec::with_capacity(total as usize);
        while let Some(ended) = callers.join_next().await {
            let ended =
                ended.map_err(|error| Failure::failed(format!("a caller has ended: {error}")))?;
            latencies.extend(ended?);
        }
        Ok((began.elapsed().as_secs_f64(), latencies))
    }
}

async fn single(client: &ikada_api::Client, task: NewTask) -> Result<ItemOutcome, Failure> {
    let mut answer = client.enqueue(vec![task]).await?;
    answer.tasks.pop().ok_or_else(|| Failure::failed("an answer without an outcome"))
}
