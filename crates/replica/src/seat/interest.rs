//! Which nodes have idle workers for which queues.
//!
//! An interest is registered by a claim that found nothing and is used up by the first hint; so a busy queue costs no
//! hints at all, and a lost hint costs one retry interval at most.

use std::collections::{BTreeMap, BTreeSet};

use ikada_consensus::NodeId;
use ikada_state::{Namespace, QueueName};

/// Most queues with waiting nodes; further ones are found by the workers' retries.
const QUEUES_MAX: usize = 65_536;

/// Interests at one shard's leader.
#[derive(Debug, Default)]
pub(crate) struct Interest {
    nodes: BTreeMap<(Namespace, QueueName), BTreeSet<NodeId>>,
}

impl Interest {
    pub fn clear(&mut self) {
        self.nodes.clear();
    }

    pub fn register(&mut self, namespace: &Namespace, queues: &[QueueName], node: NodeId) {
        for queue in queues {
            let key = (namespace.clone(), queue.clone());
            if self.nodes.len() < QUEUES_MAX || self.nodes.contains_key(&key) {
                self.nodes.entry(key).or_default().insert(node);
            }
        }
    }

    /// The nodes waiting for this queue; they are forgotten.
    pub fn take(&mut self, namespace: &Namespace, queue: &QueueName) -> BTreeSet<NodeId> {
        if self.nodes.is_empty() {
            return BTreeSet::new();
        }
        self.nodes.remove(&(namespace.clone(), queue.clone())).unwrap_or_default()
    }
}
