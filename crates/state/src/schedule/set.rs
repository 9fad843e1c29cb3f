//! `SetSchedule`: makes a schedule, changes it as a whole, or pauses and resumes it.
//!
//! A new timing, and a schedule that is resumed, count from now on. Any other change leaves the cursor alone, so that an
//! instant that is due at that very moment is still kept.

use minicbor::{Decode, Encode};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::{Schedule, ScheduleSpec};
use crate::hash::encode_into;
use crate::limits::{SCHEDULE_NAME_BYTES_MAX, SCHEDULES_MAX};
use crate::shard::Shard;
use crate::{Namespace, RefusalCode, Reply, ScheduleName};

/// New settings.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct SetSchedule {
    /// The schedule.
    #[n(0)]
    pub name: ScheduleName,
    /// All settings; absent if only `paused` changes.
    #[n(1)]
    pub spec: Option<Box<ScheduleSpec>>,
    /// Pauses or resumes, whatever the settings say.
    #[n(2)]
    pub paused: Option<bool>,
    /// Refuse unless the schedule still has this version; 0 is one that does not exist.
    #[n(3)]
    pub expected_version: Option<u64>,
}

impl SetSchedule {
    /// Hash of the order as given.
    pub(crate) fn body_hash(&self) -> u64 {
        let mut bytes = Vec::with_capacity(256);
        encode_into(self, &mut bytes);
        xxh3_64_with_seed(&bytes, 40)
    }
}

impl Shard {
    pub(crate) fn apply_set_schedule(
        &mut self,
        namespace: &Namespace,
        order: SetSchedule,
    ) -> Reply {
        match self.set_schedule(namespace, order) {
            Ok(version) => Reply::ScheduleSet { version },
            Err(code) => Reply::refused(code),
        }
    }

    fn set_schedule(
        &mut self,
        namespace: &Namespace,
        order: SetSchedule,
    ) -> Result<u64, RefusalCode> {
        if self.core.shard != 0 {
            return Err(RefusalCode::WrongShard);
        }
        if order.name.as_str().len() > SCHEDULE_NAME_BYTES_MAX {
            return Err(RefusalCode::TooLarge);
        }
        let key = (namespace.clone(), order.name);
        let known = self.core.schedules.get(&key).cloned();
        let version = known.as_ref().map_or(0, |known| known.version);
        if order.expected_version.is_some_and(|expected| expected != version) {
            return Err(RefusalCode::VersionConflict);
        }
        let mut spec = match (order.spec, &known) {
            (Some(spec), _) => *spec,
            (None, Some(known)) => known.spec.clone(),
            (None, None) => return Err(RefusalCode::ScheduleNotFound),
        };
        let now_ms = self.core.time_ms;
        spec.paused = order.paused.unwrap_or(spec.paused);
        spec.timing = spec.timing.anchored(known.as_ref().map(|known| &known.spec.timing), now_ms);
        spec.check(&key.1, &self.core.limits)?;
        if known.is_none() && self.core.schedules.len() >= SCHEDULES_MAX {
            return Err(RefusalCode::TooManySchedules);
        }
        let mut schedule = match known {
            Some(known) => (*known).clone(),
            None => Schedule::begun(&key, spec.clone(), now_ms),
        };
        let resumed = schedule.spec.paused && !spec.paused;
        if resumed || schedule.spec.timing != spec.timing {
            schedule.cursor_ms = now_ms;
        }
        schedule.spec = spec;
        schedule.version += 1;
        let version = schedule.version;
        self.put_schedule(schedule);
        Ok(version)
    }
}
