//! Delivering messages between shards: at least once, in order, one delivery at a time per target.
//!
//! The target dedups by (source, sequence); the acknowledgement is itself a command in the source shard. A lost step is
//! repeated by the next tick of whoever leads then.

use ikada_state::{Acked, Command, Deliver, Namespace, Order, OutboxItem, Reply, ShardId};

use crate::leg::{Leg, Owner};
use crate::output::Now;
use crate::peer::{Ask, Told};
use crate::replica::Replica;
use crate::seat::Asker;

/// How long one delivery is tried before the next tick starts it anew.
const DELIVER_MS: u64 = 5_000;
/// How long a line rests after its first message was refused: every try is an entry in the target's log.
const REFUSED_PAUSE_MS: u64 = 500;
/// Most messages in one delivery.
const MESSAGES_MAX: usize = 64;

impl Replica {
    /// Sends the first waiting messages to each target of the shards led here.
    pub(crate) fn deliver_outboxes(&mut self, now: Now) {
        self.outbox_due = false;
        for shard in 0..self.seats.len() {
            let seat = &self.seats[shard];
            if !seat.leads() {
                continue;
            }
            let waiting = seat.state.outbox_targets();
            let free = waiting.filter(|target| {
                seat.delivering.get(target).is_none_or(|until| *until <= now.mono_ms)
            });
            for target in free.collect::<Vec<_>>() {
                self.deliver_to(shard as ShardId, target, now);
            }
        }
    }

    fn deliver_to(&mut self, source: ShardId, target: ShardId, now: Now) {
        let seat = &mut self.seats[usize::from(source)];
        let mut bytes = 0;
        let mut items = Vec::new();
        for item in seat.state.outbox_pending(target, 0, MESSAGES_MAX) {
            // A large message travels alone.
            bytes += item.message.weight();
            if !items.is_empty() && bytes > self.config.batch_bytes_max {
                break;
            }
            items.push(item);
        }
        // Settings further back come along: the line may be held up by a task that only they can make room for.
        let next = items.last().map_or(0, |item| item.sequence + 1);
        items.extend(seat.state.outbox_settings(target, next, MESSAGES_MAX));
        let order = |item: OutboxItem| {
            let (sequence, message) = (item.sequence, item.message);
            let command = Command::Deliver(Deliver { source, sequence, message });
            Order { namespace: Namespace::default(), request: None, command }
        };
        let orders: Vec<Order> = items.into_iter().map(order).collect();
        let Some(Command::Deliver(first)) = orders.first().map(|order| &order.command) else {
            return;
        };
        let owner = Owner::Outbox { source, sequence: first.sequence };
        // An acknowledgement may get lost; then everything is sent again.
        seat.delivering.insert(target, now.mono_ms + 2 * DELIVER_MS);
        let deadline_ms = now.mono_ms + DELIVER_MS;
        self.open_leg(Leg::new(target, owner, Ask::Write(orders), deadline_ms), now);
    }

    /// A delivery came back: acknowledge it in the source shard, or let the next tick try again.
    pub(crate) fn outbox_told(
        &mut self,
        source: ShardId,
        target: ShardId,
        sequence: u64,
        told: &Told,
        now: Now,
    ) {
        let seat = &mut self.seats[usize::from(source)];
        let Told::Replies { replies, .. } = told else {
            match told {
                // As long as a database takes no writes there is nothing to be had from asking at each tick.
                Told::Refused { .. } => {
                    seat.delivering.insert(target, now.mono_ms + REFUSED_PAUSE_MS);
                }
                _ => {
                    seat.delivering.remove(&target);
                }
            }
            return;
        };
        // The first that was not taken holds up those behind it.
        let taken = replies.iter().take_while(|reply| matches!(reply, Reply::Delivered { .. }));
        let count = taken.count() as u64;
        if count == 0 {
            seat.delivering.insert(target, now.mono_ms + REFUSED_PAUSE_MS);
            return;
        }
        if seat.leads() {
            let command = Command::Acked(Acked { target, sequence: sequence + count - 1 });
            let order = Order { namespace: Namespace::default(), request: None, command };
            // The next messages go once this is applied.
            self.enqueue_orders(source, Asker::Nobody, std::slice::from_ref(&order));
        } else {
            seat.delivering.remove(&target);
        }
    }
}
