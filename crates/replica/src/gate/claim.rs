//! Claims: proposed only when something is ready or on its way into the log, so that waiting workers write nothing
//! (TQ-13, TQ-16).
//!
//! Where few tasks of programs are ready and several workers have free slots, each gets its part (B4-36). A worker that gets
//! less than it asked for asks again at once, so no task waits for somebody who does not come.

use ikada_state::{Claim, Command, Order, QueueHandle, Reply, ShardId};

use crate::gate::Decision;
use crate::output::Now;
use crate::peer::Told;
use crate::replica::Replica;
use crate::seat::{Asker, Seat};

/// The level that understands a share.
const SHARE_LEVEL: u32 = 1;

fn with_share(order: &Order, claim: &Claim, part: u32) -> Order {
    let command = Command::Claim(Claim { share: Some(part), ..claim.clone() });
    Order { namespace: order.namespace.clone(), request: order.request.clone(), command }
}

impl Seat {
    /// Who asks for tasks of a queue has room for them.
    fn note_waiting(&mut self, queue: QueueHandle, claim: &Claim, time: (u64, u64)) {
        self.waiting.note(queue, &claim.worker, (&claim.labels, claim.max), time);
    }
}

impl Replica {
    pub(crate) fn decide_claim<'a>(
        &mut self,
        shard: ShardId,
        asker: Asker,
        order: &'a Order,
        now: Now,
    ) -> Decision<'a> {
        let (node, again_ms) = (self.config.node, self.config.claim_again_ms);
        let may_share = self.seats[0].state.level() >= SHARE_LEVEL;
        let seat = &mut self.seats[usize::from(shard)];
        let Command::Claim(claim) = &order.command else {
            return Decision::Reply(Told::Unknown);
        };
        let mut ready = false;
        // What all queues together would give this worker; none if one gives all that it has.
        let mut share = Some(0u32);
        for queue in &claim.queues {
            if let Some(handle) = seat.state.queue_handle(&order.namespace, queue) {
                seat.asked.note(handle, now.mono_ms);
                seat.asked.note_labels(handle, &claim.labels, now.mono_ms);
                let Some(offer) = seat.state.offer_at(handle, &claim.labels, &claim.worker) else {
                    seat.note_waiting(handle, claim, (now.mono_ms, again_ms));
                    continue;
                };
                ready = true;
                let part = offer.program.and_then(|_| {
                    let (count, time) = (seat.state.offered_count(handle), (now.mono_ms, again_ms));
                    let wish = (offer.wanted, claim.max);
                    seat.waiting.share(handle, &claim.worker, wish, count, time)
                });
                share = share.zip(part).map(|(sum, part)| sum.saturating_add(part));
                match part {
                    Some(_) => seat.note_waiting(handle, claim, (now.mono_ms, again_ms)),
                    None => seat.waiting.forget(handle, &claim.worker),
                }
            }
        }
        // A resend of a granted claim must reach its recorded grant even when nothing else is ready.
        let granted = order
            .request
            .as_ref()
            .is_some_and(|key| seat.state.is_claim_remembered(&order.namespace, key));
        if ready || granted {
            seat.note_asked(order, asker);
            return match share.filter(|part| may_share && (1..claim.max).contains(part)) {
                Some(part) => Decision::Amended(Box::new(with_share(order, claim, part))),
                None => Decision::Propose(std::slice::from_ref(order)),
            };
        }
        let foreseen = seat.interest.spend(&order.namespace, &claim.queues, u64::from(claim.max));
        // Also with foresight: other claims of that node wait on, and this one may find nothing.
        match asker {
            Asker::Local(_) => seat.interest.register(&order.namespace, &claim.queues, node),
            Asker::Remote(peer, _) => {
                seat.interest.register(&order.namespace, &claim.queues, peer);
            }
            Asker::Nobody => {}
        }
        if foreseen {
            seat.note_asked(order, asker);
            return Decision::Propose(std::slice::from_ref(order));
        }
        let replies = vec![Reply::Claimed { tasks: Vec::new() }];
        Decision::Reply(Told::Replies { term: 0, index: 0, replies })
    }
}
