//! `Expire`: ends a claim whose lifetime is over. The leader's clock decides when to propose it;
//! the fence decides whether it counts (Q6), so a late or repeated proposal changes nothing.
//!
//! The task is ready again at once: its worker is gone, and waiting would help nobody. At the
//! attempt limit it is dead instead (TQ-8).

use minicbor::{Decode, Encode};

use super::{AttemptOutcome, DeadReason};
use crate::planted::{self, Bug};
use crate::shard::{Batch, Shard};
use crate::{FailNext, Fence, Namespace, RefusalCode, Reply, TaskId};

/// Ends one claim.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Expire {
    /// The task.
    #[n(0)]
    pub id: TaskId,
    /// Token of the claim.
    #[n(1)]
    pub fence: Fence,
}

impl Shard {
    pub(crate) fn apply_expire(
        &mut self,
        batch: &mut Batch,
        namespace: &Namespace,
        order: &Expire,
    ) -> Reply {
        let found = match planted::active(Bug::ExpireUnfenced) {
            true => self.any_claim(namespace, &order.id),
            false => self.live_claim(namespace, &order.id, order.fence),
        };
        let slot = match found {
            Ok(slot) => slot,
            Err(code) => return Reply::refused(code),
        };
        let spent = |slot| {
            let task = self.core.tasks.get(slot)?;
            Some(task.attempt >= task.max_attempts)
        };
        let next = match spent(slot) {
            Some(true) => FailNext::Dead,
            _ => FailNext::Ready,
        };
        let (outcome, reason) = (AttemptOutcome::Expired, DeadReason::ClaimExpired);
        self.end_attempt(batch, slot, outcome, None, next, reason);
        Reply::Expired { next }
    }

    /// The slot of a task's live claim, whatever its fence.
    fn any_claim(&self, namespace: &Namespace, id: &TaskId) -> Result<u32, RefusalCode> {
        let slot = self.find_task(namespace, id).ok_or(RefusalCode::TaskNotFound)?;
        let task = self.core.tasks.get(slot).ok_or(RefusalCode::TaskNotFound)?;
        self.live_claim(namespace, id, task.fence)
    }
}
