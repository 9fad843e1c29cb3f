//! What the driver is sent.

use std::sync::mpsc;

use bytes::Bytes;
use ikada_replica::Input;
use ikada_replica::call::{Answer, Call, CallId, Request, Routing};
use ikada_replica::status::{NodeStatus, RoleEvent};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// Something for the driver's loop.
pub enum DriverMessage {
    /// An input for the replica.
    Input(Input),
    /// A frame from a peer; the permit frees its bytes once the driver has taken it.
    Frame(u64, Bytes, OwnedSemaphorePermit),
    /// A call; its answer goes to the sender.
    Call {
        /// The caller's number, unique in this process.
        id: u64,
        /// What is asked.
        request: Request,
        /// How long the caller waits.
        timeout_ms: u64,
        /// What to do when another node leads.
        routing: Routing,
        /// Where the answer goes.
        reply: oneshot::Sender<Answer>,
    },
    /// Many calls of one caller; their answers go to the sender as they come, those of one turn together.
    Calls(Vec<Call>, AnswerSender),
    /// How the node stands.
    Status(oneshot::Sender<NodeStatus>),
    /// Role changes after a number.
    Events(u64, oneshot::Sender<Vec<RoleEvent>>),
    /// The loop shall end; its disk threads end with it.
    End,
}

/// Where the answers to many calls go.
pub type AnswerSender = tokio::sync::mpsc::UnboundedSender<Vec<(CallId, Answer)>>;

/// The driver's inbox. Unbounded: calls are bounded by the replica, frames by the transport's byte budget.
pub type DriverSender = mpsc::Sender<DriverMessage>;
