//! What only some tasks have: order by key, labels, timeout, deadline, retention of their own,
//! follow-ups. A task without any of them carries one empty pointer.

use std::sync::Arc;

use minicbor::{Decode, Encode};
use xxhash_rust::xxh3::xxh3_64;

use crate::hash::encode_into;
use crate::limits::{KEY_LIMIT_MAX, LABELS_WANTED_MAX, Limits, THEN_TOTAL_MAX, TIMEOUT_MS_MAX};
use crate::task::then::check_then;
use crate::{Labels, QueueSettings, RefusalCode, SharedBytes, SharedWork, TaskId};

/// Settings that most tasks do not name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct TaskOptions {
    /// Most live claims of the task's key in its queue: 1 is strict order, 0 is no limit and no
    /// order. Only for a task with a key.
    #[n(0)]
    pub key_limit: Option<u16>,
    /// What the worker must have.
    #[n(1)]
    pub labels: Labels,
    /// Longest time for a whole attempt; 0 is no limit.
    #[n(2)]
    pub timeout_ms: Option<u32>,
    /// Log time from which on it is not claimed any more.
    #[n(3)]
    pub deadline_ms: Option<u64>,
    /// The same, from the log time of application; excludes `deadline_ms`. 0 is no deadline.
    #[n(4)]
    pub deadline_in_ms: Option<u64>,
    /// How long it is kept when finished, whatever its queue's count.
    #[n(5)]
    pub retention_ms: Option<u64>,
    /// Follow-ups, as `encode_then` writes them.
    #[n(6)]
    pub then: Option<SharedBytes>,
    /// What to run; absent for a plain task.
    #[n(7)]
    pub work: Option<SharedWork>,
    /// Hash of the body as its submitter sent it, where names in it were resolved since. None if none were; leaves no
    /// trace in encodings then.
    #[n(8)]
    pub asked: Option<u64>,
}

impl TaskOptions {
    /// Bytes that count as the task's payload does.
    pub(crate) fn weight(&self) -> usize {
        let work = self.work.as_ref().map_or(0, |work| work.weight());
        self.then.as_ref().map_or(0, |then| then.len()) + work
    }

    pub(crate) fn check(&self, id: &TaskId, limits: &Limits) -> Result<(), RefusalCode> {
        if self.labels.len() > LABELS_WANTED_MAX {
            return Err(RefusalCode::TooLarge);
        }
        let fits = self.key_limit.is_none_or(|limit| limit <= KEY_LIMIT_MAX && id.key().is_some())
            && self.timeout_ms.is_none_or(|timeout_ms| timeout_ms <= TIMEOUT_MS_MAX)
            && self.deadline_in_ms.is_none_or(|in_ms| in_ms <= limits.delay_ms_max)
            && self.deadline_ms != Some(0)
            && !(self.deadline_ms.is_some() && self.deadline_in_ms.is_some());
        if !fits {
            return Err(RefusalCode::BadValue);
        }
        if let Some(work) = &self.work {
            work.check()?;
            // Only a job makes its tasks.
            if work.job.is_some() {
                return Err(RefusalCode::BadValue);
            }
        }
        match &self.then {
            Some(then) => check_then(id, then, limits, 1, &mut { THEN_TOTAL_MAX }).map(|_| ()),
            None => Ok(()),
        }
    }
}

/// What is stored of the rare settings, with the queue's defaults filled in. Never changes.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Extras {
    /// Place in line at submission: the order within a key.
    #[n(0)]
    pub(crate) place: u64,
    /// 0 if the key, if there is one, only routes.
    #[n(1)]
    pub(crate) key_limit: u16,
    #[n(2)]
    pub(crate) labels: Labels,
    /// 0 if there is none.
    #[n(3)]
    pub(crate) timeout_ms: u32,
    /// 0 if there is none.
    #[n(4)]
    pub(crate) deadline_ms: u64,
    #[n(5)]
    pub(crate) retention_ms: Option<u64>,
    #[n(6)]
    pub(crate) then: Option<SharedBytes>,
    #[n(7)]
    pub(crate) work: Option<SharedWork>,
}

/// When and how a task comes into being.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Birth {
    pub(crate) now_ms: u64,
    pub(crate) sequence: u64,
    /// Key limit of a keyed task that names none.
    pub(crate) key_limit: u16,
}

impl Extras {
    /// What is stored for a new task; none if it has nothing rare.
    pub(crate) fn of(
        id: &TaskId,
        options: Option<&TaskOptions>,
        settings: &QueueSettings,
        birth: Birth,
    ) -> Option<Arc<Extras>> {
        let default_limit = if id.key().is_some() { birth.key_limit } else { 0 };
        let blank = default_limit == 0 && settings.timeout_ms == 0 && settings.deadline_in_ms == 0;
        if options.is_none() && blank {
            return None;
        }
        let given = options.cloned().unwrap_or_default();
        let deadline_in_ms = given.deadline_in_ms.unwrap_or(settings.deadline_in_ms);
        let relative_ms = match deadline_in_ms {
            0 => 0,
            in_ms => birth.now_ms.saturating_add(in_ms),
        };
        Some(Arc::new(Extras {
            place: birth.sequence,
            key_limit: given.key_limit.unwrap_or(default_limit),
            labels: given.labels,
            timeout_ms: given.timeout_ms.unwrap_or(settings.timeout_ms),
            deadline_ms: given.deadline_ms.unwrap_or(relative_ms),
            retention_ms: given.retention_ms,
            then: given.then,
            work: given.work,
        }))
    }

    /// Bytes that count as the task's payload does.
    pub(crate) fn weight(&self) -> u64 {
        let work = self.work.as_ref().map_or(0, |work| work.weight() as u64);
        self.then.as_ref().map_or(0, |then| then.len() as u64) + work
    }

    /// Adds every field to a digest.
    pub(crate) fn digest_into(&self, scratch: &mut Vec<u8>) {
        let then = self.then.as_ref().map_or([0, 0], |then| [1, xxh3_64(then)]);
        let retention = self.retention_ms.map_or([0, 0], |retention_ms| [1, retention_ms]);
        let limits = u64::from(self.key_limit) << 32 | u64::from(self.timeout_ms);
        for word in [self.place, limits, self.deadline_ms].iter().chain(&then).chain(&retention) {
            scratch.extend_from_slice(&word.to_le_bytes());
        }
        encode_into(&self.labels, scratch);
        if let Some(work) = &self.work {
            encode_into(work, scratch);
        }
    }

    /// Whether decoded extras obey the rules that the verbs rely on.
    pub(crate) fn is_valid(&self, id: &TaskId, limits: &Limits) -> bool {
        self.key_limit <= KEY_LIMIT_MAX
            && (self.key_limit == 0 || id.key().is_some())
            && self.labels.len() <= LABELS_WANTED_MAX
            && self.timeout_ms <= TIMEOUT_MS_MAX
            && self.weight() <= u64::from(limits.payload_bytes_max)
            && self.work.as_ref().is_none_or(|work| work.check().is_ok())
    }
}
