//! Q12 Schedule instants: every instant of a schedule is decided exactly once, in order and not before its time, over
//! leader changes, restores and clock jumps; it becomes one task or is counted as left out.
//!
//! Counts instants by plain arithmetic on intervals; cron lines and zones have their own tests.

use std::collections::{BTreeMap, BTreeSet};

use ikada_state::{Fire, Reply, ScheduleName, SetSchedule, TaskId, Timing, derive_fire_id};

use super::{Verdict, violation};

const NAME: &str = "Q12 schedule_instants";
/// Names of simulated schedules begin like this, and no other task's name does.
pub const PREFIX: &str = "tick-";

#[derive(Debug)]
struct Known {
    every_ms: u64,
    anchor_ms: u64,
    cursor_ms: u64,
}

impl Known {
    /// Instants up to and including a moment, counted from the anchor.
    fn instants_until(&self, moment_ms: u64) -> u64 {
        moment_ms.checked_sub(self.anchor_ms).map_or(0, |passed_ms| passed_ms / self.every_ms + 1)
    }
}

/// All schedules and the tasks they may make.
#[derive(Debug, Default)]
pub struct ScheduleInstants {
    known: BTreeMap<ScheduleName, Known>,
    named: BTreeSet<TaskId>,
    created: BTreeSet<TaskId>,
}

impl ScheduleInstants {
    /// A schedule was set at a log time.
    pub fn set(&mut self, order: &SetSchedule, reply: &Reply, time_ms: u64) {
        let (Reply::ScheduleSet { .. }, Some(spec)) = (reply, &order.spec) else {
            return;
        };
        let Timing::Every { every_ms, anchor_ms } = spec.timing else {
            return;
        };
        let known = Known { every_ms, anchor_ms, cursor_ms: time_ms };
        // The same timing again changes nothing.
        self.known.entry(order.name.clone()).or_insert(known);
    }

    /// Instants were decided at a log time; true if for the first time.
    pub fn fired(
        &mut self,
        fire: &Fire,
        reply: &Reply,
        time_ms: u64,
    ) -> Result<bool, super::Violation> {
        let Reply::Fired { fresh } = reply else {
            return Ok(false);
        };
        let bad = |what: String| violation(NAME, format!("{fire:?} at {time_ms}: {what}"));
        let Some(known) = self.known.get_mut(&fire.name) else {
            return bad("there is no such schedule".to_owned()).map(|()| false);
        };
        let old = fire.instant_ms <= known.cursor_ms;
        if old == *fresh {
            bad(format!("the instants until {} were decided", known.cursor_ms))?;
        }
        if old {
            return Ok(false);
        }
        let on_time = fire.instant_ms >= known.anchor_ms
            && (fire.instant_ms - known.anchor_ms).is_multiple_of(known.every_ms)
            && fire.instant_ms <= time_ms;
        if !on_time {
            bad("that is no instant that has come".to_owned())?;
        }
        let passed = known.instants_until(fire.instant_ms) - known.instants_until(known.cursor_ms);
        let told = u64::from(fire.run) + u64::from(fire.missed) + u64::from(fire.overlapped);
        if passed != told {
            bad(format!("{passed} instants since {}, {told} accounted for", known.cursor_ms))?;
        }
        known.cursor_ms = fire.instant_ms;
        if fire.run {
            let id = derive_fire_id(&fire.name, fire.instant_ms);
            if let Ok(id) = TaskId::parse(&id) {
                self.named.insert(id);
            }
        }
        Ok(true)
    }

    /// A task came into being; whether one of a schedule's instants stands behind it.
    pub fn created(&mut self, id: &TaskId) -> Verdict {
        if !id.as_str().starts_with(PREFIX) {
            return Ok(());
        }
        if !self.named.contains(id) {
            return violation(NAME, format!("task {id} belongs to no instant"));
        }
        match self.created.insert(id.clone()) {
            true => Ok(()),
            false => violation(NAME, format!("the instant of task {id} made it twice")),
        }
    }

    /// After healing and draining: every instant that was kept has its task.
    pub fn all_there(&self) -> Verdict {
        match self.named.difference(&self.created).next() {
            Some(missing) => violation(NAME, format!("task {missing} was never created")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use ikada_state::{Enqueue, Missed, Overlap, QueueName, ScheduleSpec};

    use super::*;

    fn check() -> ScheduleInstants {
        let name = ScheduleName::parse("tick-0").unwrap();
        let id = TaskId::parse("tick-0").unwrap();
        let spec = ScheduleSpec {
            timing: Timing::Every { every_ms: 1_000, anchor_ms: 1 },
            task: Enqueue::new(id, QueueName::parse("q").unwrap(), Vec::new()),
            missed: Missed::All,
            overlap: Overlap::Allow,
            grace_ms: 0,
            paused: false,
        };
        let spec = Some(Box::new(spec));
        let order = SetSchedule { name, spec, paused: None, expected_version: None };
        let mut check = ScheduleInstants::default();
        check.set(&order, &Reply::ScheduleSet { version: 1 }, 500);
        check
    }

    fn fire(instant_ms: u64, run: bool, missed: u32) -> Fire {
        let name = ScheduleName::parse("tick-0").unwrap();
        Fire { name, version: 1, instant_ms, run, missed, overlapped: 0, after_ms: 0 }
    }

    #[test]
    fn doubled_skipped_and_early_instants_are_noticed() {
        let (fresh, stale) = (Reply::Fired { fresh: true }, Reply::Fired { fresh: false });
        let mut schedule = check();
        assert!(schedule.fired(&fire(1_001, true, 0), &fresh, 1_000).is_err(), "early");
        assert!(schedule.fired(&fire(1_002, true, 0), &fresh, 9_000).is_err(), "no instant");
        assert!(schedule.fired(&fire(2_001, true, 0), &fresh, 9_000).is_err(), "one is skipped");
        let mut schedule = check();
        assert_eq!(schedule.fired(&fire(1_001, true, 0), &fresh, 9_000), Ok(true));
        assert_eq!(schedule.fired(&fire(1_001, true, 0), &stale, 9_000), Ok(false));
        assert!(schedule.fired(&fire(1_001, true, 0), &fresh, 9_000).is_err(), "twice");
        assert_eq!(schedule.fired(&fire(4_001, true, 2), &fresh, 9_000), Ok(true));
        assert!(schedule.fired(&fire(5_001, true, 0), &stale, 9_000).is_err(), "lost");
    }

    #[test]
    fn doubled_missing_and_strange_tasks_are_noticed() {
        let mut schedule = check();
        let id = |text: &str| TaskId::parse(text).unwrap();
        schedule.fired(&fire(1_001, true, 0), &Reply::Fired { fresh: true }, 9_000).unwrap();
        assert!(schedule.all_there().is_err());
        assert!(schedule.created(&id("other")).is_ok());
        assert!(schedule.created(&id("tick-0.19700101T000001.001Z-7")).is_err());
        assert!(schedule.created(&id("tick-0.19700101T000001.001Z")).is_ok());
        assert!(schedule.all_there().is_ok());
        assert!(schedule.created(&id("tick-0.19700101T000001.001Z")).is_err());
    }
}
