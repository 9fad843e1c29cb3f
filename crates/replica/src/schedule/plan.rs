//! What a leader remembers of each schedule, so that a tick costs a comparison: the timetable as read, the next instant,
//! and what it has proposed and not yet seen applied. All of it is derived; a new leader starts with nothing.

use std::collections::BTreeMap;

use ikada_state::{Fire, Missed, Overlap, Schedule, ScheduleKey, Shard};

use super::Timetable;

/// Instants of one schedule looked through at once. When there are more, these are too old to be made up for.
const INSTANTS_LOOKED_MAX: usize = 1_000;
/// Missed instants made up for under `all`, the newest.
pub(super) const CATCH_UP_MAX: usize = 100;
/// Instants looked through per tick over all schedules, so that a long outage does not hold up the turn.
pub(super) const LOOKS_PER_TICK_MAX: usize = 4_000;
/// Instants decided per tick.
pub(super) const FIRES_PER_TICK_MAX: usize = 256;
/// After this long without being applied a decision is proposed again.
const AGAIN_MS: u64 = 1_000;

/// One schedule as planned.
#[derive(Debug)]
struct Plan {
    version: u64,
    cursor_ms: u64,
    /// None if this version of the program cannot read the timing.
    timetable: Option<Timetable>,
    next_ms: Option<u64>,
    /// Until then nothing more is proposed, unless the cursor moves.
    quiet_until_ms: u64,
}

impl Plan {
    fn of(schedule: &Schedule) -> Plan {
        let timetable = Timetable::read(&schedule.spec.timing).ok();
        let next_ms = timetable.as_ref().and_then(|table| table.next_after(schedule.cursor_ms));
        let (version, cursor_ms) = (schedule.version, schedule.cursor_ms);
        Plan { version, cursor_ms, timetable, next_ms, quiet_until_ms: 0 }
    }

    fn follow(&mut self, schedule: &Schedule) {
        if self.version != schedule.version {
            *self = Plan::of(schedule);
        } else if self.cursor_ms != schedule.cursor_ms {
            self.cursor_ms = schedule.cursor_ms;
            let table = self.timetable.as_ref();
            self.next_ms = table.and_then(|table| table.next_after(schedule.cursor_ms));
            self.quiet_until_ms = 0;
        }
    }
}

/// All schedules as planned. Bounded by the schedules there are.
#[derive(Debug, Default)]
pub(crate) struct Planner {
    plans: BTreeMap<ScheduleKey, Plan>,
}

impl Planner {
    pub(crate) fn clear(&mut self) {
        self.plans.clear();
    }

    /// Follows the state: new, changed and removed schedules.
    pub(super) fn follow(&mut self, state: &Shard) {
        if self.plans.len() > state.schedule_count() {
            self.plans.retain(|key, _| state.schedule(key).is_some());
        }
        for schedule in state.schedules() {
            let key = (schedule.namespace.clone(), schedule.name.clone());
            match self.plans.get_mut(&key) {
                Some(plan) => plan.follow(schedule),
                None => {
                    self.plans.insert(key, Plan::of(schedule));
                }
            }
        }
    }

    /// Schedules with an instant that has come, and is not proposed yet.
    pub(super) fn due(&self, time_ms: u64, now_ms: u64) -> Vec<ScheduleKey> {
        let due = |plan: &Plan| {
            plan.next_ms.is_some_and(|next_ms| next_ms <= time_ms) && plan.quiet_until_ms <= now_ms
        };
        let found = self.plans.iter().filter(|(_, plan)| due(plan));
        found.map(|(key, _)| key.clone()).collect()
    }

    /// Decides the instants of one schedule that have come, at most `fires_max` of them. `busy` says that the task of
    /// the newest kept instant is unfinished. Also gives the number of instants looked through.
    pub(super) fn decide(
        &mut self,
        key: &ScheduleKey,
        schedule: &Schedule,
        time_ms: u64,
        now_ms: u64,
        busy: bool,
        fires_max: usize,
    ) -> (Vec<Fire>, usize) {
        let Some(plan) = self.plans.get_mut(key) else {
            return (Vec::new(), 0);
        };
        plan.quiet_until_ms = now_ms.saturating_add(AGAIN_MS);
        let Some(table) = &plan.timetable else {
            return (Vec::new(), 0);
        };
        let mut instants = Vec::new();
        let mut next = plan.next_ms;
        while let Some(instant_ms) = next.filter(|instant_ms| *instant_ms <= time_ms) {
            if instants.len() >= INSTANTS_LOOKED_MAX {
                break;
            }
            instants.push(instant_ms);
            next = table.next_after(instant_ms);
        }
        let more = next.is_some_and(|instant_ms| instant_ms <= time_ms);
        let looked = instants.len();
        let mut fires = settle(schedule, &instants, more, time_ms, busy);
        fires.truncate(fires_max);
        (fires, looked)
    }
}

/// What becomes of instants that have come, oldest first.
fn settle(
    schedule: &Schedule,
    instants: &[u64],
    more: bool,
    time_ms: u64,
    busy: bool,
) -> Vec<Fire> {
    let spec = &schedule.spec;
    let late = |instant_ms: &u64| instant_ms.saturating_add(spec.grace_ms) < time_ms;
    let missed = match more {
        true => instants.len(),
        false => instants.iter().take_while(|instant_ms| late(instant_ms)).count(),
    };
    // Of the missed ones, the newest so many are made up for.
    let made_up = match (more, spec.missed) {
        (true, _) | (_, Missed::Skip) => 0,
        (_, Missed::One) => missed.min(1),
        (_, Missed::All) => missed.min(CATCH_UP_MAX),
    };
    let (dropped, kept) = instants.split_at(missed - made_up);
    let mut fires = Vec::new();
    // Each goes on from the one before it.
    let mut after_ms = schedule.cursor_ms;
    let mut fire = |instant_ms: u64, run: bool, missed: usize, overlapped: u32| Fire {
        name: schedule.name.clone(),
        version: schedule.version,
        instant_ms,
        run,
        missed: missed as u32,
        overlapped,
        after_ms: std::mem::replace(&mut after_ms, instant_ms),
    };
    if let Some(newest) = dropped.last() {
        fires.push(fire(*newest, false, dropped.len(), 0));
    }
    let mut busy = busy;
    for instant_ms in kept {
        let run = !(busy && spec.overlap == Overlap::Skip);
        fires.push(fire(*instant_ms, run, 0, u32::from(!run)));
        busy |= run;
    }
    fires
}

#[cfg(test)]
#[path = "plan_test.rs"]
mod plan_test;
