//! Slow tasks of jobs that asked for it: the leader looks now and then, by its own clock, and has them begun a second time.
//! What it measures decides only whether two run; which of them counts is decided by the state (`state/job/duplicate.rs`).

use ikada_state::{Command, Order};

use crate::output::Now;
use crate::replica::Replica;
use crate::seat::Asker;

/// How often a leader looks.
const LOOK_EVERY_MS: u64 = 500;
/// Most tasks of a shard that are begun a second time at one look.
const BEGIN_MAX: usize = 64;

impl Replica {
    pub(crate) fn duplicate_stragglers(&mut self, now: Now) {
        if now.mono_ms < self.tending.stragglers_at_ms {
            return;
        }
        self.tending.stragglers_at_ms = now.mono_ms + LOOK_EVERY_MS;
        for position in 0..self.seats.len() {
            let seat = &self.seats[position];
            if !seat.leads() || !seat.pending.is_empty() || !seat.state.watches_jobs() {
                continue;
            }
            let (median_ms, lone) = self.median_wall_ms(position, now);
            let seat = &mut self.seats[position];
            let time_ms = seat.clock.foresee(seat.state.time_ms(), median_ms, lone, now);
            let slow = seat.state.stragglers(time_ms, BEGIN_MAX);
            let order = |(namespace, duplicate)| {
                let command = Command::Duplicate(duplicate);
                Order { namespace, request: None, command }
            };
            let orders: Vec<Order> = slow.into_iter().map(order).collect();
            if !orders.is_empty() {
                self.enqueue_orders(position as u16, Asker::Nobody, &orders);
            }
        }
    }
}
