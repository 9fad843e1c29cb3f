//! What travels: the records of one slot in parts of bounded size, and the settings of queues.

use minicbor::{Decode, Encode};

use crate::dedup::{SettledEntry, SubmitEntry, VoidEntry};
use crate::hash::encode_into;
use crate::job::Job;
use crate::lease::{Binding, Lease};
use crate::limits::PART_BYTES_MAX;
use crate::object::Object;
use crate::snapshot::StoredTask;
use crate::task::Task;
use crate::{Namespace, QueueName, QueueSettings, SharedBytes};

/// A queue's settings on their way to a new shard.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct QueueCopy {
    /// Owner of the queue.
    #[n(0)]
    pub(crate) namespace: Namespace,
    /// The queue.
    #[n(1)]
    pub(crate) queue: QueueName,
    /// Its settings with their version.
    #[n(2)]
    pub(crate) settings: QueueSettings,
}

/// Records of one slot. A task's queue is a place in `queues`.
#[derive(Debug, Default, Encode, Decode)]
pub(crate) struct Parcel {
    #[n(0)]
    pub(crate) queues: Vec<(Namespace, QueueName)>,
    #[n(1)]
    pub(crate) tasks: Vec<StoredTask>,
    #[n(2)]
    pub(crate) submits: Vec<SubmitEntry>,
    #[n(3)]
    pub(crate) voids: Vec<VoidEntry>,
    #[n(4)]
    pub(crate) objects: Vec<Object>,
    #[n(5)]
    #[cbor(default)]
    pub(crate) leases: Vec<Lease>,
    #[n(6)]
    #[cbor(default)]
    pub(crate) bindings: Vec<Binding>,
    #[n(7)]
    #[cbor(default)]
    pub(crate) jobs: Vec<Job>,
    /// None if there is none, and then it leaves no trace: nodes of two versions must pack the same bytes.
    #[n(8)]
    pub(crate) settled: Option<Vec<SettledEntry>>,
}

/// Bytes of a remembered request in a part, roughly.
const ENTRY_BYTES: usize = 64;
/// Bytes of an object's version beside its digests, roughly.
const OBJECT_BYTES: usize = 256;
/// Bytes of one who holds a lease or waits for it, or of a lease that is bound, roughly.
const LEASE_BYTES: usize = 256;
/// Bytes of a digest.
const DIGEST_BYTES: usize = 34;
/// Bytes of a task beside its payload, roughly.
const TASK_BYTES: usize = 512;

/// Packs records into parts.
#[derive(Default)]
pub(crate) struct Packer {
    parcel: Parcel,
    bytes: usize,
    pub(crate) parts: Vec<SharedBytes>,
}

impl Packer {
    /// Packs a task that was taken out of a queue.
    pub(crate) fn task(&mut self, namespace: &Namespace, queue: &QueueName, task: &Task) {
        let named = |(owner, name): &(Namespace, QueueName)| owner == namespace && name == queue;
        let found = self.parcel.queues.iter().position(named);
        let place = found.unwrap_or_else(|| {
            self.parcel.queues.push((namespace.clone(), queue.clone()));
            self.parcel.queues.len() - 1
        });
        let mut stored = StoredTask::of(0, task);
        stored.queue = place as u32;
        self.parcel.tasks.push(stored);
        let attempts = task.history.as_ref().map_or(0, |history| history.earlier.len() + 1);
        self.add(task.weight() as usize + TASK_BYTES * (1 + attempts));
    }

    /// Packs a remembered request.
    pub(crate) fn submit(&mut self, entry: SubmitEntry) {
        self.parcel.submits.push(entry);
        self.add(ENTRY_BYTES);
    }

    /// Packs a tombstone.
    pub(crate) fn void(&mut self, entry: VoidEntry) {
        self.parcel.voids.push(entry);
        self.add(ENTRY_BYTES);
    }

    /// Packs a remembered report.
    pub(crate) fn settled(&mut self, entry: SettledEntry) {
        self.parcel.settled.get_or_insert_default().push(entry);
        self.add(ENTRY_BYTES);
    }

    /// Packs an object.
    pub(crate) fn object(&mut self, object: &Object) {
        let pieces: usize = object.versions.iter().map(|version| version.chunks.len()).sum();
        self.parcel.objects.push(object.clone());
        self.add(OBJECT_BYTES * object.versions.len() + DIGEST_BYTES * pieces);
    }

    /// Packs a lease with those who wait for it.
    pub(crate) fn lease(&mut self, lease: &Lease) {
        self.parcel.leases.push(lease.clone());
        self.add(LEASE_BYTES * (1 + lease.waiters.len()));
    }

    /// Packs what is bound to an attempt.
    pub(crate) fn binding(&mut self, binding: &Binding) {
        self.parcel.bindings.push(binding.clone());
        self.add(LEASE_BYTES * (1 + binding.leases.len()));
    }

    /// Packs a job.
    pub(crate) fn job(&mut self, job: &Job) {
        self.parcel.jobs.push(job.clone());
        self.add(OBJECT_BYTES + job.spec.bytes as usize);
    }

    fn add(&mut self, bytes: usize) {
        self.bytes += bytes;
        if self.bytes >= PART_BYTES_MAX {
            self.close();
        }
    }

    /// Closes the part that is being packed, if there is anything in it.
    pub(crate) fn close(&mut self) {
        if self.bytes > 0 {
            let mut bytes = Vec::with_capacity(self.bytes);
            encode_into(&self.parcel, &mut bytes);
            self.parts.push(bytes.into());
            (self.parcel, self.bytes) = (Parcel::default(), 0);
        }
    }
}
