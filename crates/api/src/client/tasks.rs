//! Submitting, showing, listing and cancelling tasks.

use std::time::Duration;

use hyper::Method;
use tokio::time::Instant;

use super::send::{Ask, read_answer, read_json};
use super::url::{escape, unique_key, with_query};
use super::{Client, Error};
use crate::v1::{
    EnqueueAnswer, EnqueueBatch, ItemOutcome, LSN_HEADER, NewTask, RequestInfo, Task,
    TaskExplanation, TaskPage, TaskStateName,
};

/// Pause before unsettled items are sent again; the request as a whole was answered, so one leader is missing.
const RESEND_PAUSE: Duration = Duration::from_millis(50);

/// How fresh a read must be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Consistency {
    /// Includes every write acknowledged before the read began.
    #[default]
    Linearizable,
    /// Whatever the asked node has.
    Stale,
    /// At least as new as this position list (`Ikada-Lsn` of an earlier write).
    AtLeast(String),
}

impl Consistency {
    pub(crate) fn pairs(&self) -> Vec<(&'static str, String)> {
        match self {
            Consistency::Linearizable => Vec::new(),
            Consistency::Stale => vec![("consistency", "stale".to_owned())],
            Consistency::AtLeast(positions) => vec![("min_lsn", positions.clone())],
        }
    }
}

/// Which tasks to list.
#[derive(Debug, Clone, Default)]
pub struct TaskQuery {
    /// Only this queue.
    pub queue: Option<String>,
    /// Only this state.
    pub state: Option<TaskStateName>,
    /// Only those whose newest attempt is this worker's.
    pub worker: Option<String>,
    /// Only those with this text in their ids.
    pub find: Option<String>,
    /// Continue where the page before ended: its `next`.
    pub after: Option<String>,
    /// Without payloads and results.
    pub brief: bool,
    /// Most tasks; the server's default when absent.
    pub limit: Option<u32>,
    /// How fresh.
    pub consistency: Consistency,
}

impl Client {
    /// Submits tasks under a fresh request id.
    pub async fn enqueue(&self, tasks: Vec<NewTask>) -> Result<EnqueueAnswer, Error> {
        self.enqueue_as(&unique_key(), tasks).await
    }

    /// Submits tasks under a request id of the caller's: the way to resend safely after a restart.
    pub async fn enqueue_as(&self, key: &str, tasks: Vec<NewTask>) -> Result<EnqueueAnswer, Error> {
        let tasks = tasks.into_iter().map(NewTask::with_raw_payload).collect();
        let ask = submission(key, &EnqueueBatch { tasks })?;
        self.settle(&ask, |answer: &EnqueueAnswer| &answer.tasks).await
    }

    /// Sends a list under its key until it is answered; items that are not settled are left to the caller.
    pub(crate) async fn enqueue_once(
        &self,
        key: &str,
        body: &EnqueueBatch,
    ) -> Result<EnqueueAnswer, Error> {
        self.ask(&submission(key, body)?).await
    }

    /// Like [`Client::enqueue_as`], also returning the positions written (for `Consistency::AtLeast`).
    pub async fn enqueue_with_positions(
        &self,
        key: &str,
        tasks: Vec<NewTask>,
    ) -> Result<(EnqueueAnswer, Option<String>), Error> {
        let body = EnqueueBatch { tasks };
        let ask = Ask::json(Method::POST, "/v1/tasks".into(), &body, Some(key.to_owned()))?;
        let answer = self.send(&ask, self.deadline(&ask)).await?;
        let positions =
            answer.headers.get(LSN_HEADER).and_then(|value| value.to_str().ok()).map(str::to_owned);
        Ok((read_json(&answer.body)?, positions))
    }

