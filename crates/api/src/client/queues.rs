//! Queues: show, change, pause, resume, and jobs on all tasks of one.

use std::time::Duration;

use hyper::Method;
use tokio::time::Instant;

use super::send::{Ask, read_json};
use super::url::{escape, unique_key, with_query};
use super::{Client, Error};
use crate::v1::{QueueInfo, QueuePage, QueueSettingsBody, SweepAnswer};

/// With less time left than this, a job on many tasks is not sent again.
const LAST_TRY: Duration = Duration::from_millis(500);

impl Client {
    /// All queues of the namespace.
    pub async fn queues(&self) -> Result<QueuePage, Error> {
        self.ask(&Ask::get("/v1/queues".to_owned())).await
    }

    /// One queue, summed over all shards.
    pub async fn queue(&self, name: &str) -> Result<QueueInfo, Error> {
        self.ask(&Ask::get(format!("/v1/queues/{}", escape(name)))).await
    }

    /// Changes settings, and shows the queue as it then is.
    pub async fn set_queue(
        &self,
        name: &str,
        settings: &QueueSettingsBody,
    ) -> Result<QueueInfo, Error> {
        let path = format!("/v1/queues/{}", escape(name));
        self.ask(&Ask::json(Method::PUT, path, settings, Some(unique_key()))?).await
    }

    /// Holds the queue's tasks back.
    pub async fn pause_queue(&self, name: &str) -> Result<QueueInfo, Error> {
        self.switch_queue(name, "pause").await
    }

    /// Hands the queue's tasks out again.
    pub async fn resume_queue(&self, name: &str) -> Result<QueueInfo, Error> {
        self.switch_queue(name, "resume").await
    }

    async fn switch_queue(&self, name: &str, verb: &str) -> Result<QueueInfo, Error> {
        let path = format!("/v1/queues/{}/{verb}", escape(name));
        self.ask(&Ask::act(Method::POST, path, Some(unique_key()))).await
    }

    /// Gives all dead tasks of a queue fresh attempts.
    pub async fn retry_dead(&self, queue: &str) -> Result<SweepAnswer, Error> {
        self.sweep(queue, "retry", &[]).await
    }

    /// Removes all dead tasks of a queue; with `finished` also those done and cancelled.
    pub async fn drop_dead(&self, queue: &str, finished: bool) -> Result<SweepAnswer, Error> {
        self.sweep(queue, "drop", &[("finished", finished.to_string())]).await
    }

    /// Cancels all tasks of a queue that wait; with `claimed` also those that workers hold.
    pub async fn purge_queue(&self, queue: &str, claimed: bool) -> Result<SweepAnswer, Error> {
        self.sweep(queue, "purge", &[("claimed", claimed.to_string())]).await
    }

    /// Sends until every shard is done or the time is over; each resend goes on where the one before ended.
    async fn sweep(
        &self,
        queue: &str,
        verb: &str,
        pairs: &[(&str, String)],
    ) -> Result<SweepAnswer, Error> {
        let path = with_query(&format!("/v1/queues/{}/{verb}", escape(queue)), pairs);
        let ask = Ask::act(Method::POST, path, Some(unique_key()));
        let deadline = self.deadline(&ask);
        loop {
            let answer: SweepAnswer = read_json(&self.send(&ask, deadline).await?.body)?;
            if answer.complete || Instant::now() + LAST_TRY >= deadline {
                return Ok(answer);
            }
        }
    }
}
