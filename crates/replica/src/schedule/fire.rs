//! The leader of shard 0 decides instants that have come by log time, on its tick.

use ikada_state::{Command, Fire, Order, Overlap, Schedule, ScheduleKey, ShardId};

use super::plan::{FIRES_PER_TICK_MAX, LOOKS_PER_TICK_MAX};
use crate::output::Now;
use crate::replica::Replica;
use crate::seat::Asker;

impl Replica {
    pub(crate) fn fire_schedules(&mut self, now: Now) {
        let seat = &self.seats[0];
        if !seat.leads() || seat.state.schedule_count() == 0 {
            return self.planner.clear();
        }
        let room = seat.tickets.len() < self.config.entries_in_flight_max
            && seat.pending.bytes() < self.config.batch_bytes_max;
        if !room {
            return;
        }
        self.planner.follow(&seat.state);
        let (median_ms, lone) = self.median_wall_ms(0, now);
        let seat = &mut self.seats[0];
        // The entry is stamped in this turn, by the same clock: never earlier than now.
        let time_ms = seat.clock.foresee(seat.state.time_ms(), median_ms, lone, now);
        let mut looks = 0;
        let mut orders = Vec::new();
        for key in self.planner.due(time_ms, now.mono_ms) {
            if looks >= LOOKS_PER_TICK_MAX || orders.len() >= FIRES_PER_TICK_MAX {
                break;
            }
            let Some(schedule) = self.seats[0].state.schedule(&key).cloned() else { continue };
            if schedule.spec.paused {
                continue;
            }
            let busy = schedule.spec.overlap == Overlap::Skip && self.is_unfinished(&schedule);
            let room = FIRES_PER_TICK_MAX - orders.len();
            let (fires, looked) =
                self.planner.decide(&key, &schedule, time_ms, now.mono_ms, busy, room);
            looks += looked;
            orders.extend(fires.into_iter().map(|fire| order(&key, fire)));
        }
        if !orders.is_empty() {
            self.enqueue_orders(0, Asker::Nobody, &orders);
        }
    }

    /// Whether the task of the newest kept instant is unfinished, as far as this node's copy of its shard tells: one
    /// that has not arrived there is, one that is there no more is not.
    fn is_unfinished(&self, schedule: &Schedule) -> bool {
        let Some(last) = &schedule.last else {
            return false;
        };
        let source: ShardId = 0;
        let sent_to = self.seats.get(usize::from(last.target)).map(|seat| &seat.state);
        let is_taken = sent_to.is_some_and(|state| state.inbox_applied(source) >= last.sequence);
        if last.target != source && !is_taken {
            return true;
        }
        // It may have moved since.
        let shard = self.shard_of_task(&schedule.namespace, &last.id);
        let Some(state) = self.seats.get(usize::from(shard)).map(|seat| &seat.state) else {
            return true;
        };
        if state.is_away(&schedule.namespace, &last.id) {
            return true;
        }
        let task = state.task(&schedule.namespace, &last.id);
        task.is_some_and(|task| !task.state.is_terminal())
    }
}

fn order(key: &ScheduleKey, fire: Fire) -> Order {
    Order { namespace: key.0.clone(), request: None, command: Command::Fire(fire) }
}
