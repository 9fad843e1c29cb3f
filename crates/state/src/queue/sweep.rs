//! `Sweep`: one bounded step of a job on many tasks of a queue: retry all dead, drop all finished,
//! cancel all that wait. Whoever asks repeats it per shard, each time from where the step before
//! ended, until none is left; so no entry is ever large, and any leader can go on.
//!
//! A sweep visits every slot of the shard once, in order. A task keeps its slot for life, so each
//! task that was there when the sweep began is met exactly once.

use minicbor::{Decode, Encode};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::hash::encode_into;
use crate::planted::{self, Bug};
use crate::shard::{Batch, Shard};
use crate::task::TaskState;
use crate::{Namespace, QueueName, RefusalCode, Reply, ShardId};

/// Most tasks changed by one step.
pub const SWEEP_TASKS_MAX: usize = 1_000;
/// Most slots looked at by one step, so that a rare match cannot hold up the shard.
pub const SWEEP_SLOTS_MAX: usize = 20_000;

/// What is done to each task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum SweepAction {
    /// Give dead tasks fresh attempts.
    #[n(0)]
    RetryDead,
    /// Remove dead tasks.
    #[n(1)]
    DropDead,
    /// Remove finished tasks of every kind.
    #[n(2)]
    DropFinished,
    /// Cancel scheduled and ready tasks.
    #[n(3)]
    CancelWaiting,
    /// Cancel scheduled, ready and claimed tasks.
    #[n(4)]
    CancelUnfinished,
}

impl SweepAction {
    /// All actions.
    pub const ALL: [SweepAction; 5] = [
        SweepAction::RetryDead,
        SweepAction::DropDead,
        SweepAction::DropFinished,
        SweepAction::CancelWaiting,
        SweepAction::CancelUnfinished,
    ];

    /// Whether it concerns tasks in this state.
    pub fn takes(self, state: TaskState) -> bool {
        match self {
            SweepAction::RetryDead | SweepAction::DropDead => state == TaskState::Dead,
            SweepAction::DropFinished => state.is_terminal(),
            SweepAction::CancelWaiting => {
                matches!(state, TaskState::Scheduled | TaskState::Ready)
                    || state == TaskState::Claimed && planted::active(Bug::PurgeTakesClaimed)
            }
            SweepAction::CancelUnfinished => !state.is_terminal(),
        }
    }
}

/// One step of a sweep.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Sweep {
    /// The shard to sweep.
    #[n(0)]
    pub shard: ShardId,
    /// The queue.
    #[n(1)]
    pub queue: QueueName,
    /// What to do.
    #[n(2)]
    pub action: SweepAction,
    /// First slot to look at: 0, then the `next` of the step before.
    #[n(3)]
    pub from: u32,
}

impl Sweep {
    /// Hash of the order as given.
    pub(crate) fn body_hash(&self) -> u64 {
        let mut bytes = Vec::with_capacity(64);
        encode_into(self, &mut bytes);
        xxh3_64_with_seed(&bytes, 11)
    }
}

impl Shard {
    pub(crate) fn apply_sweep(
        &mut self,
        batch: &mut Batch,
        namespace: &Namespace,
        order: &Sweep,
    ) -> Reply {
        if order.shard != self.core.shard {
            return Reply::refused(RefusalCode::WrongShard);
        }
        let Some(queue) = self.find_queue(namespace, &order.queue) else {
            return Reply::Swept { count: 0, next: None };
        };
        let (slots, mut next) = self.choose(queue, order);
        let mut count = 0;
        for slot in slots {
            if let Err(code) = self.sweep_slot(batch, slot, order.action) {
                if count == 0 {
                    return Reply::refused(code);
                }
                // No room for more: the next step begins here and says so.
                next = Some(slot);
                break;
            }
            count += 1;
        }
        Reply::Swept { count, next }
    }

    /// The slots of this step, and where the next one begins.
    fn choose(&self, queue: u32, order: &Sweep) -> (Vec<u32>, Option<u32>) {
        let line = &self.index.lines[queue as usize];
        let takes = |state: &TaskState| order.action.takes(*state);
        let left: u64 = TaskState::ALL.into_iter().filter(takes).map(|s| line.count(s)).sum();
        let mut slots = Vec::new();
        for (seen, (slot, task)) in self.core.tasks.iter_from(order.from).enumerate() {
            if slots.len() as u64 >= left {
                break;
            }
            if slots.len() >= SWEEP_TASKS_MAX || seen >= SWEEP_SLOTS_MAX {
                return (slots, Some(slot));
            }
            // The tasks of a job are tried again with their job only.
            let bound = order.action == SweepAction::RetryDead && task.is_part_of_job();
            if task.queue == queue && takes(&task.state) && !bound {
                slots.push(slot);
            }
        }
        (slots, None)
    }

    fn sweep_slot(
        &mut self,
        batch: &mut Batch,
        slot: u32,
        action: SweepAction,
    ) -> Result<(), RefusalCode> {
        match action {
            SweepAction::RetryDead => self.retry_slot(batch, slot)?,
            SweepAction::DropDead | SweepAction::DropFinished => self.remove_task(batch, slot),
            SweepAction::CancelWaiting | SweepAction::CancelUnfinished => {
                self.cancel_slot(batch, slot);
            }
        }
        Ok(())
    }
}
