//! `DropTask`: removes a finished task before its retention time is over. Its counters stay.

use minicbor::{Decode, Encode};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::shard::{Batch, Shard};
use crate::{Namespace, RefusalCode, Reply, TaskId};

/// Removes one finished task.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct DropTask {
    /// The task.
    #[n(0)]
    pub id: TaskId,
}

impl DropTask {
    /// Hash of the order as given.
    pub(crate) fn body_hash(&self) -> u64 {
        xxh3_64_with_seed(self.id.as_str().as_bytes(), 10)
    }
}

impl Shard {
    pub(crate) fn apply_drop(
        &mut self,
        batch: &mut Batch,
        namespace: &Namespace,
        order: &DropTask,
    ) -> Reply {
        let Some(slot) = self.find_task(namespace, &order.id) else {
            return Reply::refused(RefusalCode::TaskNotFound);
        };
        if self.core.tasks.get(slot).is_some_and(|task| !task.state.is_terminal()) {
            return Reply::refused(RefusalCode::TaskNotFinished);
        }
        self.remove_task(batch, slot);
        Reply::Dropped
    }
}
