//! P1 and P2: no write is accepted under an epoch below the highest one given, and an acquisition always gives a higher
//! one, also after the database was set back. Within one epoch an index has one content, whoever is late.

use std::collections::BTreeMap;

use ikada_state::ShardId;

use super::{Verdict, violation};
use crate::oracle::mirror::EntryMark;

/// What was given and written, as the database itself saw it.
#[derive(Debug, Default)]
pub struct EpochFence {
    given: BTreeMap<ShardId, u64>,
    handed: BTreeMap<(ShardId, u64, u64), u64>,
    /// Shards whose log was set back: nothing may be written to them.
    set_back: BTreeMap<ShardId, u64>,
}

impl EpochFence {
    /// Somebody took the lease.
    pub fn taken(&mut self, shard: ShardId, epoch: u64) -> Verdict {
        let before = self.given.insert(shard, epoch).unwrap_or(0);
        if epoch > before {
            return Ok(());
        }
        violation("P2 epoch_grows", format!("shard {shard}: epoch {epoch} given after {before}"))
    }

    /// A holder sends an entry for writing.
    pub fn handed_over(&mut self, shard: ShardId, mark: &EntryMark) -> Verdict {
        let first = *self.handed.entry((shard, mark.index, mark.term)).or_insert(mark.hash);
        if first == mark.hash {
            return Ok(());
        }
        violation(
            "P1 epoch_fence",
            format!("shard {shard}: two entries {} of epoch {}", mark.index, mark.term),
        )
    }

    /// The database took entries under this epoch, after ones of `previous`.
    pub fn appended(&mut self, shard: ShardId, epoch: u64, previous: Option<u64>) -> Verdict {
        let given = self.given.get(&shard).copied().unwrap_or(0);
        if epoch < given || previous.is_some_and(|previous| epoch < previous) {
            return violation(
                "P1 epoch_fence",
                format!("shard {shard}: written under epoch {epoch} after {given} was given"),
            );
        }
        if let Some(index) = self.set_back.get(&shard) {
            return violation(
                "P2 set_back",
                format!("shard {shard}: written after its log was set back to {index}"),
            );
        }
        Ok(())
    }

    /// The log of a shard ends at `index` again, though all nodes have seen more of it.
    pub fn set_back(&mut self, shard: ShardId, index: u64) {
        self.set_back.insert(shard, index);
    }

    /// Everything that was ever written is back.
    pub fn put_back(&mut self) {
        self.set_back.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(hash: u64) -> EntryMark {
        EntryMark { index: 7, term: 3, hash, change: false }
    }

    #[test]
    fn p_1_an_old_epoch_is_noticed() {
        let mut fence = EpochFence::default();
        fence.taken(0, 2).unwrap();
        fence.appended(0, 2, None).unwrap();
        fence.taken(0, 3).unwrap();
        assert!(fence.appended(0, 2, Some(2)).is_err());
        assert!(fence.appended(0, 3, Some(4)).is_err(), "an entry of a later epoch is there");
        fence.appended(1, 2, None).unwrap();
    }

    #[test]
    fn p_1_two_contents_are_noticed() {
        let mut fence = EpochFence::default();
        fence.handed_over(0, &mark(1)).unwrap();
        fence.handed_over(0, &mark(1)).unwrap();
        assert!(fence.handed_over(0, &mark(2)).is_err());
    }

    #[test]
    fn p_2_an_epoch_given_twice_is_noticed() {
        let mut fence = EpochFence::default();
        fence.taken(0, 4).unwrap();
        assert!(fence.taken(0, 4).is_err());
    }

    #[test]
    fn p_2_writing_to_a_log_set_back_is_noticed() {
        let mut fence = EpochFence::default();
        fence.taken(0, 2).unwrap();
        fence.set_back(0, 9);
        assert!(fence.appended(0, 2, Some(2)).is_err());
        fence.put_back();
        fence.appended(0, 2, Some(2)).unwrap();
    }
}
