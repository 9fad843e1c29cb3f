//! Reading queues.

use super::{QueueCounters, QueueRecord, QueueSettings};
use crate::shard::Shard;
use crate::task::TaskState;
use crate::{Labels, Namespace, QueueHandle, QueueName, TaskId, WorkerId};

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
    /// Dead ones among them.
    pub dead: u64,
    /// Log time since which the longest waiting ready task is ready; none if none is.
    pub oldest_ready_ms: Option<u64>,
    /// Log time at which the oldest live claim began; none if there is none.
    pub oldest_claim_ms: Option<u64>,
    /// Log time from which the oldest claim, measured by its own lifetime, is too old; none if none
    /// will be.
    pub claim_alert_ms: Option<u64>,
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
        self.counters.dead_dropped = match (self.counters.dead_dropped, other.counters.dead_dropped)
        {
            (None, None) => None,
            (one, another) => Some(one.unwrap_or(0) + another.unwrap_or(0)),
        };
        self.finished += other.finished;
        self.dead += other.dead;
        self.oldest_ready_ms = earlier(self.oldest_ready_ms, other.oldest_ready_ms);
        self.oldest_claim_ms = earlier(self.oldest_claim_ms, other.oldest_claim_ms);
        self.claim_alert_ms = earlier(self.claim_alert_ms, other.claim_alert_ms);
        self.settled &= other.settled;
        self
    }
}

/// The earlier of two moments, if there is one.
fn earlier(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    [one, other].into_iter().flatten().min()
}

/// Claims looked at for their age; beyond it the oldest may be missed.
const CLAIMS_SEEN_MAX: usize = 65_536;

/// What the live claims of one queue say about their age.
#[derive(Clone, Copy, Debug, Default)]
struct ClaimAges {
    oldest_ms: Option<u64>,
    alert_ms: Option<u64>,
}

impl Shard {
    /// The ages of live claims by queue, of all queues or of one: one pass over the claims.
    fn claim_ages(&self, only: Option<usize>) -> Vec<ClaimAges> {
        let mut ages = vec![ClaimAges::default(); self.core.queues.len()];
        if only.is_some_and(|queue| self.index.lines[queue].count(TaskState::Claimed) == 0) {
            return ages;
        }
        for slot in self.index.claimed.iter().take(CLAIMS_SEEN_MAX) {
            let Some(task) = self.core.tasks.get(slot) else { continue };
            let Some(history) = &task.history else { continue };
            let queue = task.queue as usize;
            let began_ms = history.newest.started_ms;
            let percent = self.core.queues[queue].settings.alerts.claim_age_percent;
            let age = &mut ages[queue];
            age.oldest_ms = earlier(age.oldest_ms, Some(began_ms));
            if percent > 0 {
                let late_ms = u64::from(task.ttl_ms) * u64::from(percent) / 100;
                age.alert_ms = earlier(age.alert_ms, Some(began_ms.saturating_add(late_ms)));
            }
        }
        ages
    }

    /// Since when the longest waiting ready task of a queue is ready: the first of each priority.
    fn oldest_ready_ms(&self, queue: usize) -> Option<u64> {
        let firsts = self.index.lines[queue].firsts();
        firsts.filter_map(|slot| self.core.tasks.get(slot).map(|task| task.moment_ms)).min()
    }

    fn queue_view(&self, queue: usize, record: &QueueRecord, ages: ClaimAges) -> QueueView {
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
            finished: line.finished_count(),
            dead: line.count(TaskState::Dead),
            oldest_ready_ms: self.oldest_ready_ms(queue),
            oldest_claim_ms: ages.oldest_ms,
            claim_alert_ms: ages.alert_ms,
            settled: self.queue_settled(&record.namespace, &record.name),
        }
    }

    /// One queue.
    pub fn queue(&self, namespace: &Namespace, name: &QueueName) -> Option<QueueView> {
        let queue = self.find_queue(namespace, name)? as usize;
        let ages = self.claim_ages(Some(queue))[queue];
        Some(self.queue_view(queue, &self.core.queues[queue], ages))
    }

    /// All queues in order of creation, of one namespace or of all.
    pub fn queues<'a>(
        &'a self,
        namespace: Option<&'a Namespace>,
    ) -> impl Iterator<Item = QueueView> + 'a {
        let ages = self.claim_ages(None);
        let records = self.core.queues.iter().enumerate();
        records
            .filter(move |(_, record)| namespace.is_none_or(|wanted| record.namespace == *wanted))
            .map(move |(queue, record)| self.queue_view(queue, record, ages[queue]))
    }

    /// How many claims the ready tasks of a queue could feed, whether or not it is paused. Where some
    /// want labels, nobody can tell which claims suit them: then as many as may be.
    pub fn ready_count(&self, namespace: &Namespace, name: &QueueName) -> u64 {
        let Some(queue) = self.find_queue(namespace, name) else {
            return 0;
        };
        let line = &self.index.lines[queue as usize];
        match line.labelled_ready() {
            0 if line.twins_ready() == 0 => line.plain_ready() as u64,
            _ => u64::MAX,
        }
    }

    /// How far the waits between a task's attempts are spread, in thousandths; none if there is no such task.
    pub fn jitter_of(&self, namespace: &Namespace, id: &TaskId) -> Option<u16> {
        let task = self.core.tasks.get(self.find_task(namespace, id)?)?;
        Some(self.core.queues[task.queue as usize].settings.jitter_permille())
    }

    /// Whether a queue's tasks are held back; a queue that is not there yet holds none back.
    pub fn is_paused(&self, namespace: &Namespace, name: &QueueName) -> bool {
        let queue = self.find_queue(namespace, name);
        let record = queue.and_then(|queue| self.core.queues.get(queue as usize));
        record.is_some_and(|record| record.settings.paused)
    }

    /// Whether a claim on this queue by a worker with these labels would be granted something now.
    pub fn is_claimable(&self, namespace: &Namespace, name: &QueueName, labels: &Labels) -> bool {
        let queue = self.queue_handle(namespace, name);
        queue.is_some_and(|queue| self.is_claimable_at(queue, labels, None))
    }

    /// The same for the queue of a handle, and for a worker if one is named.
    pub fn is_claimable_at(
        &self,
        queue: QueueHandle,
        labels: &Labels,
        worker: Option<&WorkerId>,
    ) -> bool {
        let paused =
            self.core.queues.get(queue.0 as usize).is_none_or(|record| record.settings.paused);
        !paused && self.next_for(queue.0, labels, worker).is_some()
    }

    /// Whether every other shard has acknowledged the queue's newest settings (shard 0).
    pub fn queue_settled(&self, namespace: &Namespace, name: &QueueName) -> bool {
        self.core.outbox.items().all(|item| !item.message.is_about_queue(namespace, name))
    }
}
