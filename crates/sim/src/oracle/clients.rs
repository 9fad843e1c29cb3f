//! What clients know: which tasks exist for certain, which requests are still open, which were denied.
//!
//! A request whose outcome is unknown stays open to the end of the run; only the final state settles it.

use std::collections::{BTreeMap, BTreeSet};

use ikada_state::{Command, Order, Reply, RequestKey, TaskId};

/// All clients together.
#[derive(Debug, Default)]
pub struct Clients {
    /// Every task that was ever submitted.
    pub submitted: Vec<TaskId>,
    /// Tasks whose submission was acknowledged.
    pub acked: BTreeSet<TaskId>,
    /// Requests whose outcome is not known.
    pub open: BTreeMap<RequestKey, Order>,
    /// Requests that were reported as not carried out and not sent again.
    pub denied: BTreeSet<RequestKey>,
    /// Requests that are committed.
    pub committed: BTreeSet<RequestKey>,
    /// Requests that were answered once; a later denial speaks only for itself.
    pub settled: BTreeSet<RequestKey>,
    /// Requests some sending of which has an unknown outcome: a later denial speaks only for itself.
    pub doubtful: BTreeSet<RequestKey>,
}

impl Clients {
    /// A request is sent, for the first time or again.
    pub fn sent(&mut self, order: &Order) {
        let Some(key) = &order.request else { return };
        self.denied.remove(key);
        if let Command::Enqueue(enqueue) = &order.command
            && !self.open.contains_key(key)
        {
            self.submitted.push(enqueue.id.clone());
        }
        self.open.insert(key.clone(), order.clone());
    }

    /// A reply came.
    pub fn told(&mut self, order: &Order, reply: &Reply) {
        if let (Command::Enqueue(_), Reply::Enqueued { id, .. }) = (&order.command, reply) {
            self.acked.insert(id.clone());
        }
        if let Some(key) = &order.request {
            self.open.remove(key);
            self.settled.insert(key.clone());
        }
    }

    /// The outcome of one sending will never be known.
    pub fn lost(&mut self, order: &Order) {
        if let Some(key) = &order.request {
            self.doubtful.insert(key.clone());
        }
    }

    /// The node said that nothing was done. False when that is known to be wrong.
    #[must_use]
    pub fn denied(&mut self, order: &Order) -> bool {
        let Some(key) = &order.request else {
            return true;
        };
        if self.doubtful.contains(key) || self.settled.contains(key) {
            return true;
        }
        self.denied.insert(key.clone());
        !self.committed.contains(key)
    }

    /// An order was committed. False when its client had been told that it was not carried out.
    #[must_use]
    pub fn committed(&mut self, order: &Order) -> bool {
        let Some(key) = &order.request else {
            return true;
        };
        self.committed.insert(key.clone());
        !self.denied.contains(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ikada_state::{Cancel, Namespace, RequestId};

    #[test]
    fn a_denial_binds_until_the_request_is_sent_again() {
        let order = Order {
            namespace: Namespace::default(),
            request: Some(RequestKey { id: RequestId::parse("r").unwrap(), item: 0 }),
            command: Command::Cancel(Cancel { id: TaskId::parse("t").unwrap() }),
        };
        let mut clients = Clients::default();
        clients.sent(&order);
        assert!(clients.denied(&order));
        assert!(!clients.committed(&order), "told that nothing was done");
        clients.sent(&order);
        assert!(clients.committed(&order));
        assert!(!clients.denied(&order), "committed already");
        clients.lost(&order);
        assert!(clients.denied(&order), "an earlier sending may have done it");
    }
}
