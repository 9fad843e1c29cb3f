//! `Expire`: ends a claim whose lifetime is over. The leader's clock decides when to propose it;
//! the fence decides whether it counts (Q6), so a late or repeated proposal changes nothing.
//!
//! A task whose worker fell silent is ready again at once: waiting would help nobody. One that took
//! longer than its timeout waits out its backoff, as after a failure. At the attempt limit it is
//! dead instead (TQ-8).

use minicbor::{Decode, Encode};

use super::fail::backoff_ms;
use super::{AttemptOutcome, DeadReason};
use crate::planted::{self, Bug};
use crate::shard::{Batch, Shard};
use crate::{Fence, Namespace, RefusalCode, Reply, TaskId};

/// Ends one claim.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Expire {
    /// The task.
    #[n(0)]
    pub id: TaskId,
    /// Token of the claim.
    #[n(1)]
    pub fence: Fence,
    /// Why.
    #[n(2)]
    #[cbor(default)]
    pub cause: ExpireCause,
    /// Jitter on the backoff after a timeout, drawn by the leader: -500 to 500 thousandths.
    #[n(3)]
    #[cbor(default)]
    pub jitter_permille: i16,
}

/// Why a claim ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
#[cbor(index_only)]
pub enum ExpireCause {
    /// Its worker did not renew it.
    #[default]
    #[n(0)]
    Silent,
    /// The attempt took longer than the task's timeout.
    #[n(1)]
    TimedOut,
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
        let Some(task) = self.core.tasks.get(slot) else {
            return Reply::refused(RefusalCode::TaskNotFound);
        };
        let (outcome, spent, delay_ms) = match order.cause {
            ExpireCause::Silent => (AttemptOutcome::Expired, DeadReason::ClaimExpired, 0),
            ExpireCause::TimedOut => {
                let delay_ms = backoff_ms(task.backoff, task.attempt, order.jitter_permille);
                (AttemptOutcome::TimedOut, DeadReason::TimedOut, delay_ms)
            }
        };
        let (next, reason) = self.next_attempt(task, delay_ms, spent);
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
