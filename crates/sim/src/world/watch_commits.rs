//! Looks at what is committed: evidence on disks (R6), then every order and its reply, in log order (Q2 to Q10).

use ikada_consensus::{NodeId, Role};
use ikada_state::{
    Applied, Claim, Command, Complete, Deliver, Effect, Enqueue, Expire, ExpireCause, FailNext,
    Fence, Grant, Message, Namespace, Order, RefusalCode, Reply, ShardId, TaskId,
};

use super::World;
use crate::check::fence::{self, Came};
use crate::check::no_early_expiry::{self, Expiry};
use crate::check::settings_version::SettingsVersion;
use crate::check::{
    ShardView, Verdict, attempts, fair_offer, follow_ups, honest_outcome, one_holder,
    quorum_evidence, token_order, violation, within_quota,
};
use crate::marks::Mark;
use crate::oracle::batch::Batch;
use crate::oracle::jobs::Part;
use crate::oracle::ledger::Committed;
use crate::oracle::mirror::EntryMark;
use crate::oracle::model::{End, Holder};
use crate::workload::tenant;

/// A claim returned later than this after its grant was missing from its worker's lists: 2 s on a clock that may run at
/// double rate.
const ROLL_CALL_US: u64 = 1_000_000;

impl World {
    /// A node reports a commit index: whatever is new in it is fixed for ever.
    pub(super) fn observe_commits(&mut self, view: &ShardView) -> Verdict {
        let shard = view.shard;
        let position = usize::from(shard);
        loop {
            let next = self.watch.ledgers[position].committed_index() + 1;
            if view.commit < next {
                return Ok(());
            }
            let log = self.machines.get(&view.node).and_then(|m| m.mirror.memory.get(&shard));
            let Some(mark) = log.and_then(|log| log.get(next)) else {
                return violation(
                    "R5 committed_forever",
                    format!(
                        "shard {shard}: node {} reports {next} committed and does not have it",
                        view.node
                    ),
                );
            };
            self.check_evidence(view, &mark)?;
            let Some(committed) = self.watch.ledgers[position].commit(mark, view.term) else {
                return violation(
                    "R5 committed_forever",
                    format!("shard {shard}: nobody wrote {}.{next}", mark.term),
                );
            };
            self.tally.committed += 1;
            let now_us = self.now_us();
            self.watch.committed_us.insert((shard, next), now_us);
            if view.role == Role::Leader && mark.term < view.term {
                self.marks.hit(Mark::PriorTermCommit);
                self.marks.hit(Mark::EntrySurvivedItsLeader);
            }
            self.follow(shard, committed)?;
        }
    }

    /// R6, in the configuration before or after this turn: a turn may commit on both sides of a change.
    fn check_evidence(&self, view: &ShardView, mark: &EntryMark) -> Verdict {
        if view.role != Role::Leader {
            return Ok(());
        }
        let Some(machine) = self.machines.get(&view.node) else {
            return Ok(());
        };
        let Some(process) = &machine.process else {
            return Ok(());
        };
        let before = &process.confs[usize::from(view.shard)];
        let after = process.replica.consensus().conf(view.shard);
        let holds = |node: NodeId| {
            self.machines.get(&node).is_some_and(|machine| machine.mirror.holds(view.shard, mark))
        };
        let verdict = quorum_evidence::check(view.shard, mark, &after, holds);
        if verdict.is_err() && !before.is_empty() && *before != after {
            return quorum_evidence::check(view.shard, mark, before, holds);
        }
        verdict
    }

