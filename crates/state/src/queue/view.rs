//! Reading queues.

use super::{QueueCounters, QueueRecord, QueueSettings};
use crate::shard::Shard;
use crate::task::TaskState;
use crate::{Namespace, QueueHandle, QueueName};

/// A queue of this shard as readers see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueView {
    /// Its handle.
    pub handle: QueueHandle,
    /// Its owner.
    pub namespace: Namespace,
    /// Its name.
    pub name: QueueName,
    /// Its settings as known to this shard.
    pub settings: QueueSettings,
    /// Totals since the beginning.
    pub counters: QueueCounters,
    /// Tasks waiting for their time.
    pub scheduled: u64,
    /// Tasks that may be claimed.
    pub ready: u64,
    /// Tasks held by workers.
    pub claimed: u64,
    /// Finished tasks still kept.
    pub finished: u64,
    /// Whether every shard has the newest settings; only shard 0 can tell, the others say yes.
    pub settled: bool,
}

impl QueueView {
    /// The same queue in two shards, seen as one: counts add up, the newer settings hold.
    #[must_use]
    pub fn merge(mut self, other: QueueView) -> QueueView {
        if other.settings.version > self.settings.version {
            self.settings = other.settings;
        }
        self.counters.submitted += other.counters.submitted;
        self.counters.done += other.counters.done;
        self.counters.dead += other.counters.dead;
        self.counters.cancelled += other.counters.cancelled;
        self.counters.removed += other.counters.removed;
        self.counters.retried += other.counters.retried;
        self.counters.failed += other.counters.failed;
        self.scheduled += other.scheduled;
        self.ready += other.ready;
        self.claimed += other.claimed;
        self.finished += other.finished;
        self.settled &= other.settled;
        self
    }
}

impl Shard {
    fn queue_view(&self, queue: usize, record: &QueueRecord) -> QueueView {
        let line = &self.index.lines[queue];
        QueueView {
            handle: QueueHandle(queue as u32),
            namespace: record.namespace.clone(),
            name: record.name.clone(),
            settings: record.settings.clone(),
            counters: record.counters,
            scheduled: line.count(TaskState::Scheduled),
            ready: line.count(TaskState::Ready),
            claimed: line.count(TaskState::Claimed),
            finished: line.finished.len() as u64,
            settled: self.queue_settled(&record.namespace, &record.name),
        }
    }

    /// One queue.
    pub fn queue(&self, namespace: &Namespace, name: &QueueName) -> Option<QueueView> {
        let queue = self.find_queue(namespace, name)? as usize;
        Some(self.queue_view(queue, &self.core.queues[queue]))
    }

    /// All queues in order of creation, of one namespace or of all.
    pub fn queues<'a>(
        &'a self,
        namespace: Option<&'a Namespace>,
    ) -> impl Iterator<Item = QueueView> + 'a {
        let records = self.core.queues.iter().enumerate();
        records
            .filter(move |(_, record)| namespace.is_none_or(|wanted| record.namespace == *wanted))
            .map(|(queue, record)| self.queue_view(queue, record))
    }

    /// Number of claimable tasks in a queue, whether or not it is paused.
    pub fn ready_count(&self, namespace: &Namespace, name: &QueueName) -> u64 {
        let queue = self.find_queue(namespace, name);
        queue.map_or(0, |queue| self.index.lines[queue as usize].ready.len() as u64)
    }

    /// Whether a claim on this queue would be granted something now.
    pub fn is_claimable(&self, namespace: &Namespace, name: &QueueName) -> bool {
        self.find_queue(namespace, name).is_some_and(|queue| {
            let paused = self.core.queues[queue as usize].settings.paused;
            !paused && !self.index.lines[queue as usize].ready.is_empty()
        })
    }

    /// Whether every other shard has acknowledged the queue's newest settings (shard 0).
    pub fn queue_settled(&self, namespace: &Namespace, name: &QueueName) -> bool {
        self.core.outbox.items().all(|item| !item.message.is_about_queue(namespace, name))
    }
}
