//! Claims: proposed only when something is ready or on its way into the log, so that waiting workers write nothing
//! (TQ-13, TQ-16).
//!
//! Where few tasks of programs are ready and several workers have free slots, each gets its part (B4-36). A worker that gets
//! less than it asked for asks again at once, so no task waits for somebody who does not come.

use ikada_state::{
    Claim, Command, Fence, Namespace, Order, QueueName, RefusalCode, Reply, ShardId, Unclaim,
};

use crate::gate::Decision;
use crate::output::Now;
use crate::peer::Told;
use crate::replica::Replica;
use crate::seat::{Asker, Round, Seat};

/// The level that understands a share.
const SHARE_LEVEL: u32 = 1;

fn with_share(order: &Order, claim: &Claim, part: u32) -> Order {
    let command = Command::Claim(Claim { share: Some(part), ..claim.clone() });
    Order { namespace: order.namespace.clone(), request: order.request.clone(), command }
}

impl Seat {
    /// What a claim finds in a queue: nothing; or something, of which its worker gets a part or, by none, all that it wants.
    fn look(
        &mut self,
        queue: &(Namespace, QueueName),
        claim: &Claim,
        round: Round,
    ) -> Option<Option<u32>> {
        let handle = self.state.queue_handle(&queue.0, &queue.1);
        if let Some(handle) = handle {
            self.asked.note(handle, round.now_ms);
            self.asked.note_labels(handle, &claim.labels, round.now_ms);
        }
        let offer = handle.and_then(|handle| {
            let offer = self.state.offer_at(handle, &claim.labels, &claim.worker)?;
            let part = offer.program.and_then(|_| {
                let (wish, ready) = ((offer.wanted, claim.max), self.state.offered_count(handle));
                self.waiting.share(queue, &claim.worker, wish, ready, round)
            });
            Some(part)
        });
        match offer {
            Some(None) => self.waiting.forget(queue, &claim.worker),
            None | Some(Some(_)) => {
                let (wish, served) = ((&claim.labels, claim.max), offer.is_some());
                self.waiting.note(queue, &claim.worker, wish, served, round);
            }
        }
        offer
    }

    /// What takes a grant back that was in the log behind its worker's removal: nobody holds the task, nobody would renew it.
    pub fn give_back(&self, slot: u32, fence: Fence) -> Option<Order> {
        if !self.gone.has_any() {
            return None;
        }
        let claim = self.state.claim_at(slot, fence)?;
        if !self.gone.has(&claim.namespace, &claim.worker, claim.session) {
            return None;
        }
        let command = Command::Unclaim(Unclaim { id: claim.id, fence });
        Some(Order { namespace: claim.namespace, request: None, command })
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
        let node = self.config.node;
        let again_ms = self.config.claim_again_ms;
        let may_share = self.seats[0].state.level() >= SHARE_LEVEL;
        let seat = &mut self.seats[usize::from(shard)];
        let applied = seat.state.applied().index;
        let round = Round { now_ms: now.mono_ms, again_ms, applied };
        let Command::Claim(claim) = &order.command else {
            return Decision::Reply(Told::Unknown);
        };
        if seat.gone.has(&order.namespace, &claim.worker, claim.session) {
            let replies = vec![Reply::refused(RefusalCode::WorkerRemoved)];
            return Decision::Reply(Told::Replies { term: 0, index: 0, replies });
        }
        let mut ready = false;
        // What all queues together would give this worker; none if one gives all that it has.
        let mut share = Some(0u32);
        for queue in &claim.queues {
            if let Some(part) = seat.look(&(order.namespace.clone(), queue.clone()), claim, round) {
                ready = true;
                share = share.zip(part).map(|(sum, part)| sum.saturating_add(part));
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
