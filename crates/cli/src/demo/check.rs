//! The strict count: every task there, done once, with the right result.

use std::collections::BTreeMap;

use ikada_api::Client;
use ikada_api::client::TaskQuery;
use ikada_api::v1::{Task, TaskStateName};

use super::QUEUE;
use super::work::{expected, task_id};
use crate::failure::Failure;

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
    let mut query =
        TaskQuery { queue: Some(QUEUE.to_owned()), limit: Some(1_000), ..TaskQuery::default() };
    loop {
        let page = client.tasks(&query).await?;
        for task in page.tasks {
            found.entry(task.id.clone()).and_modify(|(times, _)| *times += 1).or_insert((1, task));
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
        let completions = task.attempts.iter().filter(|attempt| attempt.outcome == "completed");
        if times > 1 || completions.count() > 1 {
            self.twice += 1;
        }
        self.retries += u64::from(task.attempts_begun.saturating_sub(1));
        if task.state != TaskStateName::Done {
            self.unfinished += 1;
        } else if task.result().is_ok_and(|result| result == expected(number).as_bytes()) {
            self.right += 1;
        } else {
            self.wrong += 1;
        }
    }
}
