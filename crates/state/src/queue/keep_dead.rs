//! `KeepDead`: from this entry on, dead tasks have a line of their own.
//!
//! Promise: no task that ended otherwise ever pushes a dead one out. A dead task goes by its own age, by a drop, or with
//! the shard's own bound once nothing else is left to go, which is counted. Long before that the queue takes no new tasks
//! (`dead_full`), so that whoever fills it hears of it.
//!
//! An order and not a rule of the program: nodes of two versions must remove the same tasks. The leader of each shard
//! gives it once the cluster's level allows (`replica/level.rs`); given again it changes nothing.

use minicbor::{Decode, Encode};

use crate::shard::Shard;
use crate::task::TaskState;
use crate::{RefusalCode, Reply, ShardId};

/// Keeps dead tasks apart from those that ended otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct KeepDead {
    /// The shard.
    #[n(0)]
    pub shard: ShardId,
}

impl Shard {
    /// Whether dead tasks have a line of their own.
    pub fn keeps_dead(&self) -> bool {
        self.core.dead_apart
    }

    pub(crate) fn apply_keep_dead(&mut self, order: &KeepDead) -> Reply {
        if order.shard != self.core.shard {
            return Reply::refused(RefusalCode::WrongShard);
        }
        if self.core.dead_apart {
            return Reply::DeadKept;
        }
        // In order of their places, as rows want them.
        let dead = |slot: &u32| {
            self.core.tasks.get(*slot).is_some_and(|task| task.state == TaskState::Dead)
        };
        let slots: Vec<u32> =
            self.index.finished.iter().map(|(_, slot)| slot).filter(dead).collect();
        for slot in &slots {
            if let Some(task) = self.core.tasks.get(*slot) {
                self.index.unlink(*slot, task);
            }
        }
        self.core.dead_apart = true;
        self.index.dead_apart = true;
        for slot in &slots {
            if let Some(task) = self.core.tasks.get(*slot) {
                self.index.link(*slot, task);
            }
        }
        Reply::DeadKept
    }

    /// Refuses a new task for a queue that has as many dead ones as it may, or that has some while the dead ones of all
    /// queues fill half of what the shard keeps.
    pub(crate) fn check_dead(&self, queue: u32) -> Result<(), RefusalCode> {
        let dead = self.index.lines[queue as usize].count(TaskState::Dead);
        if !self.core.dead_apart || dead == 0 {
            return Ok(());
        }
        let dead_max = u64::from(self.core.queues[queue as usize].settings.dead_max());
        let limits = &self.core.limits;
        let crowded = self.index.dead.len() as u64 > limits.finished_tasks_max / 2
            || self.index.dead_bytes > limits.finished_bytes_max / 2;
        match dead_max > 0 && dead >= dead_max || crowded {
            true => Err(RefusalCode::DeadFull),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::encode_into;
    use crate::{QueueCounters, QueueSettings};

    fn encoded<T: Encode<()>>(record: &T) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode_into(record, &mut bytes);
        bytes
    }

    /// Lengths of the lists that records were before there was a line for dead tasks: a shard that has none hashes as
    /// it did, and its snapshots are read by older programs.
    #[test]
    fn what_is_absent_is_not_written() {
        const LIST: u8 = 0x80;
        let mut shard = Shard::genesis(0, 1, &[]);
        assert_eq!(encoded(&shard.core.header())[0], LIST + 13);
        assert_eq!(encoded(&QueueCounters::default())[0], LIST + 7);
        let settings = encoded(&QueueSettings::default());
        assert_eq!(settings[0], LIST + 21);
        let given = QueueSettings { dead_max: Some(7), ..QueueSettings::default() };
        assert_ne!(encoded(&given), settings);
        shard.apply_keep_dead(&KeepDead { shard: 0 });
        assert_eq!(encoded(&shard.core.header())[0], LIST + 14);
    }
}
