//! Reading namespaces: what they may take and what they have.

use std::collections::BTreeSet;

use super::{Quota, QuotaRecord};
use crate::Namespace;
use crate::outbox::{Message, OutboxItem};
use crate::shard::Shard;

/// A namespace of one shard, or of all, as readers see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamespaceView {
    /// Its name.
    pub namespace: Namespace,
    /// What it may take.
    pub quota: Quota,
    /// Unfinished tasks.
    pub pending: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes of objects.
    pub object_bytes: u64,
    /// Tasks ever submitted.
    pub submitted: u64,
    /// Whether every shard has the newest quota; only shard 0 can tell, the others say yes.
    pub settled: bool,
}

impl NamespaceView {
    /// Nothing is known of it and nothing is in it.
    pub fn empty(namespace: Namespace) -> NamespaceView {
        NamespaceView {
            namespace,
            quota: Quota::default(),
            pending: 0,
            bytes: 0,
            object_bytes: 0,
            submitted: 0,
            settled: true,
        }
    }

    /// The same namespace in two shards, seen as one: counts add up, the newer quota holds.
    #[must_use]
    pub fn merge(mut self, other: &NamespaceView) -> NamespaceView {
        if other.quota.version > self.quota.version {
            self.quota = other.quota;
        }
        self.pending += other.pending;
        self.bytes += other.bytes;
        self.object_bytes += other.object_bytes;
        self.submitted += other.submitted;
        self.settled &= other.settled;
        self
    }
}

impl Shard {
    /// All namespaces that have a quota here, and, unless only those are wanted, a queue or an object; in order of their
    /// names.
    pub fn namespaces(&self, only_bounded: bool) -> Vec<NamespaceView> {
        let mut names: Vec<&Namespace> = self.core.quotas.keys().collect();
        if !only_bounded {
            names.extend(self.index.space_names.keys());
            names.extend(self.index.stored.keys());
            names.sort_unstable();
            names.dedup();
        }
        if names.is_empty() {
            return Vec::new();
        }
        let unsettled = self.unsettled_quotas();
        let seen = |name: &Namespace| self.seen(name, &unsettled);
        let mut views: Vec<NamespaceView> = names.into_iter().map(seen).collect();
        for record in &self.core.queues {
            let place = views.binary_search_by(|view| view.namespace.cmp(&record.namespace));
            if let Ok(place) = place {
                views[place].submitted += record.counters.submitted;
            }
        }
        views
    }

    /// Unfinished tasks of a namespace.
    pub fn pending_of(&self, namespace: &Namespace) -> u64 {
        self.index.waiting(namespace).tasks
    }

    fn seen(&self, namespace: &Namespace, unsettled: &BTreeSet<&Namespace>) -> NamespaceView {
        let waiting = self.index.waiting(namespace);
        NamespaceView {
            namespace: namespace.clone(),
            quota: self.quota(namespace).map(|record| record.quota).unwrap_or_default(),
            pending: waiting.tasks,
            bytes: waiting.bytes,
            object_bytes: self.index.stored(namespace),
            submitted: 0,
            settled: !unsettled.contains(namespace),
        }
    }

    /// Namespaces whose quota is on its way to another shard (shard 0).
    fn unsettled_quotas(&self) -> BTreeSet<&Namespace> {
        let records = self.core.outbox.items().flat_map(quotas_in);
        records.map(|record| &record.namespace).collect()
    }
}

fn quotas_in(item: &OutboxItem) -> &[QuotaRecord] {
    match &item.message {
        Message::Quotas { quotas } => quotas,
        _ => &[],
    }
}