    /// Every order of a committed entry, with its reply.
    pub(super) fn follow(&mut self, shard: ShardId, committed: Committed) -> Verdict {
        let Committed { lsn, batch, applied, data } = committed;
        for effect in &applied.effects {
            self.follow_effect(shard, effect)?;
            self.follow_travel((shard, lsn.index), effect)?;
        }
        self.follow_slots(shard, &batch, &applied);
        // What happens to the tasks of jobs is nobody's order, and judged by the jobs.
        let mut moves = self.moves(shard, &applied.effects);
        moves.retain(|step| Part::of(&step.id).is_none());
        let operations = &mut self.watch.operations[usize::from(shard)];
        operations.entry(&batch.orders, &applied.replies, &moves)?;
        self.follow_rules(shard, &batch, &applied)?;
        self.follow_dead(shard, &batch.orders, &applied.replies, &moves)?;
        self.follow_leaves(shard, &applied.effects);
        self.follow_deadlines(&moves, true);
        let leases = &mut self.watch.leases;
        let shown = leases.entry(&batch.orders, &applied.replies, &applied.effects)?;
        self.marks.hit_if(shown.passed, Mark::LeasePassed);
        self.marks.hit_if(shown.expired, Mark::LeaseExpired);
        let changes =
            applied.effects.iter().filter(|e| matches!(e, Effect::QueueChanged { .. })).count();
        SettingsVersion::caused(shard, changes, settings_given(&batch, &applied))?;
        for (order, reply) in batch.orders.iter().zip(&applied.replies) {
            let Some(order) = order else { continue };
            if !matches!(reply, Reply::Refused { .. }) {
                let honest = self.clients.committed(order);
                honest_outcome::check(order, honest)?;
            }
            self.follow_operation(order, reply, &moves);
            self.follow_level(order, reply)?;
            self.follow_order(shard, lsn.index, lsn.term, order, reply)?;
            self.follow_job_order(shard, order, reply, &applied.effects)?;
        }
        self.follow_job_moves(shard, lsn.term, &applied.effects)?;
        self.check_outputs(shard, &batch.orders)?;
        self.follow_deadlines(&moves, false);
        self.check_quota()?;
        for effect in &applied.effects {
            if let Effect::Moved { id, from: None, .. } = effect {
                self.watch.schedules.created(id)?;
            }
            if let Effect::Moved { id, to: None, .. } = effect {
                self.watch.model.task_mut(id).removed = true;
                self.marks.hit(Mark::RetentionRemoved);
            }
        }
        if !data.is_empty() {
            self.watch.last_entry.insert(shard, data);
        }
        self.watch.replies.insert((shard, lsn.index), (batch.orders, applied.replies));
        Ok(())
    }

    fn mark_full(&mut self, reply: &Reply) {
        let full = |code| *reply == Reply::refused(code);
        self.marks.hit_if(full(RefusalCode::QueueFull), Mark::QueueRefusedFull);
        self.marks.hit_if(full(RefusalCode::NamespaceFull), Mark::NamespaceRefusedFull);
        self.marks.hit_if(full(RefusalCode::DeadFull), Mark::DeadRefusedFull);
    }

    /// Q16 for the tenant. While a cluster grows, old and new shares are in force side by side.
    fn check_quota(&self) -> Verdict {
        if self.plan.grows_to > self.plan.shards {
            return Ok(());
        }
        let namespace = tenant::namespace();
        let references = self.watch.ledgers.iter().filter_map(|ledger| ledger.reference());
        let pending: Vec<u64> = references.map(|state| state.pending_of(&namespace)).collect();
        within_quota::check(&namespace, &pending, tenant::PENDING_MAX)
    }

    /// The cluster's level, by the committed entries alone.
    pub fn level(&self) -> u32 {
        self.watch.ledgers.first().and_then(|ledger| ledger.reference()).map_or(0, |s| s.level())
    }

    /// Whether every shard remembers the names of tasks that are no longer there, and will: one that is added needs a while.
    pub fn keeps_names(&self) -> bool {
        let mut ledgers = self.watch.ledgers.iter();
        self.plan.grows_to <= self.plan.shards
            && ledgers.all(|ledger| ledger.reference().is_some_and(|state| state.keeps_dead()))
    }

    /// Log time of the shard where it is earliest: clocks that jump may keep it hours away from true time.
    pub fn log_ms(&self) -> u64 {
        let references = self.watch.ledgers.iter().filter_map(|ledger| ledger.reference());
        references.map(|state| state.time_ms()).min().unwrap_or(0)
    }

    /// Whether every shard has a quota of a namespace, by the committed entries alone.
    pub fn has_quota_everywhere(&self, namespace: &Namespace) -> bool {
        let mut ledgers = self.watch.ledgers.iter();
        ledgers.all(|ledger| ledger.reference().is_some_and(|s| s.quota(namespace).is_some()))
    }

