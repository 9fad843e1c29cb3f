//! Workers: beat, look, drain, remove.

use hyper::Method;

use super::send::Ask;
use super::url::{escape, unique_key};
use super::{Client, Error};
use crate::v1::{ScalingPage, WorkerBeat, WorkerChanged, WorkerInfo, WorkerOrders, WorkerPage};

impl Client {
    /// Says that a worker lives and who it is; tells what is wanted of it.
    pub async fn beat(&self, id: &str, beat: &WorkerBeat) -> Result<WorkerOrders, Error> {
        self.ask(&Ask::json(Method::PUT, worker_path(id), beat, None)?).await
    }

    /// All workers of the namespace.
    pub async fn workers(&self) -> Result<WorkerPage, Error> {
        self.ask(&Ask::get("/v1/workers".to_owned())).await
    }

    /// What the autoscaler did lately, whichever node led then.
    pub async fn scaling(&self) -> Result<ScalingPage, Error> {
        self.ask(&Ask::get("/v1/cluster/autoscale".to_owned())).await
    }

    /// One worker.
    pub async fn worker(&self, id: &str) -> Result<WorkerInfo, Error> {
        self.ask(&Ask::get(worker_path(id))).await
    }

    /// Lets a worker finish what it has and leave.
    pub async fn drain_worker(&self, id: &str) -> Result<WorkerChanged, Error> {
        let path = format!("{}/drain", worker_path(id));
        self.ask(&Ask::act(Method::POST, path, Some(unique_key()))).await
    }

    /// Ends a worker's session; its tasks are reopened.
    pub async fn remove_worker(&self, id: &str) -> Result<WorkerChanged, Error> {
        self.ask(&Ask::act(Method::DELETE, worker_path(id), Some(unique_key()))).await
    }
}

fn worker_path(id: &str) -> String {
    format!("/v1/workers/{}", escape(id))
}
