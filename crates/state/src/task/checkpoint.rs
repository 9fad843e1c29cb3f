//! `Checkpoint`: keeps how far an attempt has come, so that the next one can go on from there.
//!
//! Promise: accepted only from the worker and fence of the live claim, so a stale attempt can never put an older one in place of a
//! newer (Q4). There is one per task, the object `tasks/<task>/.checkpoint`; it goes when the task is done, or goes itself.
//!
//! Left out: what is in it.

use std::sync::Arc;

use minicbor::{Decode, Encode};

use super::Task;
use crate::limits::{CHECKPOINT_BYTES_MAX, OBJECT_REFERENCES_MAX, OBJECT_VERSIONS_TOTAL_MAX};
use crate::object::{BUCKET_TASKS, Object, ObjectKey, ObjectVersion, check_content};
use crate::planted::{self, Bug};
use crate::shard::Shard;
use crate::{
    BucketName, Digest, Digests, Fence, Namespace, ObjectName, RefusalCode, Reply, TaskId, WorkerId,
};

/// Name among the files of a task. A task brings outputs only when its checkpoint is gone.
const NAME: &str = ".checkpoint";

/// What a checkpoint is to those who download it.
const CONTENT_TYPE: &str = "application/octet-stream";

/// Keeps how far an attempt has come. The bytes are on a majority of the nodes before this is proposed.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Checkpoint {
    /// The task.
    #[n(0)]
    pub id: TaskId,
    /// Token of the claim.
    #[n(1)]
    pub fence: Fence,
    /// Who runs it.
    #[n(2)]
    pub worker: WorkerId,
    /// Bytes in all.
    #[n(3)]
    pub size: u64,
    /// Digest of all bytes.
    #[n(4)]
    pub digest: Digest,
    /// Digest of each piece.
    #[n(5)]
    pub chunks: Digests,
}

impl Shard {
    pub(crate) fn apply_checkpoint(&mut self, namespace: &Namespace, order: Checkpoint) -> Reply {
        match self.keep_checkpoint(namespace, order) {
            Ok((version, fresh)) => Reply::ObjectPut { version, fresh },
            Err(code) => Reply::refused(code),
        }
    }

    fn keep_checkpoint(
        &mut self,
        namespace: &Namespace,
        order: Checkpoint,
    ) -> Result<(u64, bool), RefusalCode> {
        let slot = self.find_task(namespace, &order.id).ok_or(RefusalCode::TaskNotFound)?;
        if !planted::active(Bug::CheckpointUnfenced) {
            self.check_claim(slot, order.fence, Some(&order.worker))?;
        }
        check_content(order.size, &order.chunks, CONTENT_TYPE)?;
        if order.size > CHECKPOINT_BYTES_MAX {
            return Err(RefusalCode::TooLarge);
        }
        let key = place(namespace, &order.id).ok_or(RefusalCode::BadValue)?;
        let known = self.core.objects.get(&key).and_then(|object| object.newest());
        if let Some(known) = known.filter(|known| known.digest == order.digest) {
            return Ok((known.version, false));
        }
        let references = self.index.reference_count + order.chunks.len() as u64;
        if self.index.object_versions >= OBJECT_VERSIONS_TOTAL_MAX
            || references > OBJECT_REFERENCES_MAX
        {
            return Err(RefusalCode::TooManyObjects);
        }
        let version = ObjectVersion {
            version: self.next_sequence(),
            size: order.size,
            content_type: CONTENT_TYPE.to_owned(),
            digest: order.digest,
            chunks: order.chunks,
            created_ms: self.core.time_ms,
            address: None,
        };
        let number = version.version;
        let (namespace, bucket, name) = key;
        self.put_object(Object { namespace, bucket, name, versions: vec![version] });
        self.note_checkpoint(slot);
        Ok((number, true))
    }

    /// Notes that a task has one. Its state does not change, and neither does any line.
    fn note_checkpoint(&mut self, slot: u32) {
        let Some(task) = self.core.tasks.get_mut(slot) else {
            return;
        };
        if let Some(history) = &mut task.history {
            self.core.hash.remove(task.digest);
            Arc::make_mut(history).checkpoint = Some(true);
            task.digest = task.compute_digest(slot, &mut self.scratch);
            self.core.hash.add(task.digest);
        }
    }

    /// Removes the checkpoint of a task that needs none any more.
    pub(crate) fn withdraw_checkpoint(&mut self, task: &Task) {
        if !task.has_checkpoint() {
            return;
        }
        let namespace = &self.core.queues[task.queue as usize].namespace;
        if let Some(key) = place(namespace, &task.id) {
            self.remove_object(&key);
        }
    }
}

impl Task {
    /// Whether an attempt has left one.
    pub(crate) fn has_checkpoint(&self) -> bool {
        self.history.as_ref().is_some_and(|history| history.checkpoint == Some(true))
    }
}

fn place(namespace: &Namespace, id: &TaskId) -> Option<ObjectKey> {
    let bucket = BucketName::parse(BUCKET_TASKS).ok()?;
    let name = ObjectName::parse(&format!("{id}/{NAME}")).ok()?;
    Some((namespace.clone(), bucket, name))
}
