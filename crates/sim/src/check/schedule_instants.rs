//! Q12 Schedule instants: every instant of a schedule is decided exactly once, in order and not before its time, over
//! leader changes, restores and clock jumps; it becomes one task or is counted as left out.
//!
//! Instants are counted by `oracle::timing`, which shares nothing with the product.

use std::collections::{BTreeMap, BTreeSet};

use ikada_state::{Fire, Reply, ScheduleName, SetSchedule, TaskId, Timing, derive_fire_id};

use super::{Verdict, Violation, violation};
use crate::oracle::timing::Instants;

const NAME: &str = "Q12 schedule_instants";
/// Names of simulated schedules begin like this, and no other task's name does.
pub const PREFIX: &str = "tick-";

#[derive(Debug)]
struct Known {
    timing: Timing,
    instants: Instants,
    cursor_ms: u64,
    version: u64,
    paused: bool,
}

/// What an order made of a schedule.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Turned {
    /// It is paused now, and was not.
    pub paused: bool,
    /// It is not paused any more.
    pub resumed: bool,
}

/// What an order decided.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Decided {
    /// For the first time.
    pub fresh: bool,
    /// By a cron line.
    pub cron: bool,
    /// Soon after the clocks of its zone were set.
    pub clocks_set: bool,
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
    pub fn set(
        &mut self,
        order: &SetSchedule,
        reply: &Reply,
        time_ms: u64,
    ) -> Result<Turned, Violation> {
        let Reply::ScheduleSet { version } = reply else {
            return Ok(Turned::default());
        };
        let bad = |what: &str| violation(NAME, format!("{order:?} at {time_ms}: {what}"));
        let timing = order.spec.as_ref().map(|spec| spec.timing.clone());
        let wanted = order.paused.or(order.spec.as_ref().map(|spec| spec.paused));
        let Some(known) = self.known.get_mut(&order.name) else {
            let Some((timing, instants)) =
                timing.and_then(|timing| Instants::read(&timing).map(|read| (timing, read)))
            else {
                return bad("there was nothing to change").map(|()| Turned::default());
            };
            let paused = wanted.unwrap_or(false);
            let begun = Known { timing, instants, cursor_ms: time_ms, version: *version, paused };
            self.known.insert(order.name.clone(), begun);
            return Ok(Turned::default());
        };
        // A resend is answered as the first time, and nothing happens.
        if *version <= known.version {
            return Ok(Turned::default());
        }
        if *version != known.version + 1 {
            bad(&format!("it had version {}", known.version))?;
        }
        known.version = *version;
        let paused = wanted.unwrap_or(known.paused);
        let turned = Turned { paused: paused && !known.paused, resumed: known.paused && !paused };
        known.paused = paused;
        if turned.resumed {
            known.cursor_ms = time_ms;
        }
        // The same timing again changes nothing.
        if let Some(timing) = timing.filter(|timing| *timing != known.timing)
            && let Some(instants) = Instants::read(&timing)
        {
            (known.timing, known.instants, known.cursor_ms) = (timing, instants, time_ms);
        }
        Ok(turned)
    }

    /// Instants were decided at a log time.
    pub fn fired(
        &mut self,
        fire: &Fire,
        reply: &Reply,
        time_ms: u64,
    ) -> Result<Decided, Violation> {
        let Reply::Fired { fresh } = reply else {
            return Ok(Decided::default());
        };
        let bad = |what: String| violation(NAME, format!("{fire:?} at {time_ms}: {what}"));
        let Some(known) = self.known.get_mut(&fire.name) else {
            return bad("there is no such schedule".to_owned()).map(|()| Decided::default());
        };
        let old = fire.instant_ms <= known.cursor_ms;
        if old == *fresh {
            bad(format!("the instants until {} were decided", known.cursor_ms))?;
        }
        if old {
            return Ok(Decided::default());
        }
        if known.paused {
            bad("it is paused".to_owned())?;
        }
        if !known.instants.has(fire.instant_ms) || fire.instant_ms > time_ms {
            bad("that is no instant that has come".to_owned())?;
        }
        let passed = known.instants.count(known.cursor_ms, fire.instant_ms);
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
        Ok(Decided {
            fresh: true,
            cron: matches!(known.instants, Instants::Cron { .. }),
            clocks_set: known.instants.clocks_set_before(fire.instant_ms),
        })
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
        check.set(&order, &Reply::ScheduleSet { version: 1 }, 500).unwrap();
        check
    }

    fn pause(paused: bool) -> SetSchedule {
        let name = ScheduleName::parse("tick-0").unwrap();
        SetSchedule { name, spec: None, paused: Some(paused), expected_version: None }
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
        assert!(schedule.fired(&fire(1_001, true, 0), &fresh, 9_000).unwrap().fresh);
        assert!(!schedule.fired(&fire(1_001, true, 0), &stale, 9_000).unwrap().fresh);
        assert!(schedule.fired(&fire(1_001, true, 0), &fresh, 9_000).is_err(), "twice");
        assert!(schedule.fired(&fire(4_001, true, 2), &fresh, 9_000).unwrap().fresh);
        assert!(schedule.fired(&fire(5_001, true, 0), &stale, 9_000).is_err(), "lost");
    }

    #[test]
    fn instants_of_a_pause_are_noticed() {
        let fresh = Reply::Fired { fresh: true };
        let set = |version| Reply::ScheduleSet { version };
        let mut schedule = check();
        assert!(schedule.set(&pause(true), &set(3), 1_500).is_err(), "a version was left out");
        let mut schedule = check();
        assert!(schedule.set(&pause(true), &set(2), 1_500).unwrap().paused);
        assert!(schedule.fired(&fire(1_001, true, 0), &fresh, 9_000).is_err(), "paused");
        assert!(schedule.set(&pause(false), &set(3), 3_500).unwrap().resumed);
        // A resend of the pause.
        assert_eq!(schedule.set(&pause(true), &set(2), 3_600), Ok(Turned::default()));
        assert!(schedule.fired(&fire(4_001, true, 3), &fresh, 9_000).is_err(), "made up for");
        assert!(schedule.fired(&fire(4_001, true, 0), &fresh, 9_000).unwrap().fresh);
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
