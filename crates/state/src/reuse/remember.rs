//! A completion that may be used again is told to the shard that its digest names.

use super::Stored;
use crate::limits::OBJECT_REFERENCES_MAX;
use crate::outbox::Message;
use crate::shard::{Batch, Shard};
use crate::task::Task;
use crate::{Digest, Namespace, ShardId};

impl Task {
    /// Digest of the task's work, if it says that results may be reused and all of it is known by content.
    pub(crate) fn reuse_key(&self) -> Option<Digest> {
        let work = self.extras.as_ref()?.work.as_ref()?;
        work.reuses().then(|| work.digest(&self.payload)).flatten()
    }
}

impl Shard {
    /// The shard that remembers some work.
    pub(super) fn memory_of(&self, key: &Digest) -> ShardId {
        let mut number = [0; 8];
        number.copy_from_slice(&key.0[..8]);
        (u64::from_le_bytes(number) % u64::from(self.core.shards.max(1))) as ShardId
    }

    /// Remembers what a task brought, here or in the shard that its digest names.
    pub(crate) fn remember_result(
        &mut self,
        batch: &mut Batch,
        namespace: &Namespace,
        key: Digest,
        stored: Stored,
    ) {
        let home = self.memory_of(&key);
        if home == self.core.shard {
            return self.keep_result(namespace, key, &stored);
        }
        if stored.fits() {
            let (namespace, stored) = (namespace.clone(), Box::new(stored));
            self.send_about_results(batch, home, Message::Remember { namespace, key, stored });
        }
    }

    /// Sends a message if there is room for it; whoever misses it runs its task. Tells whether it was sent.
    pub(super) fn send_about_results(
        &mut self,
        batch: &mut Batch,
        target: ShardId,
        message: Message,
    ) -> bool {
        // Half of the outbox is left to messages that something depends on.
        let pieces = self.index.reference_count + message.pieces().count() as u64;
        let room = self.core.outbox.len() < self.core.limits.outbox_max as usize / 2
            && pieces <= OBJECT_REFERENCES_MAX;
        if room {
            self.put_message(batch, target, message);
        }
        room
    }
}
