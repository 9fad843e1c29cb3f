//! Time passes: the engine ticks, waits end, claims expire, scheduled tasks come due.

use ikada_consensus::NodeId;
use ikada_state::{Command, Expire, ExpireLease, Order};

use crate::clock::CLOCK_ALARM_MS;
use crate::jitter;
use crate::leg::{Leg, Owner};
use crate::output::Now;
use crate::peer::Ask;
use crate::replica::Replica;
use crate::seat::Asker;

/// How often a node under repair asks for an entry.
const NUDGE_MS: u64 = 1_000;
/// How often the wall clock is compared with the other voters'.
const CLOCK_WATCH_MS: u64 = 30_000;

impl Replica {
    pub(crate) fn tick(&mut self, now: Now) {
        self.consensus.tick(now.mono_ms);
        self.tend_legs(now);
        self.tend_calls(now);
        self.tend_claims(now);
        self.expire_claims(now);
        self.expire_leases(now);
        self.sweep_workers(now);
        self.tend_leases(true, now);
        self.fire_schedules(now);
        self.wake_scheduled(now);
        self.duplicate_stragglers(now);
        self.deliver_outboxes(now);
        self.tend_transfers(now);
        self.nudge_repairs(now);
        self.watch_clock(now);
        self.tend_members(now);
        if self.stopping_since_ms.is_some() {
            self.hand_over();
        }
    }

    /// Claims whose ttl or timeout has run out by this leader's clock are proposed for expiry; apply checks the fence.
    fn expire_claims(&mut self, now: Now) {
        let count_max = self.config.expire_per_tick_max;
        for position in 0..self.seats.len() {
            let seat = &mut self.seats[position];
            // Offered only when it can be proposed in this very turn: an offered claim can no longer be renewed, and a
            // log that stands still must not gather the same expiries every second.
            let room = seat.tickets.len() < self.config.entries_in_flight_max
                && seat.pending.bytes() < self.config.batch_bytes_max;
            if !seat.leads() || !room {
                continue;
            }
            let expired = seat.liveness.expired(now.mono_ms, count_max);
            let orders: Vec<Order> = expired
                .into_iter()
                .filter_map(|(slot, fence, cause)| {
                    let claim = seat.state.claim_at(slot, fence)?;
                    let width = seat.state.jitter_of(&claim.namespace, &claim.id).unwrap_or(0);
                    let jitter_permille = jitter::draw(fence, width);
                    let expire = Expire { id: claim.id, fence, cause, jitter_permille };
                    let command = Command::Expire(expire);
                    Some(Order { namespace: claim.namespace, request: None, command })
                })
                .collect();
            if !orders.is_empty() {
                self.enqueue_orders(position as u16, Asker::Nobody, &orders);
            }
        }
    }

    /// The same for holdings of leases, and for waits.
    fn expire_leases(&mut self, now: Now) {
        let count_max = self.config.expire_per_tick_max;
        for position in 0..self.seats.len() {
            let seat = &mut self.seats[position];
            let room = seat.tickets.len() < self.config.entries_in_flight_max
                && seat.pending.bytes() < self.config.batch_bytes_max;
            if !seat.leads() || !room {
                continue;
            }
            let order = |((namespace, name), mark)| {
                let command = Command::ExpireLease(ExpireLease { name, mark });
                Order { namespace, request: None, command }
            };
            let expired = seat.holdings.expired(now.mono_ms, count_max);
            let orders: Vec<Order> = expired.into_iter().map(order).collect();
            if !orders.is_empty() {
                self.enqueue_orders(position as u16, Asker::Nobody, &orders);
            }
        }
    }

    /// A task's time has come and nobody else writes: an empty entry moves log time on.
    fn wake_scheduled(&mut self, now: Now) {
        for position in 0..self.seats.len() {
            let seat = &self.seats[position];
            if !seat.leads() || !seat.pending.is_empty() || !seat.tickets.is_empty() {
                continue;
            }
            let Some(due_ms) = seat.state.next_scheduled_ms() else { continue };
            let (median_ms, lone) = self.median_wall_ms(position, now);
            let seat = &mut self.seats[position];
            let time_ms = seat.clock.foresee(seat.state.time_ms(), median_ms, lone, now);
            if due_ms <= time_ms {
                seat.pending.push_timer();
            }
        }
    }

    /// A damaged shard is whole again once its log has grown past what it once held. In an idle cluster nothing grows,
    /// so the node asks its leader for an empty entry now and then.
    fn nudge_repairs(&mut self, now: Now) {
        for position in 0..self.seats.len() {
            let shard = position as u16;
            let seat = &mut self.seats[position];
            if seat.nudged_ms + NUDGE_MS > now.mono_ms || !self.consensus.is_repairing(shard) {
                continue;
            }
            seat.nudged_ms = now.mono_ms;
            let leg =
                Leg::new(shard, Owner::Nobody, Ask::Write(Vec::new()), now.mono_ms + NUDGE_MS);
            self.open_leg(leg, now);
        }
    }

    /// Says now and then that our clock is far off; time in the log is safe either way (F-18).
    fn watch_clock(&mut self, now: Now) {
        if self.clock_watched_ms + CLOCK_WATCH_MS > now.mono_ms {
            return;
        }
        self.clock_watched_ms = now.mono_ms;
        let (median_ms, _) = self.median_wall_ms(0, now);
        let offset_ms = now.wall_ms as i64 - median_ms as i64;
        self.outputs.clock_alarm = (offset_ms.abs() > CLOCK_ALARM_MS).then_some(offset_ms);
    }

    /// A connection broke. If the peer's process is gone its leadership is forgotten at once.
    pub(crate) fn peer_down(&mut self, peer: NodeId, refused: bool, now: Now) {
        let known = self.peers.entry(peer).or_default();
        known.up = false;
        known.level = None;
        self.consensus.peer_unreachable(peer);
        if refused {
            self.consensus.peer_gone(peer, now.mono_ms);
        }
        self.unsent_legs(peer, now);
    }
}
