//! A job of very many tasks: how soon it is taken, how fast it passes, what the nodes hold meanwhile, and what others
//! notice.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ikada_api::Client;
use ikada_api::v1::NewTask;
use tokio::time::MissedTickBehavior;

use super::super::queue::resident_of;
use super::report::{Aim, Row};
use super::{Bench, NOTHING, plain_job};
use crate::failure::Failure;

/// Calls of others: 40 a second.
const EVERY: Duration = Duration::from_millis(25);
/// How long others call before the job, to compare.
const BEFORE: Duration = Duration::from_secs(3);
/// A node should not hold more, in MiB.
const MEMORY_MIB_MAX: f64 = 1_024.0;
const QUEUE: &str = "bench-expansion";

impl Bench<'_> {
    pub(super) async fn expansion(&mut self) -> Result<(), Failure> {
        let total = self.args.tasks;
        let others = Others::begin(self.client.clone());
        tokio::time::sleep(BEFORE).await;
        let before = others.end().await?;
        let workers = self.handler_workers(QUEUE).await?;
        let others = Others::begin(self.client.clone());
        let (began, pids) = (Instant::now(), self.nodes.pids());
        let id = self.client.submit_job(&plain_job(QUEUE, NOTHING, total)).await?.id;
        let taken = began.elapsed();
        let (mut held, mut expanded) = (vec![0; pids.len()], None);
        self.ended(&id, |job| {
            for (held, pid) in held.iter_mut().zip(&pids) {
                *held = (*held).max(resident_of(*pid).unwrap_or(0));
            }
            let begun: u64 = job.stages.iter().map(|stage| u64::from(stage.begun)).sum();
            if begun >= total && expanded.is_none() {
                expanded = Some(began.elapsed());
            }
        })
        .await?;
        let seconds = began.elapsed().as_secs_f64();
        let during = others.end().await?;
        for mut worker in workers {
            worker.drain();
            worker.wait().await;
        }
        let taken_ms = taken.as_secs_f64() * 1e3;
        self.note(Row::new(format!("a job of {total} tasks is taken after"), taken_ms, "ms"));
        let expanded = expanded.map_or(seconds, |time| time.as_secs_f64());
        self.note(Row::new("its last task has come into being after".to_owned(), expanded, "s"));
        self.note(Row::rate(
            "its tasks, run by functions that do nothing".to_owned(),
            total,
            seconds,
        ));
        for (node, held) in held.iter().enumerate() {
            let what = format!("most memory of node {}", node + 1);
            let mib = *held as f64 / f64::from(1 << 20);
            self.note(Row::new(what, mib, "MiB").with(Aim::AtMost(MEMORY_MIB_MAX)));
        }
        for (when, times) in [("before", before), ("during", during)] {
            for (share, name) in [(50, "p50"), (99, "p99")] {
                let what = format!("enqueue by others {when}, {name} of {}", times.len());
                self.note(Row::new(what, rank(&times, share), "ms"));
            }
        }
        Ok(())
    }
}

/// By nearest rank, in ms; 0 without calls.
fn rank(sorted_us: &[u64], percent: usize) -> f64 {
    let place = (sorted_us.len() * percent).div_ceil(100).saturating_sub(1);
    sorted_us.get(place).map_or(0.0, |us| *us as f64 / 1e3)
}

/// A well-behaved caller: enqueues one task at a fixed rate. The time of a call counts from when it was due, so that a
/// stall shows in full.
struct Others {
    stop: Arc<AtomicBool>,
    running: tokio::task::JoinHandle<Result<Vec<u64>, Failure>>,
}

impl Others {
    fn begin(client: Client) -> Others {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let running = tokio::spawn(async move {
            let mut pulse = tokio::time::interval(EVERY);
            pulse.set_missed_tick_behavior(MissedTickBehavior::Burst);
            let mut times = Vec::new();
            while !stopped.load(Ordering::Relaxed) {
                let due = pulse.tick().await;
                let queue = Some("bench-others".to_owned());
                client.enqueue(vec![NewTask { queue, ..NewTask::default() }]).await?;
                times.push(due.elapsed().as_micros() as u64);
            }
            times.sort_unstable();
            Ok(times)
        });
        Others { stop, running }
    }

    /// The times of all calls in microseconds, sorted.
    async fn end(self) -> Result<Vec<u64>, Failure> {
        self.stop.store(true, Ordering::Relaxed);
        self.running.await.map_err(|error| Failure::failed(error.to_string()))?
    }
}
