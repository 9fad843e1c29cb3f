//! Leases: whoever holds one or waits for one proves its life here without a log entry; only what changes is proposed.

use ikada_state::{
    AcquireLease, Command, Fence, HolderName, LeaseKey, LeaseMark, Order, RefusalCode, Reply,
    ShardId,
};

use crate::gate::Decision;
use crate::output::Now;
use crate::peer::{RenewTold, Told};
use crate::replica::Replica;

impl Replica {
    pub(crate) fn decide_lease<'a>(
        &mut self,
        shard: ShardId,
        order: &'a Order,
        now: Now,
    ) -> Decision<'a> {
        let Command::AcquireLease(wish) = &order.command else {
            return Decision::Reply(Told::Unknown);
        };
        if self.seats[usize::from(shard)].state.is_order_away(order) {
            return Decision::Reply(Told::Moved);
        }
        let key = (order.namespace.clone(), wish.name.clone());
        match self.known_lease(shard, &key, wish, now) {
            Some(reply) => {
                let refuses = matches!(reply, Reply::Refused { .. });
                let told = Told::Replies { term: 0, index: 0, replies: vec![reply] };
                // As for renewals: a no is told by a leader that is sure to be one.
                if refuses { Decision::Confirm(Some(told)) } else { Decision::Reply(told) }
            }
            None => Decision::Propose(std::slice::from_ref(order)),
        }
    }

    /// The answer, if the committed state holds it already; it proves the asker's life.
    fn known_lease(
        &mut self,
        shard: ShardId,
        key: &LeaseKey,
        wish: &AcquireLease,
        now: Now,
    ) -> Option<Reply> {
        let seat = &mut self.seats[usize::from(shard)];
        let lease = seat.state.lease(key)?;
        if !lease.fits(wish) {
            return Some(Reply::refused(RefusalCode::LeaseTerms));
        }
        let holding = &lease.holding;
        if holding.holder == wish.holder {
            if holding.ttl_ms != wish.ttl_ms {
                return None;
            }
            let fence = holding.fence;
            seat.holdings.renew(key, LeaseMark::Held(fence), now.mono_ms)?;
            return Some(Reply::LeaseGranted { fence, fresh: false });
        }
        if let Some(ahead) = lease.place_of(&wish.holder) {
            let place = lease.waiters[ahead].place;
            seat.holdings.renew(key, LeaseMark::Waits(place), now.mono_ms)?;
            return Some(Reply::LeaseWaiting { ahead: ahead as u32 });
        }
        (!wish.wait).then(|| Reply::refused(RefusalCode::LeaseHeld))
    }

    pub(crate) fn decide_renew_lease(
        &mut self,
        shard: ShardId,
        key: &LeaseKey,
        holder: &HolderName,
        fence: Fence,
        now: Now,
    ) -> Decision<'static> {
        let seat = &mut self.seats[usize::from(shard)];
        if seat.state.is_key_away(&key.0, key.1.as_str()) {
            return Decision::Reply(Told::Moved);
        }
        let refused = |code| RenewTold::Refused(code);
        let told = match seat.state.lease(key) {
            None => refused(RefusalCode::LeaseNotHeld),
            Some(lease) if lease.holding.fence != fence => refused(RefusalCode::StaleFence),
            Some(lease) if lease.holding.holder != *holder => refused(RefusalCode::NotOwner),
            Some(_) => match seat.holdings.renew(key, LeaseMark::Held(fence), now.mono_ms) {
                Some(ttl_ms) => RenewTold::Renewed(ttl_ms),
                None => refused(RefusalCode::StaleFence),
            },
        };
        super::renew::decision(vec![told])
    }
}
