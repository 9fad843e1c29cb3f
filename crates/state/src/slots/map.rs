//! The slot map. A key's slot never changes; growth moves whole slots, at most 1/N of them.

use minicbor::{Decode, Encode};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::{Namespace, ShardId};

/// Number of slots, fixed for ever.
pub const SLOTS: u16 = 4096;

/// Slot of a routing key, in `0..SLOTS`.
pub fn slot_of(namespace: &Namespace, routing_key: &str) -> u16 {
    let seed = xxh3_64_with_seed(namespace.as_str().as_bytes(), 0x736c_6f74);
    (xxh3_64_with_seed(routing_key.as_bytes(), seed) % u64::from(SLOTS)) as u16
}

/// Shard of every slot.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct SlotMap {
    /// Rises with each change, so that nodes can tell the newer map.
    #[n(0)]
    version: u64,
    #[n(1)]
    shards: Vec<ShardId>,
}

impl SlotMap {
    /// The first map: every shard gets an equal share, give or take one slot.
    pub fn balanced(shards: u16) -> SlotMap {
        assert!(shards > 0, "a cluster needs at least one shard");
        assert!(shards <= SLOTS, "more shards than slots");
        SlotMap { version: 1, shards: (0..SLOTS).map(|slot| slot % shards).collect() }
    }

    /// Shard of a slot.
    pub fn shard(&self, slot: u16) -> ShardId {
        self.shards[usize::from(slot % SLOTS)]
    }

    /// Shard of a routing key.
    pub fn route(&self, namespace: &Namespace, routing_key: &str) -> ShardId {
        self.shard(slot_of(namespace, routing_key))
    }

    /// Version of the map.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Whether a decoded map is usable.
    pub(crate) fn is_valid(&self, shards: u16) -> bool {
        self.shards.len() == usize::from(SLOTS) && self.shards.iter().all(|shard| *shard < shards)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // TQ-28, TQ-29
    #[test]
    fn tq_28_the_first_map_is_balanced() {
        for shards in [1u16, 3, 16, 17] {
            let map = SlotMap::balanced(shards);
            assert!(map.is_valid(shards));
            let count = |shard| (0..SLOTS).filter(|slot| map.shard(*slot) == shard).count();
            let counts: Vec<usize> = (0..shards).map(count).collect();
            let (low, high) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
            assert!(high - low <= 1);
        }
    }

    #[test]
    fn keys_spread_over_slots() {
        let namespace = Namespace::default();
        let mut hits = vec![0u32; usize::from(SLOTS)];
        for number in 0..40_960 {
            hits[usize::from(slot_of(&namespace, &format!("task-{number}")))] += 1;
        }
        assert!(hits.iter().max().unwrap() < &40);
    }
}
