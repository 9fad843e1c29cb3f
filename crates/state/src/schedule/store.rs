//! What is stored about one schedule, and how it is found.

use std::ops::Bound;
use std::sync::Arc;

use minicbor::{Decode, Encode};

use super::ScheduleSpec;
use crate::hash::{RecordKind, digest_record};
use crate::limits::{Limits, SCHEDULE_NAME_BYTES_MAX};
use crate::shard::Shard;
use crate::{Namespace, ScheduleName, ShardId, TaskId};

/// Full name of a schedule.
pub type ScheduleKey = (Namespace, ScheduleName);

/// The newest instant that was kept.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct LastFire {
    /// The instant.
    #[n(0)]
    pub instant_ms: u64,
    /// Log time at which it was kept.
    #[n(1)]
    pub fired_ms: u64,
    /// Its task.
    #[n(2)]
    pub id: TaskId,
    /// Number of the message that carried it to its shard; 0 if it lives in shard 0.
    #[n(3)]
    pub sequence: u64,
    /// The shard that the message went to.
    #[n(4)]
    #[cbor(default)]
    pub target: ShardId,
}

/// One schedule as stored.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Schedule {
    /// Its owner.
    #[n(0)]
    pub namespace: Namespace,
    /// Its name.
    #[n(1)]
    pub name: ScheduleName,
    /// Rises with each setting, from 1.
    #[n(2)]
    pub version: u64,
    /// Its settings.
    #[n(3)]
    pub spec: ScheduleSpec,
    /// Log time of the first setting.
    #[n(4)]
    pub created_ms: u64,
    /// All instants up to here are decided.
    #[n(5)]
    pub cursor_ms: u64,
    /// Instants kept.
    #[n(6)]
    pub fired: u64,
    /// Instants missed and not made up for.
    #[n(7)]
    pub missed: u64,
    /// Instants not kept because the task before was unfinished.
    #[n(8)]
    pub overlapped: u64,
    /// The newest instant that was kept.
    #[n(9)]
    pub last: Option<LastFire>,
    /// The newest instant that was missed and not made up for; 0 if none was.
    #[n(10)]
    pub last_missed_ms: u64,
    /// The newest instant not kept because of the task before; 0 if none.
    #[n(11)]
    pub last_overlapped_ms: u64,
}

impl Schedule {
    /// A schedule that begins now.
    pub(crate) fn begun(key: &ScheduleKey, spec: ScheduleSpec, now_ms: u64) -> Schedule {
        Schedule {
            namespace: key.0.clone(),
            name: key.1.clone(),
            version: 0,
            spec,
            created_ms: now_ms,
            cursor_ms: now_ms,
            fired: 0,
            missed: 0,
            overlapped: 0,
            last: None,
            last_missed_ms: 0,
            last_overlapped_ms: 0,
        }
    }

    /// Whether a decoded record obeys the rules that the verbs rely on.
    pub(crate) fn is_valid(&self, limits: &Limits, now_ms: u64) -> bool {
        let far = u64::MAX / 4;
        self.name.as_str().len() <= SCHEDULE_NAME_BYTES_MAX
            && self.spec.check(&self.name, limits).is_ok()
            && self.cursor_ms <= now_ms
            && [self.version, self.fired, self.missed, self.overlapped].iter().all(|n| *n < far)
    }
}

impl Shard {
    /// One schedule.
    pub fn schedule(&self, key: &ScheduleKey) -> Option<&Arc<Schedule>> {
        self.core.schedules.get(key)
    }

    /// Number of schedules.
    pub fn schedule_count(&self) -> usize {
        self.core.schedules.len()
    }

    /// All schedules of all namespaces, in order.
    pub fn schedules(&self) -> impl Iterator<Item = &Arc<Schedule>> + '_ {
        self.core.schedules.values()
    }

    /// Schedules of a namespace in order of their names: at most so many, behind that name.
    pub fn schedules_of(
        &self,
        namespace: &Namespace,
        after: Option<&ScheduleName>,
        limit: usize,
    ) -> Vec<Arc<Schedule>> {
        let after = after.map(|name| (namespace.clone(), name.clone()));
        // No name is the empty text, so the first of a namespace is found by skipping those before it.
        let from = match &after {
            Some(key) => Bound::Excluded(key),
            None => Bound::Unbounded,
        };
        let rest = self.core.schedules.range::<ScheduleKey, _>((from, Bound::Unbounded));
        let own = rest.skip_while(|((owner, _), _)| owner < namespace);
        let own = own.take_while(|((owner, _), _)| owner == namespace);
        own.take(limit).map(|(_, schedule)| schedule.clone()).collect()
    }

    /// Stores a schedule, new or changed.
    pub(crate) fn put_schedule(&mut self, schedule: Schedule) {
        let key = (schedule.namespace.clone(), schedule.name.clone());
        self.core.hash.add(digest_record(RecordKind::Schedule, &schedule));
        if let Some(before) = self.core.schedules.insert(key, Arc::new(schedule)) {
            self.core.hash.remove(digest_record(RecordKind::Schedule, &*before));
        }
    }

    /// Removes a schedule; false if there is none.
    pub(crate) fn remove_schedule(&mut self, key: &ScheduleKey) -> bool {
        let before = self.core.schedules.remove(key);
        if let Some(before) = &before {
            self.core.hash.remove(digest_record(RecordKind::Schedule, &**before));
        }
        before.is_some()
    }
}
