//! What a schedule is told: when, what to submit, and what to do about instants that could not be kept.

use minicbor::{Decode, Encode};

use crate::limits::{
    EVERY_MS_MAX, EVERY_MS_MIN, GRACE_MS_MAX, Limits, SCHEDULE_TASK_BYTES_MAX, TIMING_BYTES_MAX,
};
use crate::task::rename_then;
use crate::{Enqueue, RefusalCode, ScheduleName, TaskId, derive_fire_id};

/// When a schedule's instants are.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Timing {
    /// Whenever a clock on a wall in the zone shows what the line says.
    #[n(0)]
    Cron {
        /// Five fields, or a word such as `@daily`.
        #[n(0)]
        line: String,
        /// Name of a time zone.
        #[n(1)]
        zone: String,
    },
    /// Every so often.
    #[n(1)]
    Every {
        /// Time between two instants.
        #[n(0)]
        every_ms: u64,
        /// One of the instants; 0 lets the time of the first setting be it.
        #[n(1)]
        anchor_ms: u64,
    },
}

impl Timing {
    /// Fills in an anchor that was not given: the one before if only that is missing, else now.
    pub(crate) fn anchored(self, before: Option<&Timing>, now_ms: u64) -> Timing {
        match (self, before) {
            (
                Timing::Every { every_ms, anchor_ms: 0 },
                Some(Timing::Every { every_ms: earlier_ms, anchor_ms }),
            ) if every_ms == *earlier_ms => Timing::Every { every_ms, anchor_ms: *anchor_ms },
            (Timing::Every { every_ms, anchor_ms: 0 }, _) => {
                Timing::Every { every_ms, anchor_ms: now_ms.max(1) }
            }
            (timing, _) => timing,
        }
    }

    fn is_valid(&self) -> bool {
        match self {
            Timing::Cron { line, zone } => {
                !line.is_empty() && !zone.is_empty() && line.len() + zone.len() <= TIMING_BYTES_MAX
            }
            Timing::Every { every_ms, anchor_ms } => {
                (EVERY_MS_MIN..=EVERY_MS_MAX).contains(every_ms) && *anchor_ms <= u64::MAX / 4
            }
        }
    }
}

/// What becomes of instants that passed more than the grace time ago, since nobody could keep them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum Missed {
    /// They are counted and not made up for.
    #[n(0)]
    Skip,
    /// The newest is made up for, the others are counted.
    #[n(1)]
    #[default]
    One,
    /// All are made up for, the newest hundred at most.
    #[n(2)]
    All,
}

/// What becomes of an instant while the task of the one before is unfinished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum Overlap {
    /// It is kept all the same.
    #[n(0)]
    #[default]
    Allow,
    /// It is counted and not kept.
    #[n(1)]
    Skip,
}

/// All settings of a schedule.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct ScheduleSpec {
    /// When.
    #[n(0)]
    pub timing: Timing,
    /// What to submit. Its id is the schedule's name, with a key before it if the tasks have one.
    #[n(1)]
    pub task: Enqueue,
    /// Instants that could not be kept in time.
    #[n(2)]
    pub missed: Missed,
    /// Instants that come while the task before is unfinished.
    #[n(3)]
    pub overlap: Overlap,
    /// How late an instant may be before it counts as missed.
    #[n(4)]
    pub grace_ms: u64,
    /// A paused schedule has no instants.
    #[n(5)]
    pub paused: bool,
}

impl ScheduleSpec {
    /// Whether every value is inside its bounds.
    pub(crate) fn check(&self, name: &ScheduleName, limits: &Limits) -> Result<(), RefusalCode> {
        let task = &self.task;
        let absolute = task.options.as_ref().is_some_and(|options| options.deadline_ms.is_some());
        if !self.timing.is_valid()
            || self.grace_ms > GRACE_MS_MAX
            || task.id.bare_id() != name.as_str()
            || task.run_at_ms.is_some()
            || absolute
        {
            return Err(RefusalCode::BadValue);
        }
        if task.weight() > SCHEDULE_TASK_BYTES_MAX {
            return Err(RefusalCode::TooLarge);
        }
        task.check(limits)
    }

    /// The level that understands it.
    pub(crate) fn level(&self) -> u32 {
        let then = self.task.options.as_ref().and_then(|options| options.then.as_ref());
        self.task.level().max(u32::from(then.is_some()))
    }

    /// The task of one instant. Its follow-ups are named after it, so that those of two instants differ.
    pub(crate) fn task_at(&self, name: &ScheduleName, instant_ms: u64) -> Enqueue {
        let mut task = self.task.clone();
        task.id = fire_handle(&self.task.id, name, instant_ms);
        if let Some(options) = &mut task.options
            && let Some(then) = &options.then
        {
            options.then = rename_then(&task.id, then, 1);
        }
        task
    }
}

/// The handle of the task of one instant, with the key of the template.
fn fire_handle(template: &TaskId, name: &ScheduleName, instant_ms: u64) -> TaskId {
    let id = derive_fire_id(name, instant_ms);
    let handle = match template.key() {
        Some(key) => TaskId::keyed(key, &id),
        None => TaskId::parse(&id),
    };
    handle.unwrap_or_else(|error| panic!("derived task id: {error}"))
}
