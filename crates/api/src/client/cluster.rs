//! The cluster: status, a node's word about itself, role changes, transfer.

use hyper::Method;

use super::send::Ask;
use super::url::{unique_key, with_query};
use super::{Client, Error};
use crate::v1::{
    AddNode, ChangeView, ClusterView, EventPage, GrowAnswer, GrowRequest, NodeSelf, SteerNode,
    TransferRequest, TransferResult, TuneElections,
};

impl Client {
    /// The cluster as the answering node sees it.
    pub async fn cluster(&self) -> Result<ClusterView, Error> {
        self.ask(&Ask::get("/v1/cluster".to_owned())).await
    }

    /// The answering node's word about itself.
    pub async fn node(&self) -> Result<NodeSelf, Error> {
        self.ask(&Ask::get("/v1/nodes/self".to_owned())).await
    }

    /// Role changes of the answering node with a sequence above `after`.
    pub async fn events(&self, after: u64) -> Result<EventPage, Error> {
        let path = with_query("/v1/cluster/events", &[("after", after.to_string())]);
        self.ask(&Ask::get(path)).await
    }

    /// Raises the number of shards; the cluster's status shows how far it is.
    pub async fn grow(&self, request: &GrowRequest) -> Result<GrowAnswer, Error> {
        let path = "/v1/cluster/growth".to_owned();
        self.ask(&Ask::json(Method::POST, path, request, Some(unique_key()))?).await
    }

    /// Moves leadership. Safe to repeat: a transfer to the node that leads already changes nothing.
    pub async fn transfer(&self, request: &TransferRequest) -> Result<TransferResult, Error> {
        let path = "/v1/cluster/transfer".to_owned();
        self.ask(&Ask::json(Method::POST, path, request, None)?).await
    }

    /// Adds a node that waits to join. Safe to repeat: a change that is under way or done is answered as such.
    pub async fn add_node(&self, request: &AddNode) -> Result<ChangeView, Error> {
        let path = "/v1/cluster/nodes".to_owned();
        self.ask(&Ask::json(Method::POST, path, request, None)?).await
    }

    /// Removes a member for good. Safe to repeat.
    pub async fn remove_node(&self, node: u64) -> Result<ChangeView, Error> {
        self.ask(&Ask::act(Method::DELETE, format!("/v1/cluster/nodes/{node}"), None)).await
    }

    /// Steers leadership towards or away from a member; gives the cluster as it is then.
    pub async fn steer_node(&self, node: u64, request: &SteerNode) -> Result<ClusterView, Error> {
        let path = format!("/v1/cluster/nodes/{node}");
        self.ask(&Ask::json(Method::PUT, path, request, None)?).await
    }

    /// Changes how long silence lasts before an election; gives the cluster as it is then.
    pub async fn tune_elections(&self, request: &TuneElections) -> Result<ClusterView, Error> {
        let path = "/v1/cluster/elections".to_owned();
        self.ask(&Ask::json(Method::PUT, path, request, None)?).await
    }
}
