//! Which report settled a task that is no longer there. A worker whose report was taken and whose answer got lost sends
//! it again; retention may have removed the task meanwhile, at once where a queue keeps none. It is told what it would
//! have been told the first time, and nobody else is: not another worker, and no other attempt (TQ-6, TQ-21).
//!
//! In a list of its own, with the bounds of claims, so that finished tasks push no remembered submission out. Begins, as
//! the names of such tasks do (`gone.rs`), with the order that keeps dead tasks apart.
//!
//! Leaves out: failures. A task that they ended is dead, and those are kept for long.

use minicbor::{Decode, Encode};

use super::RingEntry;
use super::remember::find_entry;
use crate::Namespace;
use crate::hash::{RecordKind, digest_record};
use crate::ids::settled_hash;
use crate::reuse::REUSED_WORKER;
use crate::shard::Shard;
use crate::slots::slot_of;
use crate::task::{AttemptOutcome, Complete, Task, TaskState};

/// One remembered report.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct SettledEntry {
    /// Hash of the task's name, the fence and the worker.
    #[n(0)]
    pub(crate) key: [u64; 2],
    /// When the task was removed, in log time.
    #[n(1)]
    pub(crate) time_ms: u64,
    /// The slot that it moves with.
    #[n(2)]
    pub(crate) slot: u16,
}

impl RingEntry for SettledEntry {
    fn key(&self) -> [u64; 2] {
        self.key
    }
    fn time_ms(&self) -> u64 {
        self.time_ms
    }
    fn digest(&self, _number: u64) -> u64 {
        // A fence is given out once, so each key is there once and its place need not count.
        digest_record(RecordKind::Settled, self)
    }
}

impl Shard {
    /// Remembers the report that settled a task which was just removed, unless that was long ago.
    pub(crate) fn remember_settled(&mut self, task: &Task) {
        let time_ms = self.core.time_ms;
        let known_until_ms = task.moment_ms.saturating_add(self.core.limits.claim_window_ms);
        let is_known = self.core.dead_apart && task.state == TaskState::Done;
        if !is_known || known_until_ms <= time_ms {
            return;
        }
        let Some(attempt) = task.history.as_ref().map(|history| &history.newest) else {
            return;
        };
        // Nobody reported what was found done before, so nobody sends that again.
        let is_reported = attempt.worker.as_str() != REUSED_WORKER;
        if attempt.outcome != AttemptOutcome::Completed || !is_reported {
            return;
        }
        let namespace = &self.core.queues[task.queue as usize].namespace;
        let key = settled_hash(namespace, &task.id, attempt.fence, &attempt.worker);
        let slot = slot_of(namespace, task.id.routing_key());
        self.adopt_settled(SettledEntry { key, time_ms, slot });
    }

    /// Remembers a report once.
    pub(crate) fn adopt_settled(&mut self, entry: SettledEntry) {
        if self.find_settled(entry.key).is_none() {
            self.keep_settled(entry);
        }
    }

    /// Whether this report settled a task that is no longer there.
    pub(crate) fn has_settled(&self, namespace: &Namespace, order: &Complete) -> bool {
        self.core.settled.len() > 0
            && self
                .find_settled(settled_hash(namespace, &order.id, order.fence, &order.worker))
                .is_some()
    }

    /// Reports about tasks of a slot.
    pub(crate) fn settled_of(&self, slot: u16) -> impl Iterator<Item = &SettledEntry> {
        self.core.settled.iter().map(|(_, entry)| entry).filter(move |entry| entry.slot == slot)
    }

    fn find_settled(&self, key: [u64; 2]) -> Option<&SettledEntry> {
        find_entry(&self.core.settled, &self.index.settled, key)
    }
}
