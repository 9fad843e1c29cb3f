//! Writes: orders grouped by shard, one leg each, one outcome per order.

use std::collections::BTreeMap;

use ikada_state::{Command, Lsn, Order, ShardId};

use crate::call::{Answer, CallId, Outcome, Unavailable};
use crate::database::database_refusal;
use crate::gate::write::DISK_FULL;
use crate::leg::{Leg, Owner};
use crate::origin::{OpenCall, OpenKind};
use crate::output::Now;
use crate::peer::{Ask, Told};
use crate::replica::Replica;

/// The level that understands digests of outputs, hashes of what was asked for, and the newest rules of jobs.
const DIGESTS_LEVEL: u32 = 1;

impl Replica {
    pub(crate) fn open_write(
        &mut self,
        call: CallId,
        deadline_ms: u64,
        mut orders: Vec<Order>,
        now: Now,
    ) {
        self.fit_to_level(&mut orders);
        if orders.is_empty() {
            return self.answer(call, Answer::Written(Vec::new()));
        }
        let missing = orders.len();
        if missing == 1 {
            // The usual call: its leg has the same deadline, and its one outcome is the answer.
            let shard = self.shard_of(&orders[0]);
            let owner = Owner::OrderCall(call);
            self.open_leg(Leg::new(shard, owner, Ask::Write(orders), deadline_ms), now);
            return;
        }
        let kind = OpenKind::Write { outcomes: vec![None; missing], missing };
        self.calls.insert(call, OpenCall { deadline_ms, kind });
        let mut groups: BTreeMap<ShardId, (Vec<u32>, Vec<Order>)> = BTreeMap::new();
        for (position, order) in orders.into_iter().enumerate() {
            let (items, group) = groups.entry(self.shard_of(&order)).or_default();
            items.push(position as u32);
            group.push(order);
        }
        for (shard, (items, group)) in groups {
            let owner = Owner::Call(call, items);
            self.open_leg(Leg::new(shard, owner, Ask::Write(group), deadline_ms), now);
        }
    }

    /// Attempts record what they brought, submissions are known by what was asked for, and jobs follow the newest rules, once
    /// every member knows how.
    fn fit_to_level(&self, orders: &mut [Order]) {
        let knows = self.seats[0].state.level() >= DIGESTS_LEVEL;
        for order in orders {
            match &mut order.command {
                Command::Complete(complete) if knows => complete.keep_digest(),
                Command::SubmitJob(submit) if knows => submit.follow_newest_rules(),
                Command::Enqueue(enqueue) if !knows => enqueue.forget_asked(),
                Command::SubmitJob(submit) if !knows => submit.forget_asked(),
                _ => {}
            }
        }
    }

    pub(crate) fn write_told(&mut self, call: CallId, items: &[u32], leg: &Leg, told: Told) {
        let Some(open) = self.calls.get_mut(&call) else {
            return;
        };
        let OpenKind::Write { outcomes, missing } = &mut open.kind else {
            return;
        };
        let shard = leg.shard;
        let mut fill = |item: u32, outcome: Outcome| {
            let place = &mut outcomes[item as usize];
            if place.is_none() {
                *missing -= 1;
                *place = Some(outcome);
            }
        };
        match told {
            Told::Replies { term, index, replies } if replies.len() == items.len() => {
                let lsn = Lsn { term, index };
                for (item, reply) in items.iter().zip(replies) {
                    fill(*item, Outcome::Reply { reply, shard, lsn });
                }
            }
            told => {
                let outcome = failed_outcome(leg, &told);
                for item in items {
                    fill(*item, outcome.clone());
                }
            }
        }
        if *missing == 0 {
            let outcomes = std::mem::take(outcomes).into_iter().flatten().collect();
            self.answer(call, Answer::Written(outcomes));
        }
    }
}

/// The outcome of a leg with one order.
pub(crate) fn only_outcome(leg: &Leg, told: Told) -> Outcome {
    match told {
        Told::Replies { term, index, mut replies } if replies.len() == 1 => match replies.pop() {
            Some(reply) => Outcome::Reply { reply, shard: leg.shard, lsn: Lsn { term, index } },
            None => Outcome::Unknown,
        },
        told => failed_outcome(leg, &told),
    }
}

/// What is known of orders that were not answered one by one.
fn failed_outcome(leg: &Leg, told: &Told) -> Outcome {
    let never_taken = !leg.may_be_taken();
    match told {
        Told::Busy if never_taken => {
            let what = "orders waiting at the shard's leader";
            Outcome::Unavailable(Unavailable::Overloaded { what })
        }
        // An earlier try may have met a leader that knew of a higher level.
        Told::LevelTooLow { needed, level } if never_taken => {
            Outcome::Unavailable(Unavailable::LevelTooLow { needed: *needed, level: *level })
        }
        Told::Refused { code, .. } if code == DISK_FULL && never_taken => {
            Outcome::Unavailable(Unavailable::DiskFull { shard: leg.shard })
        }
        Told::Refused { code, .. } if never_taken => {
            database_refusal(code).map_or(Outcome::Unknown, Outcome::Unavailable)
        }
        Told::NotLeader { .. } if !leg.handed_over => {
            Outcome::Unavailable(Unavailable::NoLeader { shard: leg.shard })
        }
        _ => Outcome::Unknown,
    }
}
