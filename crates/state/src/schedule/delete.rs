//! `DeleteSchedule`: removes a schedule. Tasks that it submitted stay, and so do those on their way.

use minicbor::{Decode, Encode};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::shard::Shard;
use crate::{Namespace, RefusalCode, Reply, ScheduleName};

/// Removes one schedule.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct DeleteSchedule {
    /// The schedule.
    #[n(0)]
    pub name: ScheduleName,
}

impl DeleteSchedule {
    /// Hash of the order as given.
    pub(crate) fn body_hash(&self) -> u64 {
        xxh3_64_with_seed(self.name.as_str().as_bytes(), 41)
    }
}

impl Shard {
    pub(crate) fn apply_delete_schedule(
        &mut self,
        namespace: &Namespace,
        order: &DeleteSchedule,
    ) -> Reply {
        if self.core.shard != 0 {
            return Reply::refused(RefusalCode::WrongShard);
        }
        match self.remove_schedule(&(namespace.clone(), order.name.clone())) {
            true => Reply::ScheduleDeleted,
            false => Reply::refused(RefusalCode::ScheduleNotFound),
        }
    }
}
