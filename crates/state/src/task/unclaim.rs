//! `Unclaim`: returns a claim that its worker never confirmed. The attempt does not count, and the
//! task goes back to its old place in line.

use std::sync::Arc;

use minicbor::{Decode, Encode};

use super::{AttemptOutcome, TaskState};
use crate::shard::{Batch, Shard};
use crate::{Fence, Namespace, Reply, TaskId};

/// Returns one claim.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Unclaim {
    /// The task.
    #[n(0)]
    pub id: TaskId,
    /// Token of the claim.
    #[n(1)]
    pub fence: Fence,
}

impl Shard {
    pub(crate) fn apply_unclaim(
        &mut self,
        batch: &mut Batch,
        namespace: &Namespace,
        order: &Unclaim,
    ) -> Reply {
        let slot = match self.live_claim(namespace, &order.id, order.fence) {
            Ok(slot) => slot,
            Err(code) => return Reply::refused(code),
        };
        let now_ms = self.core.time_ms;
        self.change_task(batch, slot, |task| {
            task.state = TaskState::Ready;
            task.attempt = task.attempt.saturating_sub(1);
            if let Some(history) = &mut task.history {
                let history = Arc::make_mut(history);
                history.newest.outcome = AttemptOutcome::Unclaimed;
                history.newest.ended_ms = now_ms;
            }
        });
        Reply::Unclaimed
    }
}