    /// Q9, Q11: what each task asked for against what became of it, transition by transition.
    fn follow_rules(&mut self, shard: ShardId, batch: &Batch, applied: &Applied) -> Verdict {
        let rules = &mut self.watch.rules[usize::from(shard)];
        rules.begin(batch.time_ms);
        for (order, reply) in batch.orders.iter().zip(&applied.replies) {
            if let Some(order) = order {
                rules.order(order, reply);
            }
        }
        let done = follow_ups::completed(&applied.effects);
        let mut removed = Vec::new();
        for effect in &applied.effects {
            let Effect::Moved { id, from, to, fence, .. } = effect else {
                continue;
            };
            if from.is_none() && Part::of(id).is_none() {
                follow_ups::created(rules, id, &done)?;
            }
            fair_offer::check(rules, id, *from, *to, *fence)?;
            rules.moved(id, *to);
            if to.is_none() {
                removed.push(id);
            }
        }
        follow_ups::all_there(rules, &done, &removed)
    }

    fn follow_effect(&mut self, shard: ShardId, effect: &Effect) -> Verdict {
        let position = usize::from(shard);
        if let Effect::QueueChanged { queue } = effect {
            let reference = self.watch.ledgers[position].reference();
            let mut queues = reference.into_iter().flat_map(|state| state.queues(None));
            return match queues.find(|view| view.handle == *queue) {
                Some(view) => self.watch.settings.changed(shard, *queue, view.settings.version),
                None => Ok(()),
            };
        }
        let Effect::Moved { id, from, to, .. } = effect else {
            return Ok(());
        };
        self.watch.terminal_once[position].moved(id, *from, *to)?;
        match Part::of(id) {
            _ if from.is_some() => Ok(()),
            Some(part) => self.job_task_born(id, &part),
            None => {
                self.watch.model.task_mut(id).created += 1;
                self.watch.submits.created(id)
            }
        }
    }

    fn follow_submission(
        &mut self,
        shard: ShardId,
        enqueue: &Enqueue,
        order: &Order,
        reply: &Reply,
    ) -> Verdict {
        self.mark_full(reply);
        let gone = self.watch.model.task(&enqueue.id).is_some_and(|task| task.removed);
        let known = matches!(reply, Reply::Enqueued { created: false, .. });
        self.marks.hit_if(gone && known, Mark::GoneNameKnown);
        let request = order.request.as_ref().map(|key| (shard, key.clone()));
        self.watch.submits.applied(request, enqueue, reply)
    }

    fn follow_order(
        &mut self,
        shard: ShardId,
        index: u64,
        term: u64,
        order: &Order,
        reply: &Reply,
    ) -> Verdict {
        // Asked again where the slot is: nothing happened, whatever the fence.
        if is_fenced(&order.command) && *reply == Reply::refused(RefusalCode::SlotMoved) {
            return Ok(());
        }
        match &order.command {
            Command::Enqueue(enqueue) => self.follow_submission(shard, enqueue, order, reply),
            Command::Claim(claim) => match reply {
                Reply::Claimed { tasks } => tasks
                    .iter()
                    .try_for_each(|grant| self.follow_grant((shard, index), claim, grant)),
                _ => Ok(()),
            },
            Command::Complete(_) | Command::Fail(_) | Command::Expire(_) | Command::Unclaim(_) => {
                self.follow_fenced(shard, index, term, order, reply)
            }
            Command::Deliver(_) => {
                self.follow_delivery(reply);
                Ok(())
            }
            Command::SetSchedule(_) | Command::Fire(_) => self.follow_schedule(order, reply),
            Command::Cancel(_)
            | Command::Retry(_)
            | Command::Drop(_)
            | Command::Sweep(_)
            | Command::Void(_)
            | Command::SetQueue(_)
            | Command::DeleteSchedule(_)
            | Command::AddToken(_)
            | Command::RevokeToken(_)
            | Command::Acked(_)
            | Command::SetMembers(_)
            | Command::Refound(_)
            | Command::RaiseEpoch(_)
            | Command::RaiseLevel(_)
            | Command::KeepDead(_)
            | Command::TuneElections(_)
            | Command::PutObject(_)
            | Command::DeleteObject(_)
            | Command::ChangeMembers(_)
            | Command::SettleChange(_)
            | Command::SteerMember(_)
            | Command::SubmitJob(_)
            | Command::CancelJob(_)
            | Command::Duplicate(_)
            | Command::Checkpoint(_)
            | Command::SetQuota(_)
            | Command::RegisterWorker(_)
            | Command::DrainWorker(_)
            | Command::RemoveWorker(_)
            | Command::Collect(_) => Ok(()),
            Command::AcquireLease(_) | Command::ReleaseLease(_) | Command::ExpireLease(_) => Ok(()),
            Command::Grow(grow) => {
                self.follow_growth(grow, reply);
                Ok(())
            }
        }
    }

