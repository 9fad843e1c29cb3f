//! Waits for the disk: what was handed out, and what may happen once it is durable.
//!
//! Promises: answers leave in order, never before the batch that they depend on (R8); entries are acknowledged to
//! the engine in order; a snapshot also waits for its installation.

use super::Shard;
use super::roles::Cause;
use crate::message::Message;

/// Work handed out in one batch.
pub(super) struct Pending {
    /// The batch.
    pub(super) seq: u64,
    /// Whether that batch is durable.
    pub(super) is_durable: bool,
    /// Newest engine turn in it.
    pub(super) number: u64,
    /// Index of a snapshot in it, which must be installed too.
    pub(super) snapshot: Option<u64>,
    /// Answers that wait for it.
    pub(super) held: Vec<Message>,
}

impl Shard {
    /// All batches up to and including `seq` are durable.
    pub(crate) fn persisted(&mut self, seq: u64) {
        let mut is_news = false;
        for pending in self.pending.iter_mut().take_while(|pending| pending.seq <= seq) {
            is_news |= !pending.is_durable;
            pending.is_durable = true;
        }
        if is_news {
            self.release();
        }
    }

    /// Tells the engine of durable work and lets go of the answers that waited for it.
    pub(super) fn release(&mut self) {
        let installing = self.installing;
        while let Some(pending) = self.pending.pop_front_if(|pending| {
            let is_installed = match (pending.snapshot, installing) {
                (Some(index), Some(waiting)) => index < waiting,
                _ => true,
            };
            pending.is_durable && is_installed
        }) {
            self.raw.on_persist_ready(pending.number);
            self.released.extend(pending.held);
        }
        self.advance_applied();
        self.settle(Cause::Other);
    }

    /// All entries up to and including `index` are applied.
    pub(crate) fn applied(&mut self, index: u64) {
        let emitted = self.emitted;
        assert!(index <= emitted, "entry {index} is applied but only {emitted} was handed out");
        if index > self.applied {
            self.applied = index;
            self.advance_applied();
            self.trim();
            self.settle(Cause::Other);
        }
    }

    /// Tells the engine how far the state is. It must not hear of more than is durable: an installed snapshot
    /// may be ahead of the log's restart.
    fn advance_applied(&mut self) {
        let log = &self.raw.raft.raft_log;
        let reachable = self.applied.min(log.committed).min(log.persisted);
        if reachable > log.applied {
            self.raw.advance_apply_to(reachable);
        }
    }
}
