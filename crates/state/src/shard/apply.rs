//! Applies one log entry. Only routes: every verb's rule lives in its own file.
//!
//! Order within an entry: log time moves on (never back, TQ-14), tasks past their
//! deadline die, due tasks become ready, aged records go, then the orders one by one, each seeing what the ones before it did,
//! and last a bounded step for jobs.

use super::{Batch, Shard};
use crate::batch::{decode_order, is_newer_order, read_frame};
use crate::dedup::Outcome;
use crate::ids::request_hash;
use crate::slots::slot_of;
use crate::task::BodyHashes;
use crate::{
    Applied, Audience, Claim, Command, Enqueue, Lsn, Namespace, Order, RefusalCode, Reply, TaskId,
};

/// What is known of an order before its verb runs.
#[derive(Clone, Copy)]
struct Known {
    request: Option<[u64; 2]>,
    voided: bool,
    /// Slot of its task; only looked up for an order that will be remembered.
    slot: Option<u16>,
}

impl Shard {
    /// Applies the entry at a log position. Total over the entry's bytes: an empty entry only moves
    /// the position, a broken one is counted and changes nothing else. Positions must rise.
    pub fn apply(&mut self, lsn: Lsn, entry: &[u8]) -> Applied {
        self.apply_for(lsn, entry, Audience::Watcher)
    }

    /// Applies the entry at a log position and puts together only what its audience wants to hear.
    pub fn apply_for(&mut self, lsn: Lsn, entry: &[u8], audience: Audience) -> Applied {
        assert!(lsn > self.core.applied, "entries must be applied in rising order");
        self.core.applied = lsn;
        self.instance_applies += 1;
        if entry.is_empty() {
            return Applied::default();
        }
        let frame = match read_frame(entry) {
            Ok(frame) => frame,
            Err(error) => {
                self.core.entries_refused += 1;
                return Applied { is_newer: error.is_newer(), ..Applied::default() };
            }
        };
        let mut batch = Batch { audience, ..Batch::default() };
        let listening = audience != Audience::Nobody;
        self.core.time_ms = self.core.time_ms.max(frame.time_ms);
        self.pass_deadlines(&mut batch);
        self.promote_due(&mut batch);
        self.retain_by_age(&mut batch);
        self.forget_requests();
        self.forget_results();
        let mut replies = Vec::with_capacity(if listening { frame.len() } else { 0 });
        for bytes in frame.orders() {
            let reply = match decode_order(bytes) {
                Some(order) => self.apply_order(&mut batch, order),
                None => {
                    batch.is_newer |= is_newer_order(bytes);
                    Reply::refused(RefusalCode::BadCommand)
                }
            };
            if listening {
                replies.push(reply);
            }
        }
        self.tend_jobs(&mut batch);
        self.end_twins(&mut batch);
        self.flush_jobs();
        let change = self.index.flush_queues(&self.core.queues);
        self.core.hash.add(change);
        let Batch { effects, is_newer, .. } = batch;
        Applied { orders: frame.len(), replies, effects, is_newer }
    }

    /// What the shard knows of an order beforehand; refused if its slot is away.
    fn know(&self, order: &Order) -> Result<Known, RefusalCode> {
        if self.is_order_away(order) {
            return Err(RefusalCode::SlotMoved);
        }
        let namespace = &order.namespace;
        let Some(key) = &order.request else {
            return Ok(Known { request: None, voided: false, slot: None });
        };
        let request = Some(request_hash(namespace, key));
        let slot = order.command.routing_key().map(|key| slot_of(namespace, key));
        Ok(Known { request, voided: self.is_voided(namespace, Some(key)), slot })
    }

    /// Runs an order unless its request is remembered; then answers as the first time.
    fn apply_order(&mut self, batch: &mut Batch, order: Order) -> Reply {
        let known = match self.know(&order) {
            Ok(known) => known,
            Err(code) => return Reply::refused(code),
        };
        let Order { namespace, command, .. } = order;
        let memo = known.request.and_then(|key| Some((key, command.remembered_by()?)));
        if let Some((key, body_hash)) = memo
            && let Some(reply) = self.recall(key, body_hash, known.voided, None)
        {
            return reply;
        }
        let reply = self.run(batch, &namespace, known, command);
        if let Some((key, body_hash)) = memo {
            self.remember(key, body_hash, known.slot, &reply);
        }
        reply
    }

