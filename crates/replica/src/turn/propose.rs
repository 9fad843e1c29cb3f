//! From gathered orders to log entries.

use bytes::Bytes;
use ikada_consensus::NotLeader;

use crate::output::Now;
use crate::peer::Told;
use crate::planted::{self, Bug};
use crate::replica::Replica;
use crate::seat::Ticket;

impl Replica {
    /// Proposes the orders of every shard led here, as far as entries in flight allow.
    pub(crate) fn propose_pending(&mut self, now: Now) {
        for position in 0..self.seats.len() {
            if !self.seats[position].leads() {
                self.return_pending(position, now);
                continue;
            }
            while self.seats[position].tickets.len() < self.config.entries_in_flight_max {
                if !self.propose_next(position, now) {
                    break;
                }
            }
        }
    }

    fn propose_next(&mut self, position: usize, now: Now) -> bool {
        // Asked first: most turns have nothing to propose, and the median costs more than all else here.
        if self.seats[position].pending.is_empty() {
            return false;
        }
        let (median_ms, lone) = self.median_wall_ms(position, now);
        let seat = &mut self.seats[position];
        let Some((builder, waiters)) = seat.pending.pop() else {
            return false;
        };
        let time_ms = seat.clock.stamp(seat.state.time_ms(), median_ms, lone, now);
        let payload = Bytes::from(builder.finish(time_ms));
        match self.consensus.propose(seat.shard, payload) {
            Ok((term, index)) => {
                self.proposed_entries += 1;
                seat.tickets.push_back(Ticket { term, index, waiters });
                if seat.adds_until == u64::MAX && seat.pending.is_empty() {
                    seat.adds_until = index;
                }
                if planted::active(Bug::AckBeforeCommit) {
                    self.ack_early(position, now);
                }
                true
            }
            Err(NotLeader { leader }) => {
                for waiter in waiters {
                    self.tell(waiter.asker, Told::NotLeader { leader }, now);
                }
                true
            }
        }
    }

    /// Orders gathered before leadership was lost were never proposed: their askers are told so.
    fn return_pending(&mut self, position: usize, now: Now) {
        while let Some((_, waiters)) = self.seats[position].pending.pop() {
            let leader = self.seats[position].leader;
            for waiter in waiters {
                self.tell(waiter.asker, Told::NotLeader { leader }, now);
            }
        }
    }

    /// The voters' median wall clock for a shard, and whether this node is its only voter.
    pub(crate) fn median_wall_ms(&self, position: usize, now: Now) -> (u64, bool) {
        let conf = self.consensus.conf_applied(position as u16);
        (self.clocks.median(self.config.node, &conf.voters, now), conf.voters.len() == 1)
    }

    /// A planted defect: applies the newest entry to a copy and answers from it before it is committed.
    fn ack_early(&mut self, position: usize, now: Now) {
        use ikada_state::Lsn;
        let seat = &mut self.seats[position];
        let Some(ticket) = seat.tickets.back_mut() else {
            return;
        };
        let (term, index) = (ticket.term, ticket.index);
        let waiters = std::mem::take(&mut ticket.waiters);
        let entries = self.consensus.entries(position as u16, index, index + 1);
        let Some(entry) = entries.first() else { return };
        let mut copy = seat.state.clone();
        let mut replies = copy.apply(Lsn { term, index }, &entry.data).replies.into_iter();
        for waiter in waiters {
            let replies = replies.by_ref().take(waiter.orders).collect();
            self.tell(waiter.asker, Told::Replies { term, index, replies }, now);
        }
    }
}
