//! Roll call: a renewal that names a session lists all that the session holds. A claim of that session that its worker
//! never confirmed, and that stays missing from the lists, was granted in an answer that got lost: it is returned.
//!
//! Promise: only claims that this leader never saw confirmed are returned, and only after two lists at least
//! `MISSING_MS` apart did not name them, so that an answer on its way is not overtaken. The attempt does not count
//! (Q7). A claim that was confirmed once and is no longer listed waits for its ttl.

use ikada_state::{
    Command, Fence, Namespace, Order, SessionId, ShardId, TaskId, Unclaim, WorkerId,
};

use crate::output::Now;
use crate::replica::Replica;
use crate::seat::Asker;

impl Replica {
    /// Takes a list of claims as complete for its session.
    pub(crate) fn call_roll(
        &mut self,
        shard: ShardId,
        namespace: &Namespace,
        worker: &WorkerId,
        session: SessionId,
        listed: &[(TaskId, Fence)],
        now: Now,
    ) {
        let count_max = self.config.expire_per_tick_max;
        let seat = &mut self.seats[usize::from(shard)];
        let mut orders = Vec::new();
        for (slot, fence) in seat.liveness.unconfirmed(session) {
            let Some(claim) = seat.state.claim_at(slot, fence) else {
                continue;
            };
            let is_theirs = claim.worker == *worker && claim.namespace == *namespace;
            let is_listed = listed.iter().any(|(id, of)| *of == fence && *id == claim.id);
            if !is_theirs || is_listed || orders.len() >= count_max {
                continue;
            }
            if seat.liveness.is_long_missing(slot, fence, now.mono_ms) {
                let command = Command::Unclaim(Unclaim { id: claim.id, fence });
                orders.push(Order { namespace: claim.namespace, request: None, command });
            }
        }
        if !orders.is_empty() {
            self.enqueue_orders(shard, Asker::Nobody, &orders);
        }
    }
}