    /// Every verb and its rule.
    fn run(
        &mut self,
        batch: &mut Batch,
        namespace: &Namespace,
        known: Known,
        command: Command,
    ) -> Reply {
        match command {
            Command::Enqueue(verb) => self.enqueue_once(batch, namespace, known, verb),
            Command::Claim(verb) => self.claim_once(batch, namespace, known, &verb),
            Command::Complete(verb) => self.apply_complete(batch, namespace, verb),
            Command::Fail(verb) => self.apply_fail(batch, namespace, verb),
            Command::Expire(verb) => self.apply_expire(batch, namespace, &verb),
            Command::Unclaim(verb) => self.apply_unclaim(batch, namespace, &verb),
            Command::Cancel(verb) => self.apply_cancel(batch, namespace, &verb),
            Command::SetQueue(verb) => self.apply_set_queue(batch, namespace, &verb),
            Command::Deliver(verb) => self.apply_deliver(batch, &verb),
            Command::Acked(verb) => self.apply_acked(batch, &verb),
            Command::SetMembers(verb) => self.apply_set_members(batch, verb),
            Command::ChangeMembers(verb) => self.apply_change_members(batch, verb),
            Command::SettleChange(verb) => self.apply_settle_change(batch, &verb),
            Command::SteerMember(verb) => self.apply_steer_member(batch, &verb),
            Command::Refound(verb) => self.apply_refound(batch, verb),
            Command::RaiseEpoch(verb) => self.apply_raise_epoch(&verb),
            Command::RaiseLevel(verb) => self.apply_raise_level(batch, &verb),
            Command::TuneElections(verb) => self.apply_tune_elections(batch, &verb),
            Command::Retry(verb) => self.apply_retry(batch, namespace, &verb),
            Command::Drop(verb) => self.apply_drop(batch, namespace, &verb),
            Command::Sweep(verb) => self.apply_sweep(batch, namespace, &verb),
            Command::Void(verb) => self.apply_void(namespace, &verb),
            Command::KeepDead(verb) => self.apply_keep_dead(&verb),
            Command::SetSchedule(verb) => self.apply_set_schedule(namespace, verb),
            Command::DeleteSchedule(verb) => self.apply_delete_schedule(namespace, &verb),
            Command::Fire(verb) => self.apply_fire(batch, namespace, &verb),
            Command::PutObject(verb) => self.apply_put_object(namespace, verb),
            Command::DeleteObject(verb) => self.apply_delete_object(namespace, verb),
            Command::Collect(verb) => self.apply_collect(&verb),
            Command::AddToken(verb) => self.apply_add_token(verb),
            Command::RevokeToken(verb) => self.apply_revoke_token(&verb),
            Command::Grow(verb) => self.apply_grow(batch, verb),
            Command::AcquireLease(verb) => self.apply_acquire_lease(batch, namespace, verb),
            Command::ReleaseLease(verb) => self.apply_release_lease(batch, namespace, &verb),
            Command::ExpireLease(verb) => self.apply_expire_lease(batch, namespace, &verb),
            Command::SubmitJob(verb) => self.apply_submit_job(namespace, verb),
            Command::Checkpoint(verb) => self.apply_checkpoint(namespace, verb),
            Command::Duplicate(verb) => self.apply_duplicate(batch, namespace, &verb),
            Command::CancelJob(verb) => self.apply_cancel_job(namespace, &verb),
            Command::RegisterWorker(verb) => self.apply_register_worker(namespace, verb),
            Command::DrainWorker(verb) => self.apply_drain_worker(namespace, &verb),
            Command::RemoveWorker(verb) => self.apply_remove_worker(batch, namespace, &verb),
            Command::SetQuota(verb) => self.apply_set_quota(batch, namespace, &verb),
        }
    }

    /// An enqueue needs its hashes in any case, so it looks them up itself.
    fn enqueue_once(
        &mut self,
        batch: &mut Batch,
        namespace: &Namespace,
        known: Known,
        verb: Enqueue,
    ) -> Reply {
        let hashes = BodyHashes::of(&verb);
        let Some(key) = known.request else {
            return self.apply_enqueue(batch, namespace, verb, hashes);
        };
        if let Some(reply) = self.recall(key, hashes.body, known.voided, Some(&verb.id)) {
            return reply;
        }
        let reply = self.apply_enqueue(batch, namespace, verb, hashes);
        self.remember(key, hashes.body, known.slot, &reply);
        reply
    }

    /// Claims are remembered in a list of their own, with what they were given.
    fn claim_once(
        &mut self,
        batch: &mut Batch,
        namespace: &Namespace,
        known: Known,
        verb: &Claim,
    ) -> Reply {
        self.apply_claim(batch, namespace, known.request, known.voided, verb)
    }

    /// What a request was answered the first time, or that it was voided; none if it is new.
    fn recall(
        &self,
        key: [u64; 2],
        body_hash: u64,
        voided: bool,
        id: Option<&TaskId>,
    ) -> Option<Reply> {
        match self.recall_submit(key, body_hash) {
            Some(Ok(outcome)) => Some(rebuild_reply(outcome, id)),
            Some(Err(code)) => Some(Reply::refused(code)),
            None => voided.then(|| Reply::refused(RefusalCode::RequestVoided)),
        }
    }

    fn remember(&mut self, key: [u64; 2], body_hash: u64, slot: Option<u16>, reply: &Reply) {
        if let Some(outcome) = Outcome::of(reply) {
            self.remember_submit(key, body_hash, outcome, slot);
        }
    }
}

/// The first reply, from what is remembered and the resent order.
fn rebuild_reply(outcome: Outcome, id: Option<&TaskId>) -> Reply {
    match (outcome, id) {
        (Outcome::Enqueued { created }, Some(id)) => Reply::Enqueued { id: id.clone(), created },
        (Outcome::Enqueued { .. }, None) => Reply::refused(RefusalCode::IdempotencyConflict),
        (Outcome::Cancelled, _) => Reply::Cancelled,
        (Outcome::QueueSet { version }, _) => Reply::QueueSet { version },
        (Outcome::Refused { code }, _) => Reply::refused(code),
        (Outcome::Retried, _) => Reply::Retried,
        (Outcome::Dropped, _) => Reply::Dropped,
        (Outcome::Swept { count, next }, _) => Reply::Swept { count, next },
        (Outcome::ScheduleSet { version }, _) => Reply::ScheduleSet { version },
        (Outcome::ScheduleDeleted, _) => Reply::ScheduleDeleted,
        (Outcome::ObjectPut { version, fresh }, _) => Reply::ObjectPut { version, fresh },
        (Outcome::ObjectDeleted { versions }, _) => Reply::ObjectDeleted { versions },
        (Outcome::LeaseReleased, _) => Reply::LeaseReleased,
        (Outcome::JobSubmitted { created }, _) => Reply::JobSubmitted { created },
        (Outcome::JobCancelled, _) => Reply::JobCancelled,
        (Outcome::Growing { shards, slots }, _) => Reply::Growing { shards, slots },
    }
}
