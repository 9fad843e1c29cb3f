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
    /// Keys in the order in which they came.
    order: VecDeque<Key>,
}

impl Granted {
    /// A claim goes into the log.
    pub fn asked(&mut self, namespace: &Namespace, request: &RequestKey, asker: Asker) {
        let key = (namespace.clone(), request.clone());
        match self.by_key.get_mut(&key) {
            Some((first, again)) => *again |= *first != asker,
            None => {
                self.by_key.insert(key.clone(), (asker, false));
                self.order.push_back(key.clone());
            }
        }
        self.by_asker.insert(asker, key);
        if self.order.len() > CLAIMS_MAX
            && let Some(old) = self.order.pop_front()
        {
            self.by_key.remove(&old);
        }
        // Not told of yet, or for nothing; numbers of calls only rise, so that the first are the oldest of their node.
        if self.by_asker.len() > CLAIMS_MAX {
            self.by_asker.pop_first();
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
