//! `RemoveWorker`: ends a worker's session. Its live claims are reopened in every shard, here at once and elsewhere by
//! message; the attempts count, as after silence.

use minicbor::{Decode, Encode};

use super::WorkerStanding;
use crate::outbox::Message;
use crate::shard::{Batch, Shard};
use crate::task::{AttemptOutcome, DeadReason};
use crate::{Effect, Namespace, RefusalCode, Reply, SessionId, WorkerId};

/// Ends a session.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct RemoveWorker {
    /// Which worker.
    #[n(0)]
    pub id: WorkerId,
    /// Only this session; absent: whichever is recorded.
    #[n(1)]
    pub session: Option<SessionId>,
    /// The worker left by itself or was dead for long: nothing is kept, and nothing reopened.
    #[n(2)]
    pub forget: bool,
}

impl Shard {
    pub(crate) fn apply_remove_worker(
        &mut self,
        batch: &mut Batch,
        namespace: &Namespace,
        order: &RemoveWorker,
    ) -> Reply {
        if self.core.shard != 0 {
            return Reply::refused(RefusalCode::WrongShard);
        }
        let key = (namespace.clone(), order.id.clone());
        let known = self.core.workers.get(&key).cloned();
        let known = known.filter(|known| order.session.is_none_or(|of| of == known.session));
        let Some(known) = known else {
            return Reply::refused(RefusalCode::WorkerNotFound);
        };
        if order.forget {
            self.forget_worker(&key);
            return Reply::WorkerGone;
        }
        if known.standing == WorkerStanding::Removed {
            return Reply::refused(RefusalCode::WorkerNotFound);
        }
        let others = self.core.shards.saturating_sub(1) as usize;
        if self.core.outbox.len() + others > self.core.limits.outbox_max as usize {
            return Reply::refused(RefusalCode::OutboxFull);
        }
        let mut record = (*known).clone();
        record.standing = WorkerStanding::Removed;
        self.put_worker(record);
        for target in 1..self.core.shards {
            let (namespace, worker) = key.clone();
            let gone = Message::WorkerGone { namespace, worker, session: known.session };
            self.put_message(batch, target, gone);
        }
        self.reopen_claims(batch, namespace, &order.id, known.session);
        Reply::WorkerGone
    }

    /// Ends all live claims of a session in this shard.
    pub(crate) fn reopen_claims(
        &mut self,
        batch: &mut Batch,
        namespace: &Namespace,
        worker: &WorkerId,
        session: SessionId,
    ) {
        let (of, id) = (namespace.clone(), worker.clone());
        batch.tell(Effect::SessionOver { namespace: of, worker: id, session });
        let is_theirs = |claim: &crate::ClaimView| {
            claim.session == session && claim.worker == *worker && claim.namespace == *namespace
        };
        let slots: Vec<u32> = self.claims().filter(is_theirs).map(|claim| claim.slot).collect();
        for slot in slots {
            let Some(task) = self.core.tasks.get(slot) else {
                continue;
            };
            let (next, reason) = self.next_attempt(task, 0, DeadReason::ClaimExpired);
            self.end_attempt(batch, slot, AttemptOutcome::Expired, None, next, reason);
        }
    }
}
