//! The demo's work: tasks whose results can be checked, and two workers that run them.

use std::time::Duration;

use ikada_api::Client;
use ikada_api::client::ClientOptions;
use ikada_api::v1::NewTask;
use ikada_worker::{Claimed, Handle, Tally, TaskError, TaskResult, Worker};

use super::QUEUE;
use crate::failure::Failure;

/// Tasks per request.
const BATCH: u32 = 100;
/// Two workers with this many slots each.
const SLOTS: u32 = 16;
/// How long a claim waits; the demo ends at most this long after its last task.
const POLL: Duration = Duration::from_secs(1);
/// Each task takes this long, as real work would.
const TASK_TIME: Duration = Duration::from_millis(20);
/// Rounds of the little computation.
const ROUNDS: u32 = 1_000;

/// The id of a task.
pub(super) fn task_id(number: u32) -> String {
    format!("demo-{number:07}")
}

/// What a task must come to: a chain of mixed numbers that nobody guesses.
pub(super) fn expected(number: u32) -> String {
    let mut value = u64::from(number) ^ 0x9e37_79b9_7f4a_7c15;
    for _ in 0..ROUNDS {
        value ^= value >> 29;
        value = value.wrapping_mul(0xbf58_476d_1ce4_e5b9).rotate_left(17);
    }
    format!("\"{value:016x}\"")
}

/// Submits all tasks, in batches under keys of their own.
pub(super) async fn submit(client: Client, tasks: u32) -> Result<(), Failure> {
    let mut first = 0;
    while first < tasks {
        let batch: Vec<NewTask> = (first..tasks.min(first + BATCH)).map(new_task).collect();
        let answer = client.enqueue_as(&format!("demo-batch-{first}"), batch).await?;
        if let Some(item) = answer.tasks.iter().find(|item| item.problem.is_some()) {
            return Err(Failure::failed(format!(
                "task {} was not taken: {:?}",
                item.id, item.problem
            )));
        }
        first += BATCH;
    }
    Ok(())
}

fn new_task(number: u32) -> NewTask {
    NewTask {
        id: Some(task_id(number)),
        queue: Some(QUEUE.to_owned()),
        payload: serde_json::value::to_raw_value(&number).ok(),
        ..NewTask::default()
    }
}

async fn handle(task: Claimed) -> Result<TaskResult, TaskError> {
    let number: u32 = task.json()?;
    tokio::time::sleep(TASK_TIME).await;
    Ok(expected(number).into_bytes().into())
}

/// The demo's workers, inside this process.
pub(super) struct Crew {
    workers: Vec<Handle>,
}

impl Crew {
    pub(super) fn start(urls: &[String]) -> Result<Crew, Failure> {
        let mut workers = Vec::new();
        for number in 1..=2usize {
            // Each prefers another node, so that calls meet leaders and followers alike.
            let mut urls = urls.to_vec();
            urls.rotate_left(number);
            let client = Client::with(
                &urls,
                ClientOptions {
                    attempt_timeout: Duration::from_secs(2),
                    ..ClientOptions::default()
                },
            )?;
            let worker = Worker::new(client)
                .name(format!("demo-worker-{number}"))
                .slots(SLOTS)
                .poll(POLL)
                .handle(QUEUE, handle)
                .start();
            workers.push(worker.map_err(|error| Failure::failed(error.to_string()))?);
        }
        Ok(Crew { workers })
    }

    /// Completions that count, so far.
    pub(super) fn completed(&self) -> u64 {
        self.workers.iter().map(|worker| worker.tally().completed).sum()
    }

    /// Lets them finish and leave.
    pub(super) async fn stop(mut self) -> Tally {
        for worker in &mut self.workers {
            worker.drain();
        }
        let mut total = Tally::default();
        for worker in self.workers {
            let tally = worker.wait().await;
            total.begun += tally.begun;
            total.completed += tally.completed;
            total.failed += tally.failed;
            total.lost += tally.lost;
        }
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_differ_and_repeat() {
        assert_eq!(expected(7), expected(7));
        assert_ne!(expected(7), expected(8));
        assert!(serde_json::from_str::<String>(&expected(0)).is_ok());
    }
}
