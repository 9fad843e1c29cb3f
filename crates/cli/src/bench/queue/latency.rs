//! Latency at a fixed rate: from the moment a task was due to be sent until its completion is acknowledged.
//!
//! Open loop: a task is sent on time whether or not earlier ones are done, so that a stall shows in full.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::Bench;
use super::lifecycle::CONSUMERS;
use super::report::Line;
use super::tasks::{consume, task};
use crate::failure::Failure;

/// How often due tasks are sent: the timer's own step is 1 ms.
const PULSE: Duration = Duration::from_millis(1);

impl Bench<'_> {
    pub(super) async fn latency(&mut self) -> Result<(), Failure> {
        let (rate, queue) = (u64::from(self.args.rate), "latency");
        let total = rate * u64::from(self.args.seconds);
        let due: Arc<Mutex<HashMap<String, Instant>>> = Arc::default();
        let completed: Arc<Mutex<Vec<u64>>> = Arc::default();
        let mark = self.servers.cpu_seconds();
        let (of_done, done_at) = (due.clone(), completed.clone());
        let on_done = Arc::new(move |task: &ikada_api::v1::ClaimedTask| {
            let at = of_done.lock().unwrap_or_else(PoisonError::into_inner).remove(&task.id);
            if let Some(at) = at {
                let micros = at.elapsed().as_micros() as u64;
                done_at.lock().unwrap_or_else(PoisonError::into_inner).push(micros);
            }
        });
        let began = Instant::now();
        let (confirmed, consumed) = tokio::join!(
            self.send_on_time(queue, total, rate, &due),
            consume(&self.client, queue, CONSUMERS, total, on_done),
        );
        consumed?;
        let seconds = began.elapsed().as_secs_f64();
        let completed =
            std::mem::take(&mut *completed.lock().unwrap_or_else(PoisonError::into_inner));
        let what = format!("latency at {rate}/s: enqueue acknowledged");
        self.note(Line::rate(what, total, seconds).with_latencies(confirmed?), None);
        let what = format!("latency at {rate}/s: completion acknowledged");
        self.note(Line::rate(what, total, seconds).with_latencies(completed), mark);
        Ok(())
    }

    /// Sends tasks when they are due; gives the microseconds from then to each acknowledgement.
    async fn send_on_time(
        &self,
        queue: &str,
        total: u64,
        rate: u64,
        due: &Arc<Mutex<HashMap<String, Instant>>>,
    ) -> Result<Vec<u64>, Failure> {
        let mut pulse = tokio::time::interval(PULSE);
        let began = Instant::now();
        let mut calls = JoinSet::new();
        let mut sent = 0;
        while sent < total {
            pulse.tick().await;
            let elapsed_us = began.elapsed().as_micros() as u64;
            while sent < total && sent * 1_000_000 / rate <= elapsed_us {
                let at = began + Duration::from_micros(sent * 1_000_000 / rate);
                let id = format!("l{sent}");
                due.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), at);
                let mut task = task(queue, self.args.payload_bytes);
                task.id = Some(id);
                let client = self.client.clone();
                calls.spawn(async move {
                    client.enqueue(vec![task]).await?;
                    Ok::<u64, Failure>(at.elapsed().as_micros() as u64)
                });
                sent += 1;
            }
        }
        let mut confirmed = Vec::with_capacity(total as usize);
        while let Some(ended) = calls.join_next().await {
            confirmed.push(ended.map_err(|error| Failure::failed(error.to_string()))??);
        }
        Ok(confirmed)
    }
}
