//! What is stored about one worker, and how it is found.

use std::sync::Arc;

use minicbor::{Decode, Encode};

use crate::hash::{RecordKind, digest_record};
use crate::limits::{
    LABELS_OFFERED_MAX, WORKER_QUEUES_MAX, WORKER_SLOTS_MAX, WORKER_VERSION_BYTES_MAX,
};
use crate::shard::Shard;
use crate::{Labels, Namespace, QueueName, SessionId, WorkerId};

/// Full name of a worker.
pub type WorkerKey = (Namespace, WorkerId);

/// What is wanted of a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum WorkerStanding {
    /// It works.
    #[default]
    #[n(0)]
    Active,
    /// It shall finish what it has, and take no more.
    #[n(1)]
    Draining,
    /// Its session is over; it is remembered so that it cannot come back.
    #[n(2)]
    Removed,
}

/// One worker as stored.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct WorkerRecord {
    /// Where it works.
    #[n(0)]
    pub namespace: Namespace,
    /// Its name.
    #[n(1)]
    pub id: WorkerId,
    /// Its process run.
    #[n(2)]
    pub session: SessionId,
    /// Tasks that it runs at one time.
    #[n(3)]
    pub slots: u32,
    /// What it has.
    #[n(4)]
    pub labels: Labels,
    /// Queues that it takes tasks from.
    #[n(5)]
    pub queues: Vec<QueueName>,
    /// Version of its program.
    #[n(6)]
    pub version: String,
    /// Log time at which this session registered.
    #[n(7)]
    pub since_ms: u64,
    /// What is wanted of it.
    #[n(8)]
    pub standing: WorkerStanding,
}

impl WorkerRecord {
    /// Its full name.
    pub fn key(&self) -> WorkerKey {
        (self.namespace.clone(), self.id.clone())
    }

    /// Whether the record obeys its bounds.
    pub(crate) fn is_valid(&self) -> bool {
        (1..=WORKER_SLOTS_MAX).contains(&self.slots)
            && self.queues.len() <= WORKER_QUEUES_MAX
            && self.labels.len() <= LABELS_OFFERED_MAX
            && self.version.len() <= WORKER_VERSION_BYTES_MAX
    }
}

impl Shard {
    /// One worker.
    pub fn worker(&self, key: &WorkerKey) -> Option<&Arc<WorkerRecord>> {
        self.core.workers.get(key)
    }

    /// All workers, removed ones included, in order of their names.
    pub fn workers(&self) -> impl Iterator<Item = &Arc<WorkerRecord>> + '_ {
        self.core.workers.values()
    }

    pub(super) fn put_worker(&mut self, record: WorkerRecord) {
        self.core.hash.add(digest_record(RecordKind::Worker, &record));
        if let Some(before) = self.core.workers.insert(record.key(), Arc::new(record)) {
            self.core.hash.remove(digest_record(RecordKind::Worker, &*before));
        }
    }

    pub(super) fn forget_worker(&mut self, key: &WorkerKey) {
        if let Some(before) = self.core.workers.remove(key) {
            self.core.hash.remove(digest_record(RecordKind::Worker, &*before));
        }
    }
}
