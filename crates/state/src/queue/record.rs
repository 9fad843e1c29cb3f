//! What is stored about one queue, and how a queue is found or created.

use minicbor::{Decode, Encode};

use super::AlertThresholds;
use crate::ids::task_hash;
use crate::limits::{
    DEAD_MAX_DEFAULT, DEAD_RETENTION_MS_DEFAULT, JITTER_PERMILLE_DEFAULT, JITTER_PERMILLE_MAX,
    KEY_LIMIT_MAX, Limits, TIMEOUT_MS_MAX,
};
use crate::shard::Shard;
use crate::{Namespace, QueueHandle, QueueName, RefusalCode, TaskState};

/// Delay before a failed task is ready again: `base_ms` doubled per attempt, at most `cap_ms`. A
/// base of 0 retries at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Backoff {
    /// Delay after the first failure.
    #[n(0)]
    pub base_ms: u32,
    /// Longest delay.
    #[n(1)]
    pub cap_ms: u32,
}

/// Settings of a queue.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct QueueSettings {
    /// Rises with each change; 0 means the defaults.
    #[n(0)]
    pub version: u64,
    /// A paused queue takes tasks but grants none.
    #[n(1)]
    pub paused: bool,
    /// Attempt limit of tasks that name none.
    #[n(2)]
    pub max_attempts: u16,
    /// Claim lifetime of tasks that name none.
    #[n(3)]
    pub ttl_ms: u32,
    /// Retry delay of tasks that name none.
    #[n(4)]
    pub backoff: Backoff,
    /// Finished tasks kept, per shard.
    #[n(5)]
    pub retention_count: u32,
    /// How long a finished task is kept.
    #[n(6)]
    pub retention_ms: u64,
    /// Most unfinished tasks, per shard; 0 means only the shard's own bound.
    #[n(7)]
    pub pending_max: u64,
    /// When the queue needs attention.
    #[n(20)]
    #[cbor(default)]
    pub alerts: AlertThresholds,
    /// Longest time for a whole attempt of tasks that name none; 0 is no limit.
    #[n(8)]
    pub timeout_ms: u32,
    /// Time from submission to the deadline of tasks that name none; 0 is no deadline.
    #[n(9)]
    pub deadline_in_ms: u64,
    /// Key limit of tasks with a key that name none: 1 is strict order, 0 is no limit.
    #[n(10)]
    pub key_limit: u16,
    /// Most dead tasks, per shard: at it the queue takes no new tasks. 0 means only the shard's own bound, none
    /// [`DEAD_MAX_DEFAULT`].
    #[n(11)]
    pub dead_max: Option<u32>,
    /// How long a dead task is kept; none is [`DEAD_RETENTION_MS_DEFAULT`].
    #[n(12)]
    pub dead_retention_ms: Option<u64>,
    /// How far the waits between attempts are spread either way, in thousandths; none is [`JITTER_PERMILLE_DEFAULT`].
    #[n(13)]
    pub jitter_permille: Option<u16>,
}

impl Default for QueueSettings {
    fn default() -> Self {
        Self {
            version: 0,
            paused: false,
            max_attempts: 5,
            ttl_ms: 30_000,
            backoff: Backoff { base_ms: 1_000, cap_ms: 60_000 },
            retention_count: 10_000,
            retention_ms: 24 * 60 * 60 * 1000,
            pending_max: 0,
            alerts: AlertThresholds::default(),
            timeout_ms: 0,
            deadline_in_ms: 0,
            key_limit: 1,
            dead_max: None,
            dead_retention_ms: None,
            jitter_permille: None,
        }
    }
}

impl QueueSettings {
    /// Most dead tasks, per shard; 0 means only the shard's own bound.
    pub fn dead_max(&self) -> u32 {
        self.dead_max.unwrap_or(DEAD_MAX_DEFAULT)
    }

    /// How long a dead task is kept.
    pub fn dead_retention_ms(&self) -> u64 {
        self.dead_retention_ms.unwrap_or(DEAD_RETENTION_MS_DEFAULT)
    }

    /// How far the waits between attempts are spread either way, in thousandths.
    pub fn jitter_permille(&self) -> u16 {
        self.jitter_permille.unwrap_or(JITTER_PERMILLE_DEFAULT)
    }

    /// The level that understands them.
    pub(crate) fn level(&self) -> u32 {
        let dead = self.dead_max.is_some() || self.dead_retention_ms.is_some();
        u32::from(dead || self.jitter_permille.is_some())
    }

