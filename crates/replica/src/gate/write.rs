//! Orders: taken unless too much waits already.

use ikada_state::{Order, ShardId};

use crate::gate::Decision;
use crate::peer::Told;
use crate::replica::Replica;

impl Replica {
    pub(crate) fn decide_write<'a>(&self, shard: ShardId, orders: &'a [Order]) -> Decision<'a> {
        let waiting = self.seats[usize::from(shard)].pending.bytes();
        if waiting >= self.config.pending_bytes_max {
            return Decision::Reply(Told::Busy);
        }
        Decision::Propose(orders)
    }
}