    fn follow_delivery(&mut self, reply: &Reply) {
        match reply {
            Reply::Delivered { fresh: true } => self.marks.hit(Mark::OutboxDelivered),
            Reply::Delivered { fresh: false } => self.marks.hit(Mark::OutboxResent),
            _ => {}
        }
    }

    /// Q12: settings and instants of schedules, all of them in shard 0.
    fn follow_schedule(&mut self, order: &Order, reply: &Reply) -> Verdict {
        let time_ms = self.watch.rules[0].time_ms;
        match &order.command {
            Command::SetSchedule(set) => {
                let turned = self.watch.schedules.set(set, reply, time_ms)?;
                self.marks.hit_if(turned.paused, Mark::SchedulePaused);
                self.marks.hit_if(turned.resumed, Mark::ScheduleResumed);
            }
            Command::Fire(fire) => {
                let decided = self.watch.schedules.fired(fire, reply, time_ms)?;
                let again = matches!(reply, Reply::Fired { fresh: false });
                self.marks.hit_if(decided.fresh && fire.run, Mark::InstantKept);
                self.marks.hit_if(decided.cron && fire.run, Mark::InstantOfCron);
                self.marks.hit_if(decided.clocks_set, Mark::InstantClocksSet);
                self.marks.hit_if(again, Mark::InstantAgain);
                self.marks.hit_if(decided.fresh && fire.missed > 0, Mark::InstantsMissed);
            }
            _ => {}
        }
        Ok(())
    }

    fn follow_complete(&mut self, complete: &Complete, reply: &Reply) -> Verdict {
        if self.may_be_late(&complete.id, reply) {
            self.marks.hit(Mark::LateResultRefused);
            return Ok(());
        }
        let came = came(reply, matches!(reply, Reply::Completed));
        let model = &self.watch.model;
        let (id, fence) = (&complete.id, complete.fence);
        let cancelled = model.task(id).is_some_and(|task| task.end == Some(End::Cancelled));
        self.marks.hit_if(came == Came::Refused && cancelled, Mark::CancelRacesCompletion);
        if fence::check(model, "complete", id, fence, Some(&complete.worker), came)? {
            self.watch.model.settle(id, End::Done(fence));
            self.follow_completion(complete)?;
        }
        Ok(())
    }

