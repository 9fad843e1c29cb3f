//! Writes: orders grouped by shard, one leg each, one outcome per order.

use std::collections::BTreeMap;

use ikada_state::{Lsn, Order, ShardId};

use crate::call::{Answer, CallId, Outcome, Unavailable};
use crate::leg::{Leg, Owner};
use crate::origin::{OpenCall, OpenKind};
use crate::output::Now;
use crate::peer::{Ask, Told};
use crate::replica::Replica;

impl Replica {
    pub(crate) fn open_write(
        &mut self,
        call: CallId,
        deadline_ms: u64,
        orders: Vec<Order>,
        now: Now,
    ) {
        if orders.is_empty() {
            return self.answer(call, Answer::Written(Vec::new()));
        }
        let missing = orders.len();
        let kind = OpenKind::Write { outcomes: vec![None; missing], missing };
        self.calls.insert(call, OpenCall { deadline_ms, kind });
        if missing == 1 {
            let shard = self.shard_of(&orders[0]);
            let owner = Owner::Call(call, vec![0]);
            self.open_leg(Leg::new(shard, owner, Ask::Write(orders), deadline_ms), now);
            return;
        }
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
            Told::Busy => {
                let what = "orders waiting at the shard's leader";
                for item in items {
                    fill(*item, Outcome::Unavailable(Unavailable::Overloaded { what }));
                }
            }
            Told::NotLeader { .. } if !leg.handed_over => {
                for item in items {
                    fill(*item, Outcome::Unavailable(Unavailable::NoLeader { shard }));
                }
            }
            _ => {
                for item in items {
                    fill(*item, Outcome::Unknown);
                }
            }
        }
        if *missing == 0 {
            let outcomes = std::mem::take(outcomes).into_iter().flatten().collect();
            self.answer(call, Answer::Written(outcomes));
        }
    }
}
