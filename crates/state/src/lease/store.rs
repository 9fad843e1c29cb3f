//! How leases are kept and found.

use std::ops::Bound;
use std::sync::Arc;

use super::{Lease, LeaseKey};
use crate::hash::{RecordKind, digest_record};
use crate::shard::Shard;
use crate::{LeaseName, Namespace};

impl Shard {
    /// One lease; none if nobody holds it.
    pub fn lease(&self, key: &LeaseKey) -> Option<&Arc<Lease>> {
        self.core.leases.get(key)
    }

    /// All leases that somebody holds.
    pub fn leases(&self) -> impl Iterator<Item = &Arc<Lease>> + '_ {
        self.core.leases.values()
    }

    /// Leases of a namespace in order of their names, after one of them, at most `limit`.
    pub fn leases_of(
        &self,
        namespace: &Namespace,
        after: Option<&LeaseName>,
        limit: usize,
    ) -> Vec<Arc<Lease>> {
        let after = after.map(|name| (namespace.clone(), name.clone()));
        // No name is the empty text, so the first of a namespace is found by skipping those before it.
        let from = match &after {
            Some(key) => Bound::Excluded(key),
            None => Bound::Unbounded,
        };
        let rest = self.core.leases.range::<LeaseKey, _>((from, Bound::Unbounded));
        let own = rest.skip_while(|((owner, _), _)| owner < namespace);
        let own = own.take_while(|((owner, _), _)| owner == namespace);
        own.take(limit).map(|(_, lease)| lease.clone()).collect()
    }

    /// Rises with each change of a lease in this process; says that it is worth to look again.
    pub fn lease_changes(&self) -> u64 {
        self.lease_changes
    }

    /// Stores a lease, new or changed.
    pub(crate) fn put_lease(&mut self, lease: Lease) {
        self.lease_changes += 1;
        self.core.hash.add(digest_record(RecordKind::Lease, &lease));
        if let Some(before) = self.core.leases.insert(lease.key(), Arc::new(lease)) {
            self.core.hash.remove(digest_record(RecordKind::Lease, &*before));
        }
    }

    /// Removes a lease.
    pub(crate) fn remove_lease(&mut self, key: &LeaseKey) -> Option<Arc<Lease>> {
        self.lease_changes += 1;
        let before = self.core.leases.remove(key)?;
        self.core.hash.remove(digest_record(RecordKind::Lease, &*before));
        Some(before)
    }
}
