//! Orders: taken unless too much waits already, or they need room that too few disks have.
//!
//! A claim is given back only while its worker has not confirmed it, and only if nobody else asked for it: whoever gives
//! it back may have been overtaken by a resend that brought the worker the same claim.

use ikada_state::{Command, Order, RefusalCode, Reply, ShardId};

use crate::gate::Decision;
use crate::peer::Told;
use crate::replica::Replica;

/// Code of a refusal for want of room.
pub(crate) const DISK_FULL: &str = "disk_full";

impl Replica {
    pub(crate) fn decide_write<'a>(&self, shard: ShardId, orders: &'a [Order]) -> Decision<'a> {
        let waiting = self.seats[usize::from(shard)].pending.bytes();
        if waiting >= self.config.pending_bytes_max {
            return Decision::Reply(Told::Busy);
        }
        if self.lacks_room(shard, orders) {
            let detail = format!("too few disks of shard {shard}'s voters have room left");
            return Decision::Reply(Told::Refused { code: DISK_FULL.into(), detail });
        }
        if let Some(code) = self.unwritable() {
            let detail = "the database that holds the logs takes no writes".to_owned();
            return Decision::Reply(Told::Refused { code: code.into(), detail });
        }
        // Known before anything is written; a longer list is judged order by order when it is applied.
        if let [order] = orders
            && self.seats[usize::from(shard)].state.is_order_away(order)
        {
            return Decision::Reply(Told::Moved);
        }
        if let [order] = orders
            && self.is_taken_back_too_late(shard, order)
        {
            let replies = vec![Reply::refused(RefusalCode::StaleFence)];
            return Decision::Reply(Told::Replies { term: 0, index: 0, replies });
        }
        Decision::Propose(orders)
    }

    fn is_taken_back_too_late(&self, shard: ShardId, order: &Order) -> bool {
        let Command::Unclaim(unclaim) = &order.command else {
            return false;
        };
        let seat = &self.seats[usize::from(shard)];
        if !seat.granted.may_be_given_back(unclaim.fence) {
            return true;
        }
        let claim = seat.state.claim_of(&order.namespace, &unclaim.id);
        claim.is_some_and(|claim| {
            claim.fence == unclaim.fence && seat.liveness.is_confirmed(claim.slot, claim.fence)
        })
    }
}
