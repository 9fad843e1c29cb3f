//! `RegisterWorker`: a worker says who it is. Safe to repeat: the same words change nothing.

use minicbor::{Decode, Encode};

use super::{WorkerRecord, WorkerStanding};
use crate::limits::WORKERS_MAX;
use crate::shard::Shard;
use crate::{Labels, Namespace, QueueName, RefusalCode, Reply, SessionId, WorkerId};

/// A worker introduces itself.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct RegisterWorker {
    /// Its name.
    #[n(0)]
    pub id: WorkerId,
    /// Its process run.
    #[n(1)]
    pub session: SessionId,
    /// Tasks that it runs at one time.
    #[n(2)]
    pub slots: u32,
    /// What it has.
    #[n(3)]
    pub labels: Labels,
    /// Queues that it takes tasks from.
    #[n(4)]
    pub queues: Vec<QueueName>,
    /// Version of its program.
    #[n(5)]
    pub version: String,
    /// The session whose place it takes, which the leader believes dead; any other that is recorded stays.
    #[n(6)]
    pub replaces: Option<SessionId>,
}

impl RegisterWorker {
    /// Whether a record says the same.
    pub fn is_recorded(&self, record: &WorkerRecord) -> bool {
        record.session == self.session
            && record.slots == self.slots
            && record.labels == self.labels
            && record.queues == self.queues
            && record.version == self.version
    }
}

impl Shard {
    pub(crate) fn apply_register_worker(
        &mut self,
        namespace: &Namespace,
        order: RegisterWorker,
    ) -> Reply {
        match self.register_worker(namespace, order) {
            Ok(()) => Reply::WorkerRegistered,
            Err(code) => Reply::refused(code),
        }
    }

    fn register_worker(
        &mut self,
        namespace: &Namespace,
        order: RegisterWorker,
    ) -> Result<(), RefusalCode> {
        if self.core.shard != 0 {
            return Err(RefusalCode::WrongShard);
        }
        let known = self.core.workers.get(&(namespace.clone(), order.id.clone()));
        let (standing, since_ms) = match known {
            Some(known) if known.session == order.session => {
                if known.standing == WorkerStanding::Removed {
                    return Err(RefusalCode::WorkerRemoved);
                }
                if order.is_recorded(known) {
                    return Ok(());
                }
                (known.standing, known.since_ms)
            }
            Some(known)
                if known.standing != WorkerStanding::Removed
                    && order.replaces != Some(known.session) =>
            {
                return Err(RefusalCode::WorkerExists);
            }
            None if self.core.workers.len() >= WORKERS_MAX => {
                return Err(RefusalCode::TooManyWorkers);
            }
            _ => (WorkerStanding::Active, self.core.time_ms),
        };
        let record = WorkerRecord {
            namespace: namespace.clone(),
            id: order.id,
            session: order.session,
            slots: order.slots,
            labels: order.labels,
            queues: order.queues,
            version: order.version,
            since_ms,
            standing,
        };
        if !record.is_valid() {
            return Err(RefusalCode::BadValue);
        }
        self.put_worker(record);
        Ok(())
    }
}
