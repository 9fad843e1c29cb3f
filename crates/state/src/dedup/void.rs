//! `Void`: a tombstone for a request id. Once every shard has it, nothing of that request that is
//! not committed yet ever will be: a late duplicate is refused (`request_voided`). What was
//! committed before stays as it is.
//!
//! Tombstones last as long as request ids are remembered, but are bounded by age alone: at the
//! bound on their number a new one is refused, since a lost one would let a duplicate in.

use minicbor::{Decode, Encode};

use super::RingEntry;
use crate::hash::{RecordKind, digest_record};
use crate::ids::void_hash;
use crate::shard::Shard;
use crate::{Namespace, RefusalCode, Reply, RequestId, RequestKey, ShardId};

/// Most tombstones per shard (about 3 MiB).
pub const VOIDS_MAX: usize = 65_536;

/// Rules a request out in one shard.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Void {
    /// The shard that is to know.
    #[n(0)]
    pub shard: ShardId,
    /// The request, with all its items.
    #[n(1)]
    pub request: RequestId,
}

/// One tombstone.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct VoidEntry {
    #[n(0)]
    pub(crate) key: [u64; 2],
    #[n(1)]
    pub(crate) time_ms: u64,
}

impl RingEntry for VoidEntry {
    fn key(&self) -> [u64; 2] {
        self.key
    }
    fn time_ms(&self) -> u64 {
        self.time_ms
    }
    fn digest(&self, _number: u64) -> u64 {
        // Each key is there once, so its place need not count.
        digest_record(RecordKind::Void, self)
    }
}

impl Shard {
    pub(crate) fn apply_void(&mut self, namespace: &Namespace, order: &Void) -> Reply {
        if order.shard != self.core.shard {
            return Reply::refused(RefusalCode::WrongShard);
        }
        if self.voided_ms(namespace, &order.request).is_some() {
            return Reply::Voided;
        }
        if self.core.voids.len() >= VOIDS_MAX {
            return Reply::refused(RefusalCode::TooManyVoids);
        }
        let key = void_hash(namespace, &order.request);
        self.remember_void(VoidEntry { key, time_ms: self.core.time_ms });
        Reply::Voided
    }

    /// Whether a request is ruled out here. Costs nothing while there are no tombstones.
    pub(crate) fn is_voided(&self, namespace: &Namespace, request: Option<&RequestKey>) -> bool {
        self.core.voids.len() > 0
            && request.is_some_and(|key| self.voided_ms(namespace, &key.id).is_some())
    }

    /// Log time at which a request was ruled out in this shard.
    pub fn voided_ms(&self, namespace: &Namespace, request: &RequestId) -> Option<u64> {
        self.find_void(void_hash(namespace, request)).map(|entry| entry.time_ms)
    }
}
