//! Queues: show, change, pause, resume.

use std::time::Duration;

use hyper::Method;

use super::send::Ask;
use super::url::{escape, unique_key};
use super::{Client, Error};
use crate::v1::{QueueInfo, QueuePage, QueueSettingsBody};

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
        let ask = Ask {
            method: Method::POST,
            path: format!("/v1/queues/{}/{verb}", escape(name)),
            body: None,
            key: Some(unique_key()),
            hold: Duration::ZERO,
        };
        self.ask(&ask).await
    }
}
