//! What the HTTP side needs of a node. The node's handle implements it; tests use a fake.

use std::future::Future;
use std::time::Duration;

use ikada_api::state::RequestId;
use ikada_replica::call::{Answer, Call, CallId, Request, Routing};
use ikada_replica::founding::FoundingMessage;
use ikada_replica::status::{NodeStatus, RoleEvent};

use crate::autoscale::Scaled;
use crate::driver::AnswerSender;
use crate::metrics::Counters;
use crate::objects::Shelf;

/// A node's fixed facts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeInfo {
    /// Its id.
    pub node: u64,
    /// Its name.
    pub name: String,
    /// The cluster's id.
    pub cluster: u64,
    /// Where clients reach it, `host:port` as advertised.
    pub client_addr: String,
    /// Where peers reach it, `host:port` as advertised.
    pub peer_addr: String,
    /// The program's version.
    pub version: String,
    /// When the process started, ms since 1970.
    pub started_wall_ms: u64,
    /// Whether it sends traces.
    pub traced: bool,
}

/// A way into the node.
pub trait Door: Clone + Send + Sync + 'static {
    /// Carries out one call. Always answers, at the latest shortly after the timeout.
    fn call(
        &self,
        request: Request,
        timeout: Duration,
        routing: Routing,
    ) -> impl Future<Output = Answer> + Send;

    /// Whether what is handed over first also comes first in the log: there is only one. False where that is not known.
    fn has_one_log(&self) -> bool {
        false
    }

    /// A number for a call of `call_many`, unique in this process.
    fn next_call(&self) -> CallId;

    /// Carries out many calls. Each is answered once through the sender, at the latest shortly after its time is over,
    /// unless the node stops.
    fn call_many(&self, calls: Vec<Call>, answers: AnswerSender);

    /// The caller of one of many has gone.
    fn forget(&self, call: CallId);

    /// How the node stands.
    fn status(&self) -> impl Future<Output = NodeStatus> + Send;

    /// Role changes with a sequence above the given one, oldest first.
    fn events(&self, after_sequence: u64) -> impl Future<Output = Vec<RoleEvent>> + Send;

    /// What the autoscaler of this node did lately.
    fn scaling(&self) -> Vec<Scaled> {
        Vec::new()
    }

    /// The node's fixed facts.
    fn info(&self) -> &NodeInfo;

    /// Where clients reach a member, `host:port`; none if it is not known.
    fn address_of(&self, node: u64) -> Option<String>;

    /// Asks the node at a peer address who it is; none if nobody answers there.
    fn meet(&self, peer_addr: &str) -> impl Future<Output = Option<FoundingMessage>> + Send;

    /// The bytes of objects.
    fn shelf(&self) -> &Shelf;

    /// Numbers for the metrics.
    fn counters(&self) -> Counters;

    /// A request id that nobody else draws.
    fn fresh_request_id(&self) -> RequestId;
}