    /// Orders that carry a fence.
    fn follow_fenced(
        &mut self,
        shard: ShardId,
        index: u64,
        term: u64,
        order: &Order,
        reply: &Reply,
    ) -> Verdict {
        let position = usize::from(shard);
        match &order.command {
            // No room for the follow-ups: nothing happened, whatever the fence.
            Command::Complete(_) if matches!(reply, Reply::Refused { code } if code.is_transient()) => {
                Ok(())
            }
            Command::Complete(complete) => self.follow_complete(complete, reply),
            Command::Fail(fail) => {
                let came = came(reply, matches!(reply, Reply::Failed { .. }));
                let model = &self.watch.model;
                let (id, fence) = (&fail.id, fail.fence);
                let effective = fence::check(model, "fail", id, fence, Some(&fail.worker), came)?;
                match reply {
                    Reply::Failed { next } if effective => {
                        self.watch.model.failed.insert((id.clone(), fence));
                        self.attempt_ended(position, id, fail.retry, *next)
                    }
                    _ => Ok(()),
                }
            }
            Command::Expire(expire) => {
                let came = came(reply, matches!(reply, Reply::Expired { .. }));
                let model = &self.watch.model;
                let effective =
                    fence::check(model, "expire", &expire.id, expire.fence, None, came)?;
                match reply {
                    Reply::Expired { next } if effective => {
                        self.marks.hit(Mark::ClaimExpired);
                        self.check_expiry(shard, index, term, expire)?;
                        self.attempt_ended(position, &expire.id, true, *next)
                    }
                    _ => {
                        self.marks.hit(Mark::ExpiryRacesCompletion);
                        Ok(())
                    }
                }
            }
            Command::Unclaim(unclaim) => {
                let came = came(reply, matches!(reply, Reply::Unclaimed));
                let model = &self.watch.model;
                if fence::check(model, "unclaim", &unclaim.id, unclaim.fence, None, came)? {
                    self.returned(shard, index, term, &unclaim.id, unclaim.fence)?;
                    self.watch.model.release(&unclaim.id, false);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn follow_grant(&mut self, granted: (ShardId, u64), claim: &Claim, grant: &Grant) -> Verdict {
        let holder = Holder {
            task: grant.id.clone(),
            worker: claim.worker.clone(),
            session: claim.session,
            granted,
            ttl_ms: u64::from(grant.ttl_ms),
            timeout_ms: u64::from(grant.timeout_ms),
        };
        self.watch.outputs.granted(&self.watch.jobs, grant)?;
        let counts = (u32::from(grant.attempt), u32::from(grant.max_attempts));
        self.granted(grant.fence, holder, counts)
    }

    fn granted(&mut self, fence: Fence, holder: Holder, counts: (u32, u32)) -> Verdict {
        let model = &mut self.watch.model;
        if token_order::check(model, fence, &holder)? {
            return Ok(());
        }
        one_holder::granted(model, &holder.task, fence)?;
        attempts::granted(model, &holder.task, counts.0, counts.1)?;
        model.task_mut(&holder.task).attempts_max = counts.1;
        model.grant(fence, holder);
        Ok(())
    }

    pub(super) fn attempt_ended(
        &mut self,
        position: usize,
        id: &TaskId,
        retry: bool,
        next: FailNext,
    ) -> Verdict {
        let model = &mut self.watch.model;
        let task = model.task_mut(id);
        let wish = self.watch.rules[position].wish(id);
        let may_be_late = wish
            .is_some_and(|wish| wish.options.deadline_ms.or(wish.options.deadline_in_ms).is_some());
        if !(may_be_late && next == FailNext::Dead) {
            attempts::ended(id, task.attempts, task.attempts_max, retry, next)?;
        }
        if next == FailNext::Dead {
            model.settle(id, End::Dead);
            self.follow_death(id);
            self.marks.hit(Mark::AttemptsExhausted);
        } else {
            model.release(id, true);
        }
        Ok(())
    }

    /// A claim was returned: by the node whose caller had gone, which is quick, or by roll call, which is not.
    fn returned(
        &mut self,
        shard: ShardId,
        index: u64,
        term: u64,
        id: &TaskId,
        fence: Fence,
    ) -> Verdict {
        let written_us = self.watch.written_us.get(&(shard, index, term)).copied();
        let led_us = self.watch.led_us.get(&(shard, term)).copied();
        if let (Some(written_us), Some(led_us)) = (written_us, led_us) {
            let claim = (id.clone(), fence);
            let renewed_us = self.certain_renewal_us(shard, &claim, led_us, written_us);
            attempts::returned(id, fence, renewed_us.is_some())?;
            let holder = &self.watch.model.holders[&claim];
            let granted_us = self.watch.committed_us.get(&holder.granted);
            if granted_us.is_some_and(|granted_us| written_us > granted_us + ROLL_CALL_US) {
                self.marks.hit(Mark::LostClaimReturned);
            }
        }
        Ok(())
    }

    /// When the last renewal was sent that the leader since `led_us` took for certain before `proposed_us`: one that
    /// no other node can have taken.
    fn certain_renewal_us(
        &self,
        shard: ShardId,
        claim: &(TaskId, Fence),
        led_us: u64,
        proposed_us: u64,
    ) -> Option<u64> {
        // What was renewed where the claim was before it moved is not known here.
        let came = self.watch.model.holders.get(claim).map(|holder| holder.granted);
        let came_us = came.and_then(|came| self.watch.committed_us.get(&came)).copied();
        let led_us = led_us.max(came_us.unwrap_or(0));
        let disputed = self.watch.disputed_us.get(&shard);
        let certain = |renewed: &&super::watch::Renewed| {
            let crossed = |(from, to): &(u64, Option<u64>)| {
                *from <= renewed.told_us && to.is_none_or(|to| to >= renewed.sent_us)
            };
            renewed.sent_us >= led_us
                && renewed.told_us <= proposed_us
                && !disputed.is_some_and(|disputed| disputed.iter().any(crossed))
        };
        let renewed = self.watch.renewals.get(claim)?;
        renewed.iter().filter(certain).map(|renewed| renewed.sent_us).max()
    }

    /// Q6, on the clock of the leader that proposed the expiry.
    fn check_expiry(&self, shard: ShardId, index: u64, term: u64, expire: &Expire) -> Verdict {
        let (watch, fence) = (&self.watch, expire.fence);
        let claim = (expire.id.clone(), fence);
        let holder = &watch.model.holders[&claim];
        let leader = watch.election_safety.leader_of(shard, term);
        let Some(machine) = leader.and_then(|leader| self.machines.get(&leader)) else {
            return Ok(());
        };
        let (Some(&proposed_us), Some(&granted_us), Some(&led_us)) = (
            watch.written_us.get(&(shard, index, term)),
            watch.committed_us.get(&holder.granted),
            watch.led_us.get(&(shard, term)),
        ) else {
            return Ok(());
        };
        let renewed = self.certain_renewal_us(shard, &claim, led_us, proposed_us);
        let mono = |at_us| machine.clock.mono_us_at(at_us);
        // A timeout is a lifetime that no renewal moves.
        let (ttl_ms, renewed) = match expire.cause {
            ExpireCause::Silent => (holder.ttl_ms, renewed),
            ExpireCause::TimedOut => (holder.timeout_ms.max(1), None),
        };
        no_early_expiry::check(&Expiry {
            shard,
            fence,
            ttl_ms,
            proposed_us: mono(proposed_us),
            granted_us: mono(granted_us),
            led_us: mono(led_us),
            renewed_us: renewed.map(mono),
        })
    }
}

/// How many queues' settings an entry may have changed.
fn settings_given(batch: &Batch, applied: &Applied) -> usize {
    let given = |(order, reply): (&Option<Order>, &Reply)| {
        let command = order.as_ref().map(|order| &order.command);
        match command {
            Some(Command::Deliver(Deliver { message: Message::Settings { queues }, .. })) => {
                queues.len()
            }
            _ => usize::from(may_change_settings(order.as_ref(), reply)),
        }
    };
    batch.orders.iter().zip(&applied.replies).map(given).sum()
}

/// Whether an order counts by the fence of a claim alone.
fn is_fenced(command: &Command) -> bool {
    matches!(
        command,
        Command::Complete(_)
            | Command::Fail(_)
            | Command::Expire(_)
            | Command::Unclaim(_)
            | Command::Checkpoint(_)
    )
}

fn came(reply: &Reply, accepted: bool) -> Came {
    if accepted {
        return Came::Accepted;
    }
    debug_assert!(matches!(reply, Reply::Refused { .. }), "a fenced order is accepted or refused");
    Came::Refused
}

/// Whether an order, with this reply, is one that may have changed settings: a fresh one, or a message of settings that
/// came before its turn.
fn may_change_settings(order: Option<&Order>, reply: &Reply) -> bool {
    match reply {
        Reply::QueueSet { .. } | Reply::Delivered { fresh: true } => true,
        Reply::Refused { code: RefusalCode::OutboxGap } => {
            let command = order.map(|order| &order.command);
            matches!(
                command,
                Some(Command::Deliver(Deliver { message: Message::QueueSettings { .. }, .. }))
            )
        }
        _ => false,
    }
}
