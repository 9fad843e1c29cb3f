//! Claims: proposed only when something is ready or on its way into the log, so that waiting workers write nothing
//! (TQ-13, TQ-16).

use ikada_state::{Command, Order, Reply, ShardId};

use crate::gate::Decision;
use crate::output::Now;
use crate::peer::Told;
use crate::replica::Replica;
use crate::seat::Asker;

impl Replica {
    pub(crate) fn decide_claim<'a>(
        &mut self,
        shard: ShardId,
        asker: Asker,
        order: &'a Order,
        now: Now,
    ) -> Decision<'a> {
        let node = self.config.node;
        let seat = &mut self.seats[usize::from(shard)];
        let Command::Claim(claim) = &order.command else {
            return Decision::Reply(Told::Unknown);
        };
        let mut ready = false;
        for queue in &claim.queues {
            if let Some(handle) = seat.state.queue_handle(&order.namespace, queue) {
                seat.asked.note(handle, now.mono_ms);
                seat.asked.note_labels(handle, &claim.labels, now.mono_ms);
                ready |= seat.state.is_claimable_at(handle, &claim.labels, Some(&claim.worker));
            }
        }
        // A resend of a granted claim must reach its recorded grant even when nothing else is ready.
        let granted = order
            .request
            .as_ref()
            .is_some_and(|key| seat.state.is_claim_remembered(&order.namespace, key));
        if ready || granted {
            seat.note_asked(order, asker);
            return Decision::Propose(std::slice::from_ref(order));
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
