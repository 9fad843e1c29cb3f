//! What is stored about the quota of one namespace, and how it is shared out.

use std::sync::Arc;

use minicbor::{Decode, Encode};

use crate::hash::{RecordKind, digest_record};
use crate::limits::Limits;
use crate::shard::Shard;
use crate::{Namespace, ShardId};

/// Bounds of one namespace over the whole cluster; 0 is no bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Quota {
    /// Rises with each change.
    #[n(0)]
    pub version: u64,
    /// Most unfinished tasks.
    #[n(1)]
    pub pending_max: u64,
    /// Most bytes of unfinished tasks.
    #[n(2)]
    pub bytes_max: u64,
    /// Most bytes of objects.
    #[n(3)]
    pub object_bytes_max: u64,
    /// Most tasks submitted in a second.
    #[n(4)]
    pub rate_max: u32,
}

impl Quota {
    /// Whether every shard's share admits at least one task, however large.
    pub(crate) fn is_valid(&self, shards: u16, limits: &Limits) -> bool {
        let shards = u64::from(shards);
        let bytes_min = shards * u64::from(limits.payload_bytes_max);
        (self.pending_max == 0 || self.pending_max >= shards)
            && (self.bytes_max == 0 || self.bytes_max >= bytes_min)
    }
}

/// A quota as one shard holds it.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct QuotaRecord {
    /// Whose.
    #[n(0)]
    pub namespace: Namespace,
    /// For the whole cluster.
    #[n(1)]
    pub quota: Quota,
    /// Most unfinished tasks in this shard.
    #[n(2)]
    pub pending_share: u64,
    /// Most bytes of unfinished tasks in this shard.
    #[n(3)]
    pub bytes_share: u64,
}

impl QuotaRecord {
    /// What one of so many shards is given.
    pub(crate) fn of(
        namespace: &Namespace,
        quota: Quota,
        (shard, shards): (ShardId, u16),
        limits: &Limits,
    ) -> QuotaRecord {
        // A cluster that grew may have shards whose share would admit nothing; each keeps room for a task.
        let floor = u64::from(limits.payload_bytes_max);
        QuotaRecord {
            namespace: namespace.clone(),
            quota,
            pending_share: share(quota.pending_max, shard, shards).max(1),
            bytes_share: share(quota.bytes_max, shard, shards).max(floor),
        }
    }
}

/// A shard's part of a whole; the parts of all shards add up to it.
fn share(whole: u64, shard: ShardId, shards: u16) -> u64 {
    let (shard, shards) = (u64::from(shard), u64::from(shards.max(1)));
    whole / shards + u64::from(shard < whole % shards)
}

impl Shard {
    /// The quota of a namespace as this shard holds it.
    pub fn quota(&self, namespace: &Namespace) -> Option<&QuotaRecord> {
        self.core.quotas.get(namespace).map(|record| &**record)
    }

    pub(crate) fn put_quota(&mut self, record: QuotaRecord) {
        self.core.hash.add(digest_record(RecordKind::Quota, &record));
        let before = self.core.quotas.insert(record.namespace.clone(), Arc::new(record));
        if let Some(before) = before {
            self.core.hash.remove(digest_record(RecordKind::Quota, &*before));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x_7_shares_add_up_to_the_quota() {
        for whole in [1u64, 3, 10, 1_000_003, u64::MAX] {
            for shards in [1u16, 2, 3, 8, 255] {
                let parts = (0..shards).map(|shard| u128::from(share(whole, shard, shards)));
                assert_eq!(parts.sum::<u128>(), u128::from(whole), "{whole} over {shards}");
            }
        }
    }
}
