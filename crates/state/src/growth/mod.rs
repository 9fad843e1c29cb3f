//! Growth: more shards, and the slots that move to them (TQ-29). Everything is a message between shards (`outbox`), so
//! that whoever leads goes on where the leader before stopped; see the decision on growth.
//!
//! Shard 0 chooses (`grow.rs`), the source packs a slot up (`leave.rs`), the target takes it in (`arrive.rs`), shard 0
//! flips the map. At every moment a task is in exactly one place: the source, a message or part, or the target.
//!
//! Leaves out: opening the logs of new shards, and asking again when a slot is away (`replica`).

mod arrive;
mod away;
mod grow;
mod leave;
mod parcel;
mod record;

pub(crate) use arrive::Part;
pub(crate) use away::{Away, BySlot};
pub use grow::Grow;
pub(crate) use parcel::{Parcel, QueueCopy};
pub use record::{Growth, GrowthView, NewShards};
pub(crate) use record::{Moving, Running};
