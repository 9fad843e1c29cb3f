//! Looks at every answer as it leaves its node: it must be committed (Q9), and a read must be fresh enough (R10).

use ikada_replica::call::{Answer, CallId, Consistency, Outcome, RenewOutcome, Request};
use ikada_state::{Command, Fence, Lsn, Order, RefusalCode, Reply, ShardId, TaskId, WorkerId};

use super::World;
use super::watch::Renewed;
use crate::check::no_early_refusal::{self, Refusal};
use crate::check::same_result::SameResult;
use crate::check::{Verdict, linearizable_reads, violation};
use crate::marks::Mark;

impl World {
    pub(super) fn check_answer(&mut self, call: CallId, answer: &Answer) -> Verdict {
        let Some(open) = self.calls.open.get(&call) else {
            return Ok(());
        };
        match (&open.request, answer) {
            (Request::Write(orders), Answer::Written(outcomes)) => {
                let (orders, node) = (orders.clone(), open.node);
                if orders.len() != outcomes.len() {
                    return violation(
                        "Q9 same_result",
                        format!("{} orders got {} outcomes", orders.len(), outcomes.len()),
                    );
                }
                for (order, outcome) in orders.iter().zip(outcomes) {
                    if let Outcome::Reply { reply, shard, lsn } = outcome {
                        if !self.watch.leaders.get(shard).is_some_and(|l| l.contains_key(&node)) {
                            self.marks.hit(Mark::CallForwarded);
                        }
                        self.check_reply(order, reply, *shard, *lsn)?;
                    }
                }
                Ok(())
            }
            (Request::Claim(wish), Answer::Claimed(grants)) => {
                let session = wish.session;
                for grant in grants {
                    let holder = self.watch.model.holders.get(&(grant.id.clone(), grant.fence));
                    let right = holder.is_some_and(|h| h.task == grant.id && h.session == session);
                    if !right {
                        return violation(
                            "Q3 token_order",
                            format!(
                                "task {} was handed out with fence {} that was never committed to {session:?}",
                                grant.id, grant.fence
                            ),
                        );
                    }
                }
                Ok(())
            }
            (Request::Renew(renewal), Answer::Renewed(outcomes)) => {
                let (sent_us, told_us) = (open.sent_us, self.schedule.now_us());
                for ((id, fence), outcome) in renewal.claims.iter().zip(outcomes) {
                    let key = (id.clone(), *fence);
                    match outcome {
                        RenewOutcome::Renewed { .. } => {
                            let renewed = Renewed { sent_us, told_us };
                            self.watch.renewals.entry(key).or_default().push(renewed);
                        }
                        RenewOutcome::Refused(code) => {
                            let claim = (&key.0, key.1, &renewal.worker);
                            self.check_refusal(claim, *code, (sent_us, told_us))?;
                        }
                        RenewOutcome::Unknown => {}
                    }
                }
                Ok(())
            }
            (Request::Read(_, consistency), Answer::View { lsns, .. }) => {
                self.check_read(call, &consistency.clone(), lsns)
            }
            _ => Ok(()),
        }
    }

    /// Q6: nobody is told that a claim has ended which is alive and was never given the time to end.
    fn check_refusal(
        &self,
        (id, fence, worker): (&TaskId, Fence, &WorkerId),
        code: RefusalCode,
        (sent_us, told_us): (u64, u64),
    ) -> Verdict {
        let watch = &self.watch;
        let Some(holder) = watch.model.holders.get(&(id.clone(), fence)) else {
            return Ok(());
        };
        let is_held = watch.model.holds(id, fence, Some(worker));
        let travels = code == RefusalCode::SlotMoved || watch.travelling.contains_key(id);
        let Some(&granted_us) = watch.committed_us.get(&holder.granted) else {
            return Ok(());
        };
        if !is_held || travels || granted_us > sent_us {
            return Ok(());
        }
        let shard = holder.granted.0;
        let led = watch.led_us.range((shard, 0)..=(shard, u64::MAX)).map(|(_, led_us)| *led_us);
        let led_us = led.filter(|led_us| *led_us <= sent_us).max().unwrap_or(0);
        no_early_refusal::check(&Refusal {
            shard,
            fence,
            ttl_ms: holder.ttl_ms,
            timeout_ms: holder.timeout_ms,
            told_us,
            granted_us,
            led_us,
        })
    }

    fn check_reply(&mut self, order: &Order, reply: &Reply, shard: ShardId, lsn: Lsn) -> Verdict {
        let watch = &mut self.watch;
        let term = watch.ledgers[usize::from(shard)].term_at(lsn.index);
        let there = watch.replies.get(&(shard, lsn.index));
        let there =
            term.zip(there).map(|(term, (orders, replies))| (term, &orders[..], &replies[..]));
        SameResult::committed(shard, lsn, order, reply, there)?;
        if watch.same_result.told(order, reply)? {
            self.marks.hit(Mark::DedupHit);
            let first = watch.first_seen.get(&request_of(order)).copied();
            if first.is_some_and(|first| first.0 < lsn.term) {
                self.marks.hit(Mark::DedupAfterFailover);
            }
            if first
                .is_some_and(|first| watch.restored.get(&shard).is_some_and(|at| *at >= first.1))
            {
                self.marks.hit(Mark::DedupAfterSnapshot);
            }
        } else {
            watch.first_seen.entry(request_of(order)).or_insert((lsn.term, lsn.index));
        }
        watch.acknowledged.write(shard, lsn);
        match (&order.command, reply) {
            (Command::Cancel(cancel), Reply::Cancelled) => watch.cancels.cancelled(&cancel.id),
            (Command::Complete(complete), Reply::Completed) => {
                watch.cancels.completed(&complete.id)
            }
            (Command::SubmitJob(submit), Reply::JobSubmitted { .. }) => {
                watch.jobs.acked.push(submit.id.clone());
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn check_read(
        &mut self,
        call: CallId,
        consistency: &Consistency,
        lsns: &[(ShardId, Lsn)],
    ) -> Verdict {
        self.tally.reads += 1;
        for (shard, at) in lsns {
            let term = self.watch.ledgers[usize::from(*shard)].term_at(at.index);
            linearizable_reads::check_committed(*shard, *at, term)?;
        }
        let Some(open) = self.calls.open.get(&call) else {
            return Ok(());
        };
        match consistency {
            Consistency::Linearizable => {
                let leads =
                    self.watch.leaders.values().any(|leaders| leaders.contains_key(&open.node));
                if !leads {
                    self.marks.hit(Mark::ReadOnFollower);
                }
                linearizable_reads::check("linearizable", &open.owed, lsns)
            }
            Consistency::AtLeast(least) => {
                self.marks.hit(Mark::ReadAtLeast);
                linearizable_reads::check("at-least", least, lsns)
            }
            Consistency::Stale => {
                if linearizable_reads::check("stale", &open.owed, lsns).is_err() {
                    self.marks.hit(Mark::StaleReadBehind);
                }
                Ok(())
            }
        }
    }

    /// The shard in which a task of the default namespace lives.
    pub fn shard_of_task(&self, id: &ikada_state::TaskId) -> ShardId {
        let reference = self.watch.ledgers.first().and_then(|ledger| ledger.reference());
        let map = reference.and_then(|state| state.slot_map());
        map.map_or(0, |map| map.route(&ikada_state::Namespace::default(), id.routing_key()))
    }
}

fn request_of(order: &Order) -> Option<ikada_state::RequestKey> {
    order.request.clone()
}
