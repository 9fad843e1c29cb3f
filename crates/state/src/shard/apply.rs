//! Applies one log entry. Only routes: every verb's rule lives in its own file.
//!
//! Order within an entry: log time moves on (never back, TQ-14), tasks past their
//! deadline die, due tasks become ready, aged records go, then the orders one by one, each seeing what the ones before it did,
//! and last a bounded step for jobs.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::{Batch, Shard};
use crate::batch::{decode_order, read_frame};
use crate::dedup::Outcome;
use crate::hash::encode_into;
use crate::ids::request_hash;
use crate::slots::slot_of;
use crate::task::BodyHashes;
use crate::{
    Applied, Audience, Command, Grow, Lsn, Namespace, Order, RefusalCode, Reply, SetQueue, TaskId,
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
        let Ok(frame) = read_frame(entry) else {
            self.core.entries_refused += 1;
            return Applied::default();
        };
        let mut batch = Batch { audience, ..Batch::default() };
        let listening = audience != Audience::Nobody;
        self.core.time_ms = self.core.time_ms.max(frame.time_ms);
        self.pass_deadlines(&mut batch);
        self.promote_due(&mut batch);
        self.retain_by_age(&mut batch);
        self.forget_requests();
        let mut replies = Vec::with_capacity(if listening { frame.len() } else { 0 });
        for bytes in frame.orders() {
            let reply = match decode_order(bytes) {
                Some(order) => self.apply_order(&mut batch, order),
                None => Reply::refused(RefusalCode::BadCommand),
            };
            if listening {
                replies.push(reply);
            }
        }
        self.tend_jobs(&mut batch);
        let change = self.index.flush_queues(&self.core.queues);
        self.core.hash.add(change);
        Applied { orders: frame.len(), replies, effects: batch.effects }
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

    fn apply_order(&mut self, batch: &mut Batch, order: Order) -> Reply {
        let known = match self.know(&order) {
            Ok(known) => known,
            Err(code) => return Reply::refused(code),
        };
        let namespace = order.namespace;
        match order.command {
            Command::Enqueue(verb) => {
                let hashes = BodyHashes::of(&verb);
                let id = verb.id.clone();
                self.once(batch, known, hashes.body, Some(&id), |shard, batch| {
                    shard.apply_enqueue(batch, &namespace, verb, hashes)
                })
            }
            Command::Cancel(verb) => {
                self.once(batch, known, verb.body_hash(), None, |shard, batch| {
                    shard.apply_cancel(batch, &namespace, &verb)
                })
            }
            Command::SetQueue(verb) => {
                self.once(batch, known, settings_hash(&verb), None, |shard, batch| {
                    shard.apply_set_queue(batch, &namespace, &verb)
                })
            }
            Command::Claim(verb) => {
                self.apply_claim(batch, &namespace, known.request, known.voided, &verb)
            }
            Command::Complete(verb) => self.apply_complete(batch, &namespace, verb),
            Command::Fail(verb) => self.apply_fail(batch, &namespace, verb),
            Command::Expire(verb) => self.apply_expire(batch, &namespace, &verb),
            Command::Unclaim(verb) => self.apply_unclaim(batch, &namespace, &verb),
            Command::Deliver(verb) => self.apply_deliver(batch, &verb),
            Command::Acked(verb) => self.apply_acked(batch, &verb),
            Command::SetMembers(verb) => self.apply_set_members(batch, verb),
            Command::ChangeMembers(verb) => self.apply_change_members(batch, verb),
            Command::SettleChange(verb) => self.apply_settle_change(batch, &verb),
            Command::SteerMember(verb) => self.apply_steer_member(batch, &verb),
            Command::Refound(verb) => self.apply_refound(batch, verb),
            Command::RaiseEpoch(verb) => self.apply_raise_epoch(&verb),
            verb @ (Command::Retry(_) | Command::Drop(_) | Command::Sweep(_)) => {
                self.apply_repair_order(batch, &namespace, known, verb)
            }
            Command::Void(verb) => self.apply_void(&namespace, &verb),
            verb @ (Command::SetSchedule(_) | Command::DeleteSchedule(_)) => {
                self.apply_schedule_order(batch, &namespace, known, verb)
            }
            Command::Fire(verb) => self.apply_fire(batch, &namespace, &verb),
            Command::Collect(verb) => self.apply_collect(&verb),
            verb @ (Command::AddToken(_) | Command::RevokeToken(_)) => self.apply_token_order(verb),
            verb @ (Command::PutObject(_) | Command::DeleteObject(_)) => {
                self.apply_object_order(batch, &namespace, known, verb)
            }
            Command::Grow(verb) => self.apply_growth_order(batch, known, verb),
            // Leases and workers, and behind them jobs.
            verb => self.apply_holder_order(batch, &namespace, known, verb),
        }
    }

    fn apply_schedule_order(
        &mut self,
        batch: &mut Batch,
        namespace: &Namespace,
        known: Known,
        command: Command,
    ) -> Reply {
        match command {
            Command::SetSchedule(verb) => {
                self.once(batch, known, verb.body_hash(), None, |shard, _| {
                    shard.apply_set_schedule(namespace, verb)
                })
            }
            Command::DeleteSchedule(verb) => {
                self.once(batch, known, verb.body_hash(), None, |shard, _| {
                    shard.apply_delete_schedule(namespace, &verb)
                })
            }
            _ => Reply::refused(RefusalCode::BadCommand),
        }
    }

    /// What operators do to tasks that have ended, or to many at once.
    fn apply_repair_order(
        &mut self,
        batch: &mut Batch,
        namespace: &Namespace,
        known: Known,
        command: Command,
    ) -> Reply {
        match command {
            Command::Retry(verb) => {
                self.once(batch, known, verb.body_hash(), None, |shard, batch| {
                    shard.apply_retry(batch, namespace, &verb)
                })
            }
            Command::Drop(verb) => {
                self.once(batch, known, verb.body_hash(), None, |shard, batch| {
                    shard.apply_drop(batch, namespace, &verb)
                })
            }
            Command::Sweep(verb) => {
                self.once(batch, known, verb.body_hash(), None, |shard, batch| {
                    shard.apply_sweep(batch, namespace, &verb)
                })
            }
            _ => Reply::refused(RefusalCode::BadCommand),
        }
    }

    fn apply_token_order(&mut self, command: Command) -> Reply {
        match command {
            Command::AddToken(verb) => self.apply_add_token(verb),
            Command::RevokeToken(verb) => self.apply_revoke_token(&verb),
            _ => Reply::refused(RefusalCode::BadCommand),
        }
    }

    /// Leases and workers: those who hold something as long as they prove their life.
    fn apply_holder_order(
        &mut self,
        batch: &mut Batch,
        namespace: &Namespace,
        known: Known,
        command: Command,
    ) -> Reply {
        match command {
            Command::AcquireLease(verb) => self.apply_acquire_lease(batch, namespace, verb),
            Command::ReleaseLease(verb) => {
                self.once(batch, known, verb.body_hash(), None, |shard, batch| {
                    shard.apply_release_lease(batch, namespace, &verb)
                })
            }
            Command::RegisterWorker(verb) => self.apply_register_worker(namespace, verb),
            Command::DrainWorker(verb) => self.apply_drain_worker(namespace, &verb),
            Command::RemoveWorker(verb) => self.apply_remove_worker(batch, namespace, &verb),
            Command::ExpireLease(verb) => self.apply_expire_lease(batch, namespace, &verb),
            other => self.apply_job_order(batch, namespace, known, other),
        }
    }

    fn apply_job_order(
        &mut self,
        batch: &mut Batch,
        namespace: &Namespace,
        known: Known,
        command: Command,
    ) -> Reply {
        match command {
            Command::SubmitJob(verb) => {
                self.once(batch, known, verb.body_hash(), None, |shard, _| {
                    shard.apply_submit_job(namespace, verb)
                })
            }
            Command::CancelJob(verb) => {
                self.once(batch, known, verb.body_hash(), None, |shard, _| {
                    shard.apply_cancel_job(namespace, &verb)
                })
            }
            _ => Reply::refused(RefusalCode::BadCommand),
        }
    }

    fn apply_growth_order(&mut self, batch: &mut Batch, known: Known, verb: Grow) -> Reply {
        let body_hash = verb.body_hash();
        self.once(batch, known, body_hash, None, |shard, batch| shard.apply_grow(batch, verb))
    }

    fn apply_object_order(
        &mut self,
        batch: &mut Batch,
        namespace: &Namespace,
        known: Known,
        command: Command,
    ) -> Reply {
        match command {
            Command::PutObject(verb) => {
                self.once(batch, known, verb.body_hash(), None, |shard, _| {
                    shard.apply_put_object(namespace, verb)
                })
            }
            Command::DeleteObject(verb) => {
                self.once(batch, known, verb.body_hash(), None, |shard, _| {
                    shard.apply_delete_object(namespace, verb)
                })
            }
            _ => Reply::refused(RefusalCode::BadCommand),
        }
    }

    /// Runs a verb unless its request is remembered; then answers as the first time.
    fn once(
        &mut self,
        batch: &mut Batch,
        known: Known,
        body_hash: u64,
        id: Option<&TaskId>,
        verb: impl FnOnce(&mut Shard, &mut Batch) -> Reply,
    ) -> Reply {
        let Some(key) = known.request else {
            return verb(self, batch);
        };
        match self.recall_submit(key, body_hash) {
            Some(Ok(outcome)) => return rebuild_reply(outcome, id),
            Some(Err(code)) => return Reply::refused(code),
            None if known.voided => return Reply::refused(RefusalCode::RequestVoided),
            None => {}
        }
        let reply = verb(self, batch);
        if let Some(outcome) = Outcome::of(&reply) {
            self.remember_submit(key, body_hash, outcome, known.slot);
        }
        reply
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

/// Hash of a settings order as given.
fn settings_hash(order: &SetQueue) -> u64 {
    let mut bytes = Vec::with_capacity(64);
    encode_into(order, &mut bytes);
    xxh3_64_with_seed(&bytes, 8)
}
