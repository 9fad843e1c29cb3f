//! The demo's work: tasks whose results can be checked, and two workers that run them.

use std::sync::Arc;
use std::time::Duration;

use ikada_api::Client;
use ikada_api::client::ClientOptions;
use ikada_api::v1::{ClaimedTask, NewTask};
use ikada_worker::{AgentConfig, Handle, Handler, RunConfig, Tally, start};

use super::QUEUE;
use crate::failure::Failure;

/// Tasks per request.
const BATCH: u32 = 100;
/// Two workers with this many slots each.
const SLOTS: u32 = 16;
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

fn handle(task: &ClaimedTask) -> Result<Vec<u8>, String> {
    let bytes = task.payload().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&bytes);
    let number: u32 = text.parse().map_err(|_| format!("payload {text:?} is not a number"))?;
    std::thread::sleep(TASK_TIME);
    Ok(expected(number).into_bytes())
}

/// The demo's workers, inside this process.
pub(super) struct Crew {
    workers: Vec<Handle>,
}

impl Crew {
    pub(super) fn start(urls: &[String]) -> Result<Crew, Failure> {
        let handler: Handler = Arc::new(handle);
        let mut workers = Vec::new();
        for number in 1..=2u64 {
            // Each prefers another node, so that calls meet leaders and followers alike.
            let mut urls = urls.to_vec();
            urls.rotate_left(number as usize);
            let client = Client::with(
                &urls,
                ClientOptions {
                    attempt_timeout: Duration::from_secs(2),
                    ..ClientOptions::default()
                },
            )?;
            let config = RunConfig {
                worker: format!("demo-worker-{number}"),
                session: number,
                queues: vec![QUEUE.to_owned()],
                labels: Default::default(),
                agent: AgentConfig {
                    slots: SLOTS,
                    poll_wait_ms: 1_000,
                    seed: number,
                    ..AgentConfig::default()
                },
            };
            workers.push(start(client, config, handler.clone()));
        }
        Ok(Crew { workers })
    }

    /// Completions that count, so far.
    pub(super) fn completed(&self) -> u64 {
        self.workers.iter().map(|worker| worker.tally().completed).sum()
    }

    /// Lets them finish and leave.
    pub(super) async fn stop(self) -> Tally {
        for worker in &self.workers {
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
