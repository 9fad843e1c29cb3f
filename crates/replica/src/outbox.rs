//! Delivering messages between shards: at least once, in order, one at a time per target.
//!
//! The target dedups by (source, sequence); the acknowledgement is itself a command in the source shard. A lost step is
//! repeated by the next tick of whoever leads then.

use ikada_state::{Acked, Command, Deliver, Namespace, Order, Reply, ShardId};

use crate::leg::{Leg, Owner};
use crate::output::Now;
use crate::peer::{Ask, Told};
use crate::replica::Replica;
use crate::seat::Asker;

/// How long one delivery is tried before the next tick starts it anew.
const DELIVER_MS: u64 = 5_000;

impl Replica {
    /// Sends the first waiting message to each target of the shards led here.
    pub(crate) fn deliver_outboxes(&mut self, now: Now) {
        for shard in 0..self.seats.len() {
            let seat = &self.seats[shard];
            if !seat.leads() {
                continue;
            }
            let first: Vec<_> = seat
                .state
                .outbox_targets()
                .filter(|target| !seat.delivering.contains(target))
                .flat_map(|target| {
                    seat.state
                        .outbox_pending(target, 0, 1)
                        .into_iter()
                        .map(move |item| (target, item))
                })
                .collect();
            for (target, item) in first {
                let source = shard as ShardId;
                self.seats[shard].delivering.insert(target);
                let command = Command::Deliver(Deliver {
                    source,
                    sequence: item.sequence,
                    message: item.message,
                });
                let order = Order { namespace: Namespace::default(), request: None, command };
                let owner = Owner::Outbox { source, sequence: item.sequence };
                let deadline_ms = now.mono_ms + DELIVER_MS;
                self.open_leg(Leg::new(target, owner, Ask::Write(vec![order]), deadline_ms), now);
            }
        }
    }

    /// A delivery came back: acknowledge it in the source shard, or let the next tick try again.
    pub(crate) fn outbox_told(
        &mut self,
        source: ShardId,
        target: ShardId,
        sequence: u64,
        told: &Told,
    ) {
        let seat = &mut self.seats[usize::from(source)];
        seat.delivering.remove(&target);
        let delivered = matches!(told, Told::Replies { replies, .. }
            if matches!(replies.first(), Some(Reply::Delivered { .. })));
        if delivered && seat.leads() {
            let command = Command::Acked(Acked { target, sequence });
            let order = Order { namespace: Namespace::default(), request: None, command };
            self.enqueue_orders(source, Asker::Nobody, std::slice::from_ref(&order));
        }
    }
}