    /// Whether every value is inside its bounds.
    pub(crate) fn is_valid(&self, limits: &Limits) -> bool {
        (1..=limits.attempts_max).contains(&self.max_attempts)
            && (limits.ttl_ms_min..=limits.ttl_ms_max).contains(&self.ttl_ms)
            && self.backoff.base_ms <= self.backoff.cap_ms
            && self.alerts.is_valid()
            && self.timeout_ms <= TIMEOUT_MS_MAX
            && self.deadline_in_ms <= limits.delay_ms_max
            && self.key_limit <= KEY_LIMIT_MAX
            && self.jitter_permille() <= JITTER_PERMILLE_MAX
    }
}

/// Totals of a queue in one shard, kept for ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct QueueCounters {
    /// Tasks created.
    #[n(0)]
    pub submitted: u64,
    /// Tasks completed.
    #[n(1)]
    pub done: u64,
    /// Tasks that ran out of attempts.
    #[n(2)]
    pub dead: u64,
    /// Tasks cancelled.
    #[n(3)]
    pub cancelled: u64,
    /// Finished tasks removed by retention.
    #[n(4)]
    pub removed: u64,
    /// Given-up tasks that were given fresh attempts.
    #[n(5)]
    #[cbor(default)]
    pub retried: u64,
    /// Attempts that ended as failed or expired.
    #[n(6)]
    #[cbor(default)]
    pub failed: u64,
    /// Dead tasks removed before their time, because the shard could keep no more; none is none.
    #[n(7)]
    pub dead_dropped: Option<u64>,
}

impl QueueCounters {
    /// How many tasks ended like this; none of a state that is no end.
    pub(crate) fn ended_as(&mut self, state: TaskState) -> Option<&mut u64> {
        match state {
            TaskState::Done => Some(&mut self.done),
            TaskState::Dead => Some(&mut self.dead),
            TaskState::Cancelled => Some(&mut self.cancelled),
            TaskState::Scheduled | TaskState::Ready | TaskState::Claimed => None,
        }
    }
}

/// One queue as stored.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct QueueRecord {
    #[n(0)]
    pub(crate) namespace: Namespace,
    #[n(1)]
    pub(crate) name: QueueName,
    #[n(2)]
    pub(crate) settings: QueueSettings,
    #[n(3)]
    pub(crate) counters: QueueCounters,
}

impl Shard {
    /// Finds a queue.
    pub(crate) fn find_queue(&self, namespace: &Namespace, name: &QueueName) -> Option<u32> {
        let hash = task_hash(namespace.as_str(), name.as_str());
        self.index.queue_names.find(hash, |queue| {
            let record = &self.core.queues[queue as usize];
            record.name == *name && record.namespace == *namespace
        })
    }

    /// Finds a queue or creates it with default settings.
    pub(crate) fn open_queue(
        &mut self,
        namespace: &Namespace,
        name: &QueueName,
    ) -> Result<u32, RefusalCode> {
        self.open_queue_beyond(namespace, name, 0)
    }

    /// The same with so many queues beyond the bound.
    pub(crate) fn open_queue_beyond(
        &mut self,
        namespace: &Namespace,
        name: &QueueName,
        more: usize,
    ) -> Result<u32, RefusalCode> {
        if let Some(queue) = self.find_queue(namespace, name) {
            return Ok(queue);
        }
        if self.core.queues.len() >= self.core.limits.queues_max as usize + more {
            return Err(RefusalCode::TooManyQueues);
        }
        Ok(self.open_queue_unbounded(namespace, name))
    }

    /// Finds a queue or creates it, whatever their number.
    pub(crate) fn open_queue_unbounded(&mut self, namespace: &Namespace, name: &QueueName) -> u32 {
        if let Some(queue) = self.find_queue(namespace, name) {
            return queue;
        }
        let queue = self.core.queues.len() as u32;
        self.core.queues.push(QueueRecord {
            namespace: namespace.clone(),
            name: name.clone(),
            settings: QueueSettings::default(),
            counters: QueueCounters::default(),
        });
        self.index.add_queue(namespace, name, queue);
        self.mark_queue(queue);
        queue
    }

    /// Name of a queue by handle; none if the handle is not of this shard.
    pub fn queue_at(&self, handle: QueueHandle) -> Option<(&Namespace, &QueueName)> {
        let record = self.core.queues.get(handle.0 as usize)?;
        Some((&record.namespace, &record.name))
    }

    /// Handle of a queue, if it exists in this shard.
    pub fn queue_handle(&self, namespace: &Namespace, name: &QueueName) -> Option<QueueHandle> {
        self.find_queue(namespace, name).map(QueueHandle)
    }
}
