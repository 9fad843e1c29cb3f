//! The way into a running node for everything that is not the driver itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use ikada_replica::Input;
use ikada_replica::call::{Answer, Call, CallId, Request, Routing, Unavailable};
use ikada_replica::state::{LEVEL, RequestId};
use ikada_replica::status::{NodeStatus, RoleEvent};
use tokio::sync::oneshot;

use crate::autoscale::{History, Scaled};
use crate::counters::SharedCounters;
use crate::driver::{AnswerSender, DriverMessage, DriverSender};
use crate::http::{Door, NodeInfo};
use crate::metrics::Counters;
use crate::objects::Shelf;
use crate::peers::{Directory, meet};
use crate::tls::Tls;
use ikada_replica::founding::{Candidate, FoundingMessage};

struct Shared {
    info: NodeInfo,
    directory: Directory,
    tls: Option<Tls>,
    driver: DriverSender,
    counters: SharedCounters,
    shelf: Shelf,
    calls: AtomicU64,
    requests: AtomicU64,
    scaling: History,
}

/// A cloneable handle on a node.
#[derive(Clone)]
pub struct Handle(Arc<Shared>);

/// Tells the driver when a caller goes away before its answer came.
struct Waiting<'a> {
    driver: &'a DriverSender,
    call: CallId,
    answered: bool,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if !self.answered {
            let _ = self.driver.send(DriverMessage::Input(Input::CallGone(self.call)));
        }
    }
}

impl Handle {
    pub(crate) fn new(
        info: NodeInfo,
        directory: Directory,
        tls: Option<Tls>,
        driver: DriverSender,
        counters: SharedCounters,
        shelf: Shelf,
    ) -> Self {
        // Request ids of two runs of one node never meet: the run's random start is part of them.
        let requests = AtomicU64::new(fastrand::u64(..1 << 48));
        let calls = AtomicU64::new(1);
        let shared = Shared {
            info,
            directory,
            tls,
            driver,
            counters,
            shelf,
            calls,
            requests,
            scaling: History::default(),
        };
        Handle(Arc::new(shared))
    }

    /// Where the autoscaler writes its decisions down.
    pub(crate) fn scaling_history(&self) -> History {
        self.0.scaling.clone()
    }

    /// Begins a graceful stop.
    pub fn stop(&self) {
        let _ = self.0.driver.send(DriverMessage::Input(Input::Stop));
    }

    /// Ends the driver's loop for good.
    pub(crate) fn end(&self) {
        let _ = self.0.driver.send(DriverMessage::End);
    }
}

impl Door for Handle {
    fn scaling(&self) -> Vec<Scaled> {
        self.0.scaling.all()
    }

    async fn call(&self, request: Request, timeout: Duration, routing: Routing) -> Answer {
        let id = self.0.calls.fetch_add(1, Relaxed);
        self.0.counters.call();
        let (reply, answer) = oneshot::channel();
        let timeout_ms = timeout.as_millis() as u64;
        let message = DriverMessage::Call { id, request, timeout_ms, routing, reply };
        if self.0.driver.send(message).is_err() {
            return Answer::Unavailable(Unavailable::Stopping);
        }
        let mut waiting = Waiting { driver: &self.0.driver, call: id, answered: false };
        let answer = answer.await;
        waiting.answered = true;
        answer.unwrap_or(Answer::Unavailable(Unavailable::Stopping))
    }

    fn has_one_log(&self) -> bool {
        self.0.counters.one_log()
    }

    fn next_call(&self) -> CallId {
        self.0.calls.fetch_add(1, Relaxed)
    }

    fn call_many(&self, calls: Vec<Call>, answers: AnswerSender) {
        calls.iter().for_each(|_| self.0.counters.call());
        if let Err(unsent) = self.0.driver.send(DriverMessage::Calls(calls, answers))
            && let DriverMessage::Calls(calls, answers) = unsent.0
        {
            let stopping = || Answer::Unavailable(Unavailable::Stopping);
            let _ = answers.send(calls.iter().map(|call| (call.id, stopping())).collect());
        }
    }

    fn forget(&self, call: CallId) {
        let _ = self.0.driver.send(DriverMessage::Input(Input::CallGone(call)));
    }

    async fn status(&self) -> NodeStatus {
        let (reply, answer) = oneshot::channel();
        let _ = self.0.driver.send(DriverMessage::Status(reply));
        answer.await.unwrap_or_else(|_| NodeStatus {
            node: self.0.info.node,
            cluster: self.0.info.cluster,
            shards: Vec::new(),
            growth: None,
            shard_count: 0,
            peers: Vec::new(),
            members: Vec::new(),
            roster: None,
            level: 0,
            own_level: LEVEL,
            elections_ms: None,
            database: None,
            clock_offset_ms: 0,
            calls_waiting: 0,
            claims_parked: 0,
            stopping: true,
        })
    }

    async fn events(&self, after_sequence: u64) -> Vec<RoleEvent> {
        let (reply, answer) = oneshot::channel();
        let _ = self.0.driver.send(DriverMessage::Events(after_sequence, reply));
        answer.await.unwrap_or_default()
    }

    fn info(&self) -> &NodeInfo {
        &self.0.info
    }

    fn address_of(&self, node: u64) -> Option<String> {
        self.0.directory.client_addr(node)
    }

    async fn meet(&self, peer_addr: &str) -> Option<FoundingMessage> {
        let info = &self.0.info;
        let (peer, client) = (info.peer_addr.clone(), info.client_addr.clone());
        let me =
            Candidate { node: info.node, incarnation: 0, peer_addr: peer, client_addr: client };
        meet(peer_addr, self.0.tls.as_ref(), FoundingMessage::Join(me)).await
    }

    fn shelf(&self) -> &Shelf {
        &self.0.shelf
    }

    fn counters(&self) -> Counters {
        self.0.counters.read()
    }

    fn fresh_request_id(&self) -> RequestId {
        let count = self.0.requests.fetch_add(1, Relaxed);
        let text = format!("n{:x}-{count:x}", self.0.info.node);
        RequestId::parse(&text).unwrap_or_else(|_| unreachable!("hexadecimal digits are allowed"))
    }
}
