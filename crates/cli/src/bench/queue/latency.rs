//! Latency at a fixed rate: from the moment a task was due to be sent until its completion is acknowledged.
//!
//! Open loop: a task is sent on time whether or not earlier ones are done, so that a stall shows in full.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::JoinSet;

use super::Bench;
use super::floor;
use super::lifecycle::CONSUMERS;
use super::report::Line;
use super::tasks::{consume, task};
use crate::failure::Failure;

/// How many times the disks' own time for a record a task may take, from due to done, half of the time.
const FLOORS_AIM: f64 = 6.0;

impl Bench<'_> {
    pub(super) async fn latency(&mut self) -> Result<(), Failure> {
        let (rate, queue) = (u64::from(self.args.rate), "latency");
        let floor = tokio::task::spawn_blocking(floor::measure).await;
        let (line, floor_us) = floor.map_err(|error| Failure::failed(error.to_string()))??;
        self.note(line, None);
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
        let line = Line::rate(what, total, seconds).with_latencies(completed);
        self.note(line.in_times_of(floor_us, FLOORS_AIM), mark);
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
        let mut moments = pace(total, rate);
        let mut calls = JoinSet::new();
        while let Some((number, at)) = moments.recv().await {
            let id = format!("l{number}");
            due.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), at);
            let mut task = task(queue, self.args.payload_bytes);
            task.id = Some(id);
            let client = self.client.clone();
            calls.spawn(async move {
                client.enqueue(vec![task]).await?;
                Ok::<u64, Failure>(at.elapsed().as_micros() as u64)
            });
        }
        let mut confirmed = Vec::with_capacity(total as usize);
        while let Some(ended) = calls.join_next().await {
            confirmed.push(ended.map_err(|error| Failure::failed(error.to_string()))??);
        }
        Ok(confirmed)
    }
}

/// The moments at which tasks are due, told as they come. By a thread of its own: the runtime's timer has steps of 1 ms,
/// which is more than a task takes.
fn pace(total: u64, rate: u64) -> UnboundedReceiver<(u64, Instant)> {
    let (tell, told) = unbounded_channel();
    let began = Instant::now();
    std::thread::spawn(move || {
        for number in 0..total {
            let at = began + Duration::from_micros(number * 1_000_000 / rate);
            std::thread::sleep(at.saturating_duration_since(Instant::now()));
            if tell.send((number, at)).is_err() {
                return;
            }
        }
    });
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_task_is_due_once_and_none_is_told_early() {
        let mut moments = pace(50, 10_000);
        let (mut count, mut first) = (0, None);
        while let Some((number, at)) = moments.recv().await {
            let first = *first.get_or_insert(at);
            assert!(Instant::now() >= at);
            assert_eq!((number, at - first), (count, Duration::from_micros(100 * count)));
            count += 1;
        }
        assert_eq!(count, 50);
    }
}
