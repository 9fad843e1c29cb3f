//! `DrainWorker`: a worker shall finish what it has and take no more. It hears of it with its next beat.

use minicbor::{Decode, Encode};

use super::WorkerStanding;
use crate::shard::Shard;
use crate::{Namespace, RefusalCode, Reply, WorkerId};

/// Lets a worker leave.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct DrainWorker {
    /// Which.
    #[n(0)]
    pub id: WorkerId,
}

impl Shard {
    pub(crate) fn apply_drain_worker(
        &mut self,
        namespace: &Namespace,
        order: &DrainWorker,
    ) -> Reply {
        if self.core.shard != 0 {
            return Reply::refused(RefusalCode::WrongShard);
        }
        let known = self.core.workers.get(&(namespace.clone(), order.id.clone()));
        let Some(known) = known.filter(|known| known.standing != WorkerStanding::Removed) else {
            return Reply::refused(RefusalCode::WorkerNotFound);
        };
        let mut record = (**known).clone();
        record.standing = WorkerStanding::Draining;
        self.put_worker(record);
        Reply::WorkerDraining
    }
}
