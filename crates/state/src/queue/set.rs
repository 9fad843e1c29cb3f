//! `SetQueue`: changes settings in shard 0 and sends the full new settings to every other shard.

use minicbor::{Decode, Encode};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::{AlertThresholds, Backoff, QueueSettings};
use crate::hash::encode_into;
use crate::outbox::Message;
use crate::shard::{Batch, Shard};
use crate::{Effect, Namespace, QueueHandle, QueueName, RefusalCode, Reply};

/// New values; an absent one stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct QueueChange {
    /// See [`QueueSettings::paused`].
    #[n(0)]
    pub paused: Option<bool>,
    /// See [`QueueSettings::max_attempts`].
    #[n(1)]
    pub max_attempts: Option<u16>,
    /// See [`QueueSettings::ttl_ms`].
    #[n(2)]
    pub ttl_ms: Option<u32>,
    /// See [`QueueSettings::backoff`].
    #[n(3)]
    pub backoff: Option<Backoff>,
    /// See [`QueueSettings::retention_count`].
    #[n(4)]
    pub retention_count: Option<u32>,
    /// See [`QueueSettings::retention_ms`].
    #[n(5)]
    pub retention_ms: Option<u64>,
    /// See [`QueueSettings::pending_max`].
    #[n(6)]
    pub pending_max: Option<u64>,
    /// See [`AlertThresholds::pending`].
    #[n(20)]
    pub alert_pending: Option<u64>,
    /// See [`AlertThresholds::claim_age_percent`].
    #[n(21)]
    pub alert_claim_age_percent: Option<u32>,
    /// See [`AlertThresholds::dead_percent`].
    #[n(22)]
    pub alert_dead_percent: Option<u32>,
    /// See [`AlertThresholds::growing_s`].
    #[n(23)]
    pub alert_growing_s: Option<u32>,
    /// See [`QueueSettings::timeout_ms`].
    #[n(7)]
    pub timeout_ms: Option<u32>,
    /// See [`QueueSettings::deadline_in_ms`].
    #[n(8)]
    pub deadline_in_ms: Option<u64>,
    /// See [`QueueSettings::key_limit`].
    #[n(9)]
    pub key_limit: Option<u16>,
    /// See [`QueueSettings::dead_max`].
    #[n(10)]
    pub dead_max: Option<u32>,
    /// See [`QueueSettings::dead_retention_ms`].
    #[n(11)]
    pub dead_retention_ms: Option<u64>,
    /// See [`QueueSettings::jitter_permille`].
    #[n(12)]
    pub jitter_permille: Option<u16>,
}

impl QueueChange {
    fn merge(&self, mut settings: QueueSettings) -> QueueSettings {
        settings.paused = self.paused.unwrap_or(settings.paused);
        settings.max_attempts = self.max_attempts.unwrap_or(settings.max_attempts);
        settings.ttl_ms = self.ttl_ms.unwrap_or(settings.ttl_ms);
        settings.backoff = self.backoff.unwrap_or(settings.backoff);
        settings.retention_count = self.retention_count.unwrap_or(settings.retention_count);
        settings.retention_ms = self.retention_ms.unwrap_or(settings.retention_ms);
        settings.pending_max = self.pending_max.unwrap_or(settings.pending_max);
        let before = settings.alerts;
        settings.alerts = AlertThresholds {
            pending: self.alert_pending.unwrap_or(before.pending),
            claim_age_percent: self.alert_claim_age_percent.unwrap_or(before.claim_age_percent),
            dead_percent: self.alert_dead_percent.unwrap_or(before.dead_percent),
            growing_s: self.alert_growing_s.unwrap_or(before.growing_s),
        };
        settings.timeout_ms = self.timeout_ms.unwrap_or(settings.timeout_ms);
        settings.deadline_in_ms = self.deadline_in_ms.unwrap_or(settings.deadline_in_ms);
        settings.key_limit = self.key_limit.unwrap_or(settings.key_limit);
        settings.dead_max = self.dead_max.or(settings.dead_max);
        settings.dead_retention_ms = self.dead_retention_ms.or(settings.dead_retention_ms);
        settings.jitter_permille = self.jitter_permille.or(settings.jitter_permille);
        settings
    }
}

/// Changes a queue's settings, creating the queue if need be.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct SetQueue {
    /// The queue.
    #[n(0)]
    pub queue: QueueName,
    /// What changes.
    #[n(1)]
    pub change: QueueChange,
    /// Refuse unless the settings still have this version.
    #[n(2)]
    pub expected_version: Option<u64>,
}

impl SetQueue {
    /// The level that understands it.
    pub(crate) fn level(&self) -> u32 {
        let dead = self.change.dead_max.is_some() || self.change.dead_retention_ms.is_some();
        u32::from(dead || self.change.jitter_permille.is_some())
    }

    /// Hash of the order as given.
    pub(crate) fn body_hash(&self) -> u64 {
        let mut bytes = Vec::with_capacity(64);
        encode_into(self, &mut bytes);
        xxh3_64_with_seed(&bytes, 8)
    }
}

impl Shard {
    pub(crate) fn apply_set_queue(
        &mut self,
        batch: &mut Batch,
        namespace: &Namespace,
        order: &SetQueue,
    ) -> Reply {
        match self.set_queue(batch, namespace, order) {
            Ok(version) => Reply::QueueSet { version },
            Err(code) => Reply::refused(code),
        }
    }

    fn set_queue(
        &mut self,
        batch: &mut Batch,
        namespace: &Namespace,
        order: &SetQueue,
    ) -> Result<u64, RefusalCode> {
        if self.core.shard != 0 {
            return Err(RefusalCode::WrongShard);
        }
        let found = self.find_queue(namespace, &order.queue);
        let current = match found {
            Some(queue) => self.core.queues[queue as usize].settings.clone(),
            None => QueueSettings::default(),
        };
        if order.expected_version.is_some_and(|expected| expected != current.version) {
            return Err(RefusalCode::VersionConflict);
        }
        let mut settings = order.change.merge(current);
        settings.version = settings.version.saturating_add(1);
        if !settings.is_valid(&self.core.limits) {
            return Err(RefusalCode::BadValue);
        }
        let targets = 1..self.core.shards;
        if self.core.outbox.len() + targets.len() > self.core.limits.outbox_max as usize {
            return Err(RefusalCode::OutboxFull);
        }
        let queue = self.open_queue(namespace, &order.queue)?;
        let version = settings.version;
        for target in targets {
            let message = Message::QueueSettings {
                namespace: namespace.clone(),
                queue: order.queue.clone(),
                settings: settings.clone(),
            };
            self.put_message(batch, target, message);
        }
        self.store_settings(batch, queue, settings);
        Ok(version)
    }

    /// Puts settings in place and wakes claims if that made tasks claimable.
    pub(crate) fn store_settings(
        &mut self,
        batch: &mut Batch,
        queue: u32,
        settings: QueueSettings,
    ) {
        let record = &mut self.core.queues[queue as usize];
        let resumed = record.settings.paused && !settings.paused;
        record.settings = settings;
        self.mark_queue(queue);
        batch.tell(Effect::QueueChanged { queue: QueueHandle(queue) });
        if resumed && self.index.lines[queue as usize].has_ready() {
            self.wake(batch, queue);
        }
    }
}
