//! The slot map. A key's slot never changes; growth moves whole slots, at most 1/N of them.

use minicbor::{Decode, Encode};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::shares::Shares;
use crate::hash::{RecordKind, digest_bytes};
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

    /// Gives a slot to another shard.
    pub(crate) fn assign(&mut self, slot: u16, shard: ShardId) {
        self.shards[usize::from(slot % SLOTS)] = shard;
        self.version += 1;
    }

    /// How many slots each of `shards` shards holds.
    pub(crate) fn shares(&self, shards: u16) -> Shares {
        Shares::of(&self.shards, shards)
    }

    /// The first slot of a shard, which is the next one it gives away.
    pub(crate) fn first_of(&self, shard: ShardId) -> Option<u16> {
        self.shards.iter().position(|holder| *holder == shard).map(|slot| slot as u16)
    }

    /// What the state hash holds of the map: a sum over slots, so that moving one of them costs two terms.
    pub(crate) fn digest(&self) -> u64 {
        let slots = (0..SLOTS).map(|slot| self.slot_digest(slot));
        slots.fold(self.version_digest(), u64::wrapping_add)
    }

    /// The digest's part that an assignment of the slot changes.
    pub(crate) fn digest_around(&self, slot: u16) -> u64 {
        self.slot_digest(slot).wrapping_add(self.version_digest())
    }

    fn slot_digest(&self, slot: u16) -> u64 {
        let [a, b] = slot.to_le_bytes();
        let [c, d] = self.shard(slot).to_le_bytes();
        digest_bytes(RecordKind::SlotMap, &[a, b, c, d])
    }

    fn version_digest(&self) -> u64 {
        digest_bytes(RecordKind::SlotMap, &self.version.to_le_bytes())
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
    fn tq_29_growth_moves_only_what_must_move() {
        for (before, after, moves) in [(4u16, 5u16, 819), (1, 2, 2048), (16, 17, 240), (3, 8, 2560)]
        {
            let mut map = SlotMap::balanced(before);
            let first = map.clone();
            assert_eq!(map.shares(after).moves(), moves, "{before} to {after}");
            while let Some((giver, taker)) = map.shares(after).next_move() {
                assert!(taker >= before, "only new shards receive");
                map.assign(map.first_of(giver).expect("a slot to give"), taker);
            }
            let moved = (0..SLOTS).filter(|slot| map.shard(*slot) != first.shard(*slot)).count();
            assert_eq!(moved, usize::from(moves), "no slot moves twice");
            assert!(map.is_valid(after));
            let count = |shard| (0..SLOTS).filter(|slot| map.shard(*slot) == shard).count();
            let counts: Vec<usize> = (0..after).map(count).collect();
            assert!(counts.iter().max().unwrap() - counts.iter().min().unwrap() <= 1);
        }
    }

    #[test]
    fn the_digest_follows_every_slot_and_the_version() {
        let mut map = SlotMap::balanced(4);
        let mut digest = map.digest();
        let mut seen = std::collections::BTreeSet::from([digest]);
        for slot in [0, 1, 77, 4095, 77] {
            digest = digest.wrapping_sub(map.digest_around(slot));
            map.assign(slot, (map.shard(slot) + 1) % 4);
            digest = digest.wrapping_add(map.digest_around(slot));
            assert_eq!(digest, map.digest(), "after slot {slot}");
            assert!(seen.insert(digest), "two maps with one digest");
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
