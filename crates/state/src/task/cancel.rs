//! `Cancel`: settles an unfinished task as cancelled. After it no completion is accepted; before
//! it, exactly one of the two wins (Q10).

use std::sync::Arc;

use minicbor::{Decode, Encode};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::{AttemptOutcome, TaskState};
use crate::shard::{Batch, Shard};
use crate::{Namespace, RefusalCode, Reply, TaskId};

/// Cancels one task.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Cancel {
    /// The task.
    #[n(0)]
    pub id: TaskId,
}

impl Cancel {
    /// Hash of the order as given.
    pub(crate) fn body_hash(&self) -> u64 {
        xxh3_64_with_seed(self.id.as_str().as_bytes(), 7)
    }
}

impl Shard {
    pub(crate) fn apply_cancel(
        &mut self,
        batch: &mut Batch,
        namespace: &Namespace,
        order: &Cancel,
    ) -> Reply {
        let Some(slot) = self.find_task(namespace, &order.id) else {
            return Reply::refused(RefusalCode::TaskNotFound);
        };
        if self.core.tasks.get(slot).is_some_and(|task| task.state.is_terminal()) {
            return Reply::refused(RefusalCode::TaskFinished);
        }
        self.cancel_slot(batch, slot);
        Reply::Cancelled
    }

    /// Cancels the unfinished task at a slot.
    pub(crate) fn cancel_slot(&mut self, batch: &mut Batch, slot: u32) {
        let (sequence, now_ms) = (self.next_sequence(), self.core.time_ms);
        self.change_task(batch, slot, |task| {
            let was_claimed = task.state == TaskState::Claimed;
            task.state = TaskState::Cancelled;
            task.sequence = sequence;
            task.moment_ms = now_ms;
            if let (true, Some(history)) = (was_claimed, &mut task.history) {
                let history = Arc::make_mut(history);
                history.newest.outcome = AttemptOutcome::Cancelled;
                history.newest.ended_ms = now_ms;
            }
        });
    }
}
