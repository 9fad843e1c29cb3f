//! Which calls asked this leader for a claim and were told of a grant, so that it knows which grants may be given back.
//!
//! A node gives a grant back when its caller has gone. That caller may have sent the same claim again through another
//! call, which is told of the same grant: then its worker has the tasks, and confirms them only with its first renewal.
//!
//! Promise: a grant may be given back only if one call asked this leader for it. What it does not know, such as the
//! grants of leaders before it, stays with its worker until a roll call or the ttl ends it. Bounded; empty on nodes that
//! do not lead.

use std::collections::{BTreeMap, VecDeque};

use ikada_state::{Fence, Grant, Namespace, RequestKey};

use super::Asker;

/// So many claims are remembered, the newest.
const CLAIMS_MAX: usize = 4_096;

type Key = (Namespace, RequestKey);

#[derive(Debug, Default)]
pub(crate) struct Granted {
    /// Who asked first under a key, and whether somebody else did too.
    by_key: BTreeMap<Key, (Asker, bool)>,
    /// Claims that were asked for and not yet told of.
    by_asker: BTreeMap<Asker, Key>,
    /// The fences of a grant lie side by side: by the first of them, the last and the key.
    by_first: BTreeMap<u64, (u64, Key)>,
    /// Claims in the order in which they were asked for.
    order: VecDeque<(Key, Asker)>,
}

impl Granted {
    /// A claim goes into the log.
    pub fn asked(&mut self, namespace: &Namespace, request: &RequestKey, asker: Asker) {
        let key = (namespace.clone(), request.clone());
        match self.by_key.get_mut(&key) {
            Some((first, again)) => *again |= *first != asker,
            None => drop(self.by_key.insert(key.clone(), (asker, false))),
        }
        self.order.push_back((key.clone(), asker));
        self.by_asker.insert(asker, key);
        if self.order.len() > CLAIMS_MAX
            && let Some((old, asker)) = self.order.pop_front()
        {
            // Not told of yet, or for nothing.
            if self.by_asker.get(&asker) == Some(&old) {
                self.by_asker.remove(&asker);
            }
            self.by_key.remove(&old);
        }
    }

    /// A caller is told of these tasks.
    pub fn told(&mut self, tasks: &[Grant], asker: Asker) {
        let Some(key) = self.by_asker.remove(&asker) else {
            return;
        };
        if let (Some(first), Some(last)) = (tasks.first(), tasks.last()) {
            self.by_first.insert(first.fence.0, (last.fence.0, key));
        }
        if self.by_first.len() > CLAIMS_MAX {
            self.by_first.pop_first();
        }
    }

    /// Whether one call asked for this claim, and no other.
    pub fn may_be_given_back(&self, fence: Fence) -> bool {
        let Some((_, (last, key))) = self.by_first.range(..=fence.0).next_back() else {
            return false;
        };
        let asked = self.by_key.get(key);
        fence.0 <= *last && asked.is_some_and(|(_, again)| !*again)
    }

    /// Forgets everything (this node does not lead).
    pub fn clear(&mut self) {
        *self = Granted::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ikada_state::{QueueName, RequestId, TaskId};

    fn key(name: &str) -> RequestKey {
        RequestKey { id: RequestId::parse(name).expect("id"), item: 0 }
    }

    fn grant(fence: u64) -> Grant {
        Grant {
            id: TaskId::parse("t").expect("id"),
            queue: QueueName::parse("q").expect("queue"),
            fence: Fence(fence),
            attempt: 1,
            max_attempts: 5,
            ttl_ms: 30_000,
            payload: Vec::new().into(),
            timeout_ms: 0,
            work: None,
            checkpoint: None,
        }
    }

    /// However many claims were never told of, and wherever they came from: the newest are remembered.
    #[test]
    fn the_oldest_are_forgotten_first() {
        let namespace = Namespace::default();
        let mut granted = Granted::default();
        granted.asked(&namespace, &key("first"), Asker::Local(1));
        for number in 0..CLAIMS_MAX as u64 {
            granted.asked(&namespace, &key(&format!("k{number}")), Asker::Remote(2, number));
        }
        granted.asked(&namespace, &key("last"), Asker::Local(2));
        granted.told(&[grant(7)], Asker::Local(2));
        assert!(granted.may_be_given_back(Fence(7)), "the newest is known");
        granted.told(&[grant(9)], Asker::Local(1));
        assert!(!granted.may_be_given_back(Fence(9)), "the oldest is not");
        for number in 0..3 * CLAIMS_MAX as u64 {
            granted.asked(&namespace, &key("same"), Asker::Remote(3, number));
        }
        assert!(granted.by_asker.len() <= CLAIMS_MAX && granted.by_key.len() <= CLAIMS_MAX);
    }
}
