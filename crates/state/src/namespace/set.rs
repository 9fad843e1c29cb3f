//! `SetQuota`: changes a namespace's quota in shard 0 and sends every other shard its share.

use minicbor::{Decode, Encode};

use super::{Quota, QuotaRecord};
use crate::limits::{QUOTAS_MAX, SETTINGS_PER_MESSAGE_MAX};
use crate::outbox::Message;
use crate::shard::{Batch, Shard};
use crate::{Namespace, RefusalCode, Reply, ShardId};

/// New values; an absent one stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct QuotaChange {
    /// See [`Quota::pending_max`].
    #[n(0)]
    pub pending_max: Option<u64>,
    /// See [`Quota::bytes_max`].
    #[n(1)]
    pub bytes_max: Option<u64>,
    /// See [`Quota::object_bytes_max`].
    #[n(2)]
    pub object_bytes_max: Option<u64>,
    /// See [`Quota::rate_max`].
    #[n(3)]
    pub rate_max: Option<u32>,
}

impl QuotaChange {
    fn merge(&self, quota: Quota) -> Quota {
        Quota {
            version: quota.version,
            pending_max: self.pending_max.unwrap_or(quota.pending_max),
            bytes_max: self.bytes_max.unwrap_or(quota.bytes_max),
            object_bytes_max: self.object_bytes_max.unwrap_or(quota.object_bytes_max),
            rate_max: self.rate_max.unwrap_or(quota.rate_max),
        }
    }
}

/// Changes the quota of the order's namespace.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct SetQuota {
    /// What changes.
    #[n(0)]
    pub change: QuotaChange,
}

impl Shard {
    pub(crate) fn apply_set_quota(
        &mut self,
        batch: &mut Batch,
        namespace: &Namespace,
        order: &SetQuota,
    ) -> Reply {
        match self.set_quota(batch, namespace, order) {
            Ok(version) => Reply::QuotaSet { version },
            Err(code) => Reply::refused(code),
        }
    }

    fn set_quota(
        &mut self,
        batch: &mut Batch,
        namespace: &Namespace,
        order: &SetQuota,
    ) -> Result<u64, RefusalCode> {
        if self.core.shard != 0 {
            return Err(RefusalCode::WrongShard);
        }
        let known = self.quota(namespace).map(|record| record.quota);
        let current = known.unwrap_or_default();
        let mut quota = order.change.merge(current);
        if quota == current {
            return Ok(current.version);
        }
        if !quota.is_valid(self.core.shards, &self.core.limits) {
            return Err(RefusalCode::BadValue);
        }
        if known.is_none() && self.core.quotas.len() >= QUOTAS_MAX {
            return Err(RefusalCode::TooManyQuotas);
        }
        let targets = 1..self.core.shards;
        if self.core.outbox.len() + targets.len() > self.core.limits.outbox_max as usize {
            return Err(RefusalCode::OutboxFull);
        }
        quota.version = quota.version.saturating_add(1);
        for target in targets {
            let quotas = vec![self.quota_of(namespace, quota, target)];
            self.put_message(batch, target, Message::Quotas { quotas });
        }
        let own = self.quota_of(namespace, quota, 0);
        self.put_quota(own);
        Ok(quota.version)
    }

    fn quota_of(&self, namespace: &Namespace, quota: Quota, shard: ShardId) -> QuotaRecord {
        QuotaRecord::of(namespace, quota, (shard, self.core.shards), &self.core.limits)
    }

    /// Messages with all quotas that a cluster of the present number of shards needs for one of them.
    pub(crate) fn quota_messages(&self) -> usize {
        self.core.quotas.len().div_ceil(SETTINGS_PER_MESSAGE_MAX)
    }

    /// Shares all quotas out anew, after the number of shards has changed.
    pub(crate) fn share_quotas(&mut self, batch: &mut Batch) {
        let all = |shard: &Shard, target: ShardId| -> Vec<QuotaRecord> {
            let records = shard.core.quotas.values();
            records.map(|held| shard.quota_of(&held.namespace, held.quota, target)).collect()
        };
        let raised: Vec<QuotaRecord> =
            self.core.quotas.values().map(|held| (**held).clone()).collect();
        for mut record in raised {
            record.quota.version = record.quota.version.saturating_add(1);
            self.put_quota(record);
        }
        for target in 1..self.core.shards {
            for chunk in all(self, target).chunks(SETTINGS_PER_MESSAGE_MAX) {
                self.put_message(batch, target, Message::Quotas { quotas: chunk.to_vec() });
            }
        }
        for own in all(self, 0) {
            self.put_quota(own);
        }
    }

    /// Takes shares of quotas in; an older version changes nothing.
    pub(crate) fn take_quotas(&mut self, quotas: &[QuotaRecord]) {
        for record in quotas {
            let known = self.quota(&record.namespace).map_or(0, |held| held.quota.version);
            if record.quota.version > known {
                self.put_quota(record.clone());
            }
        }
    }
}