    /// Sends again, under the same key, while items are unsettled and time is left. Items that were settled the first
    /// time give the same outcome again, so the whole list is resent.
    pub(crate) async fn settle<T: serde::de::DeserializeOwned>(
        &self,
        ask: &Ask,
        items: impl Fn(&T) -> &Vec<ItemOutcome>,
    ) -> Result<T, Error> {
        let deadline = self.deadline(ask);
        loop {
            let answer: T = read_answer(&self.send(ask, deadline).await?)?;
            let settled = items(&answer).iter().all(|item| item.outcome.is_settled());
            if settled || Instant::now() + RESEND_PAUSE * 2 >= deadline {
                return Ok(answer);
            }
            tokio::time::sleep(RESEND_PAUSE).await;
        }
    }

    /// One task, with every write acknowledged so far.
    pub async fn task(&self, id: &str) -> Result<Task, Error> {
        self.task_at(id, &Consistency::Linearizable).await
    }

    /// One task, as fresh as asked for.
    pub async fn task_at(&self, id: &str, consistency: &Consistency) -> Result<Task, Error> {
        let path = format!("/v1/tasks/{}", escape(id));
        self.ask(&Ask::get(with_query(&path, &consistency.pairs()))).await
    }

    /// A page of tasks, in no particular order. Tasks that change meanwhile may be missed or met twice.
    pub async fn tasks(&self, query: &TaskQuery) -> Result<TaskPage, Error> {
        let mut pairs = query.consistency.pairs();
        if let Some(queue) = &query.queue {
            pairs.push(("queue", queue.clone()));
        }
        if let Some(state) = query.state {
            pairs.push(("state", state.as_str().to_owned()));
        }
        if let Some(worker) = &query.worker {
            pairs.push(("worker", worker.clone()));
        }
        if let Some(find) = &query.find {
            pairs.push(("find", find.clone()));
        }
        if query.brief {
            pairs.push(("brief", "true".to_owned()));
        }
        if let Some(after) = &query.after {
            pairs.push(("after", after.clone()));
        }
        if let Some(limit) = query.limit {
            pairs.push(("limit", limit.to_string()));
        }
        self.ask(&Ask::get(with_query("/v1/tasks", &pairs))).await
    }

    /// Cancels a task.
    pub async fn cancel(&self, id: &str) -> Result<ItemOutcome, Error> {
        let path = format!("/v1/tasks/{}/cancel", escape(id));
        self.ask(&Ask::act(Method::POST, path, Some(unique_key()))).await
    }

    /// Gives a dead or cancelled task fresh attempts.
    pub async fn retry(&self, id: &str) -> Result<ItemOutcome, Error> {
        let path = format!("/v1/tasks/{}/retry", escape(id));
        self.ask(&Ask::act(Method::POST, path, Some(unique_key()))).await
    }

    /// Why a task is not running.
    pub async fn explain(&self, id: &str) -> Result<TaskExplanation, Error> {
        self.ask(&Ask::get(format!("/v1/tasks/{}/explain", escape(id)))).await
    }

    /// Removes a finished task.
    pub async fn drop_task(&self, id: &str) -> Result<ItemOutcome, Error> {
        let path = format!("/v1/tasks/{}", escape(id));
        self.ask(&Ask::act(Method::DELETE, path, Some(unique_key()))).await
    }

    /// What became of one item of a request.
    pub async fn request(&self, key: &str, item: u32) -> Result<RequestInfo, Error> {
        let path = format!("/v1/requests/{}", escape(key));
        self.ask(&Ask::get(with_query(&path, &[("item", item.to_string())]))).await
    }

    /// Rules a request out: what is not committed of it never will be. Tells what became of one item.
    pub async fn void_request(&self, key: &str, item: u32) -> Result<RequestInfo, Error> {
        let path = format!("/v1/requests/{}/void", escape(key));
        let path = with_query(&path, &[("item", item.to_string())]);
        self.ask(&Ask::act(Method::POST, path, None)).await
    }
}

/// A submission. Programs are looked up first; pipes wait for nothing but the log.
fn submission(key: &str, body: &EnqueueBatch) -> Result<Ask, Error> {
    let mut ask = Ask::hot("/v1/tasks", body, Some(key.to_owned()))?;
    ask.piped = body.tasks.iter().all(|task| task.program.is_none() && task.then.is_empty());
    Ok(ask)
}
