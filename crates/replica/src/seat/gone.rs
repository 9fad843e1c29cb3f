//! Sessions of removed workers, as this shard's leader learned of them, so that a claim which was under way or parked when
//! its worker was removed gets nothing (B4-19): the node that asks may hear of the removal only later.
//!
//! Promise: bounded, the newest are known; empty on nodes that do not lead. Left out: for ever. Once every node knows the
//! removal from shard 0, claims are refused where they are made.

use std::collections::{BTreeSet, VecDeque};

use ikada_state::{Namespace, SessionId, WorkerId};

/// So many sessions are remembered, the newest.
const GONE_MAX: usize = 1_024;

type Key = (Namespace, WorkerId, SessionId);

#[derive(Debug, Default)]
pub(crate) struct Gone {
    known: BTreeSet<Key>,
    /// In the order in which they went.
    order: VecDeque<Key>,
}

impl Gone {
    /// A session is over.
    pub fn note(&mut self, key: Key) {
        if self.known.insert(key.clone()) {
            self.order.push_back(key);
        }
        if self.order.len() > GONE_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }

    /// Whether this session is known to be over.
    pub fn has(&self, namespace: &Namespace, worker: &WorkerId, session: SessionId) -> bool {
        self.has_any() && self.known.contains(&(namespace.clone(), worker.clone(), session))
    }

    /// Whether any is known, which is seldom so.
    pub fn has_any(&self) -> bool {
        !self.known.is_empty()
    }

    /// Forgets everything (this node does not lead).
    pub fn clear(&mut self) {
        *self = Gone::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b4_19_the_oldest_are_forgotten_first() {
        let (namespace, worker) = (Namespace::default(), WorkerId::parse("w").expect("id"));
        let mut gone = Gone::default();
        for session in (0..=GONE_MAX as u64).chain([7, 7]) {
            gone.note((namespace.clone(), worker.clone(), SessionId(session)));
        }
        assert!(!gone.has(&namespace, &worker, SessionId(0)), "the oldest");
        assert!(gone.has(&namespace, &worker, SessionId(1)), "told of again, the others stay");
        assert!(gone.has(&namespace, &worker, SessionId(GONE_MAX as u64)), "the newest");
        assert!(gone.order.len() <= GONE_MAX && gone.known.len() <= GONE_MAX);
    }
}
