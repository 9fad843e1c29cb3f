//! Which nodes have idle workers for which queues.
//!
//! An interest is registered by a claim that found nothing and is used up by the first hint; so a busy queue costs no
//! hints at all, and a lost hint costs one retry interval at most.
//!
//! Plain tasks are foreseen: their submission is told to those who wait for it before it is committed, so that their
//! claims go into the log with it or right behind it, and not a whole commit later. Each foreseen task is good for one
//! claim at most. Whether the claim finds anything is decided when it is applied, as always: a task that turns out to be
//! there already costs one empty claim.

use std::collections::{BTreeMap, BTreeSet};

use ikada_consensus::NodeId;
use ikada_state::{Command, Namespace, Order, QueueName};

/// Most queues with waiting nodes, and most with foreseen tasks; further ones are found by the workers' retries, and are
/// served once their tasks are committed.
const QUEUES_MAX: usize = 65_536;

type Key = (Namespace, QueueName);

/// Interests at one shard's leader.
#[derive(Debug, Default)]
pub(crate) struct Interest {
    nodes: BTreeMap<Key, BTreeSet<NodeId>>,
    /// Plain tasks gathered in this turn for which somebody waits.
    coming: BTreeMap<Key, u64>,
    /// Tasks that were told of before they were committed, and that no claim has counted on yet; 0 once all are.
    foreseen: BTreeMap<Key, u64>,
}

impl Interest {
    pub fn clear(&mut self) {
        *self = Interest::default();
    }

    /// Counts the plain tasks among orders for which somebody waits: those that are ready as soon as they are there.
    pub fn foresee(&mut self, orders: &[Order]) {
        if self.nodes.is_empty() {
            return;
        }
        for order in orders {
            let Command::Enqueue(task) = &order.command else { continue };
            let is_plain =
                task.options.is_none() && task.delay_ms.is_none() && task.run_at_ms.is_none();
            let key = (order.namespace.clone(), task.queue.clone());
            let has_room = self.coming.len() + self.foreseen.len() < QUEUES_MAX;
            if is_plain && has_room && self.nodes.contains_key(&key) {
                *self.coming.entry(key).or_default() += 1;
            }
        }
    }

    /// The tasks counted in this turn, each list once; whoever claims may count on them now.
    pub fn take_coming(&mut self) -> BTreeMap<Key, u64> {
        let coming = std::mem::take(&mut self.coming);
        for (key, tasks) in &coming {
            *self.foreseen.entry(key.clone()).or_default() += tasks;
        }
        coming
    }

    /// Whether a claim may count on foreseen tasks; they are used up by it.
    pub fn spend(&mut self, namespace: &Namespace, queues: &[QueueName], tasks_max: u64) -> bool {
        if self.foreseen.is_empty() {
            return false;
        }
        let mut left = tasks_max;
        for queue in queues {
            let key = (namespace.clone(), queue.clone());
            if let Some(tasks) = self.foreseen.get_mut(&key) {
                let used = left.min(*tasks);
                (*tasks, left) = (*tasks - used, left - used);
            }
        }
        left < tasks_max
    }

    /// Nothing is on its way into the log any more: what was foreseen has come, or never will.
    pub fn all_came(&mut self) {
        self.foreseen.clear();
    }

    /// Work is ready: nobody needs foresight any more. True if somebody was told of it beforehand.
    pub fn forget_foreseen(&mut self, namespace: &Namespace, queue: &QueueName) -> bool {
        !self.foreseen.is_empty()
            && self.foreseen.remove(&(namespace.clone(), queue.clone())).is_some()
    }

    /// Whether somebody waits for this queue.
    pub fn has(&self, namespace: &Namespace, queue: &QueueName) -> bool {
        !self.nodes.is_empty() && self.nodes.contains_key(&(namespace.clone(), queue.clone()))
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

#[cfg(test)]
mod tests {
    use ikada_state::{Enqueue, TaskId};

    use super::*;

    fn queue(name: &str) -> QueueName {
        QueueName::parse(name).expect("a name")
    }

    fn submit(name: &str) -> Order {
        let id = TaskId::parse("t").expect("an id");
        let command = Command::Enqueue(Enqueue::new(id, queue(name), Vec::new()));
        Order { namespace: Namespace::default(), request: None, command }
    }

    #[test]
    fn a_foreseen_task_is_good_for_one_claim() {
        let (mut interest, namespace) = (Interest::default(), Namespace::default());
        interest.foresee(&[submit("q")]);
        assert!(interest.take_coming().is_empty(), "nobody waits");
        interest.register(&namespace, &[queue("q")], 2);
        let mut later = submit("q");
        if let Command::Enqueue(task) = &mut later.command {
            task.delay_ms = Some(1);
        }
        interest.foresee(&[submit("q"), later, submit("other"), submit("q")]);
        let coming = interest.take_coming();
        assert_eq!(coming.into_values().collect::<Vec<_>>(), [2]);
        assert!(!interest.spend(&namespace, &[queue("other")], 9));
        assert!(interest.spend(&namespace, &[queue("q")], 1));
        assert!(interest.spend(&namespace, &[queue("q")], 9));
        assert!(!interest.spend(&namespace, &[queue("q")], 1), "both are used up");
        assert!(interest.forget_foreseen(&namespace, &queue("q")), "somebody was told");
        assert!(!interest.forget_foreseen(&namespace, &queue("q")));
    }

    #[test]
    fn foresight_is_bounded_and_ends_with_what_was_under_way() {
        let (mut interest, namespace) = (Interest::default(), Namespace::default());
        for number in 0..QUEUES_MAX + 10 {
            let name = format!("q{number}");
            interest.register(&namespace, &[queue(&name)], 2);
            interest.foresee(&[submit(&name)]);
            interest.take(&namespace, &queue(&name));
            interest.take_coming();
        }
        assert_eq!(interest.foreseen.len(), QUEUES_MAX);
        interest.all_came();
        assert!(!interest.spend(&namespace, &[queue("q1")], 1));
    }
}
