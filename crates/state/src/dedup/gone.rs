//! What is remembered of tasks that are no longer there: their names and bodies. A late duplicate of such a submission is
//! answered as one of a task that still exists, and never runs again (TQ-22), whether retention removed the task or
//! somebody dropped it.
//!
//! The entries lie among the remembered requests and share their bounds: 24 h of log time, counted from the removal, and
//! a number of entries. Nothing is kept of a task that was submitted longer ago than that. Begins with the order that
//! keeps dead tasks apart (`queue/keep_dead.rs`), since nodes of two versions must remember the same.
//!
//! Leaves out: tasks whose id was derived from their request, which is remembered itself; and tasks of jobs, which nobody
//! submits.

use super::remember::find_entry;
use super::{Outcome, SubmitEntry};
use crate::ids::{gone_hash, is_derived};
use crate::planted::{self, Bug};
use crate::shard::Shard;
use crate::slots::slot_of;
use crate::task::Task;
use crate::{Namespace, TaskId};

impl Shard {
    /// Remembers the name of a task that was just removed.
    pub(crate) fn remember_gone(&mut self, task: &Task) {
        let known_until_ms = task.enqueued_ms.saturating_add(self.core.limits.submit_window_ms);
        let is_known = self.core.dead_apart
            && known_until_ms > self.core.time_ms
            && !is_derived(&task.id)
            && !task.is_part_of_job();
        if !is_known || planted::active(Bug::GoneForgotten) {
            return;
        }
        let namespace = &self.core.queues[task.queue as usize].namespace;
        let key = gone_hash(namespace, &task.id);
        let home = slot_of(namespace, task.id.routing_key());
        // A follow-up may have the name of one that has gone; the first body stands for both.
        if self.find_gone(key).is_none() {
            let outcome = Outcome::Enqueued { created: true };
            self.remember_submit(key, task.body_hash, outcome, Some(home));
        }
    }

    /// Hash of the body of a task that was here under this name; none if it is unknown or forgotten.
    pub(crate) fn gone_body(&self, namespace: &Namespace, id: &TaskId) -> Option<u64> {
        if is_derived(id) || self.core.submits.len() == 0 {
            return None;
        }
        self.find_gone(gone_hash(namespace, id)).map(|entry| entry.body_hash)
    }

    fn find_gone(&self, key: [u64; 2]) -> Option<&SubmitEntry> {
        find_entry(&self.core.submits, &self.index.submits, key)
    }
}
