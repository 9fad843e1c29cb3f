//! The strict count: every task there, done once, with the right result; all copies equal.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use ikada_api::Client;
use ikada_api::client::TaskQuery;
use ikada_api::v1::{Task, TaskStateName};

use super::QUEUE;
use super::work::{expected, task_id};
use crate::failure::Failure;

/// Copies must be equal within this time after the last write.
const COPIES_PATIENCE: Duration = Duration::from_secs(15);

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Counted {
    /// Done, with the right result.
    pub(super) right: u32,
    /// Not there at all.
    pub(super) lost: u32,
    /// There, but not done.
    pub(super) unfinished: u32,
    /// Done with a wrong result.
    pub(super) wrong: u32,
    /// Completed by more than one attempt, or listed twice.
    pub(super) twice: u32,
    /// Attempts beyond the first.
    pub(super) retries: u64,
    /// What the queue's own counters say is done.
    pub(super) done_total: u64,
    /// What the queue's own counters say was submitted.
    pub(super) submitted_total: u64,
}

/// Reads every task back and counts.
pub(super) async fn count(client: &Client, tasks: u32) -> Result<Counted, Failure> {
    let mut found: BTreeMap<String, (u32, Task)> = BTreeMap::new();
    let mut query = TaskQuery {
        queue: Some(QUEUE.to_owned()),
        limit: Some(1_000),
        ..TaskQuery::default()
    };
    loop {
        let page = client.tasks(&query).await?;
        for task in page.tasks {
            found
                .entry(task.id.clone())
                .and_modify(|(times, _)| *times += 1)
                .or_insert((1, task));
        }
        match page.next {
            Some(next) => query.after = Some(next),
            None => break,
        }
    }
    let queue = client.queue(QUEUE).await?;
    let mut counted = Counted {
        done_total: queue.counts.done_total,
        submitted_total: queue.counts.submitted_total,
        ..Counted::default()
    };
    for number in 0..tasks {
        match found.get(&task_id(number)) {
            None => counted.lost += 1,
            Some((times, task)) => counted.judge(number, *times, task),
        }
    }
    Ok(counted)
}

impl Counted {
    fn judge(&mut self, number: u32, times: u32, task: &Task) {
        let completions = task
            .attempts
            .iter()
            .filter(|attempt| attempt.outcome == "completed");
        if times > 1 || completions.count() > 1 {
            self.twice += 1;
        }
        self.retries += u64::from(task.attempts_begun.saturating_sub(1));
        if task.state != TaskStateName::Done {
            self.unfinished += 1;
        } else if task
            .result_bytes()
            .is_ok_and(|result| result == expected(number).as_bytes())
        {
            self.right += 1;
        } else {
            self.wrong += 1;
        }
    }
}

/// Compares the state of every shard on all nodes. True when all copies at the same position are equal.
pub(super) async fn compare_copies(urls: &[String]) -> Result<bool, Failure> {
    let deadline = Instant::now() + COPIES_PATIENCE;
    loop {
        let mut copies: BTreeMap<u16, Vec<(String, String)>> = BTreeMap::new();
        for url in urls {
            let client = Client::new([url])?.with_timeout(Duration::from_secs(5));
            // The restarted node may still be on its way.
            let Ok(node) = client.node().await else {
                continue;
            };
            for shard in node.shards {
                copies
                    .entry(shard.shard)
                    .or_default()
                    .push((shard.applied, shard.hash));
            }
        }
        let whole = !copies.is_empty() && copies.values().all(|all| all.len() == urls.len());
        if whole
            && copies
                .values()
                .all(|all| all.iter().all(|copy| *copy == all[0]))
        {
            return Ok(true);
        }
        let diverged = copies.values().any(|all| {
            all.iter()
                .any(|one| all.iter().any(|other| one.0 == other.0 && one.1 != other.1))
        });
        if diverged || Instant::now() > deadline {
            return Ok(false);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
