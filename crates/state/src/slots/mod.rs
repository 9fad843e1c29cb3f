//! Which shard holds a key: a fixed number of slots, and a map from slots to shards (TQ-29).

mod map;
mod shares;

pub use map::{SLOTS, SlotMap, slot_of};
