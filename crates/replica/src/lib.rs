//! One node's share of the cluster: requests in; decisions, log work and answers out; for all shards of the node.
//!
//! Promise: [`Replica`] is a pure step function. It reads no clock, draws no random number, opens no file or socket;
//! the node's driver and the simulator run the very same code. The contract of a turn stands in [`output`].
//!
//! Invariants:
//! - a caller is told "committed" only after its entry was applied from the committed log;
//! - a caller whose entry's fate is open is told "unknown", never "failed";
//! - only a shard's leader acts on effects; a new leader derives what it needs from the state;
//! - no claim is offered for expiry before a whole ttl has passed on this leader's monotonic clock.
//!
//! Leaves out: HTTP and JSON (`api`, `node`), bytes on disk (`store`), who may write (`consensus`), what is true
//! (`state`). What the node needs of the last two is re-exported here.

mod beats;
pub mod boot;
pub mod call;
mod clock;
mod config;
mod database;
mod disk;
mod events;
pub mod founding;
mod gate;
mod growth;
mod hashes;
mod holdings;
mod jitter;
mod leg;
mod level;
mod liveness;
mod members;
mod origin;
mod outbox;
pub mod output;
pub mod peer;
pub mod planted;
mod reach;
mod replica;
pub mod schedule;
mod seat;
mod snapshot;
pub mod status;
mod stragglers;
mod turn;

pub use beats::{WORKER_BEAT_MS, WORKER_DEAD_MS};
pub use clock::CLOCK_ALARM_MS;
pub use config::ReplicaConfig;
pub use disk::DISK_STILL_MS;
pub use events::reason_text;
pub use ikada_consensus as consensus;
pub use ikada_state as state;
pub use members::{Move, Roll};
pub use output::{
    DatabaseHealth, DatabaseTold, Halt, Input, Now, Outputs, SnapshotDone, SnapshotWork,
};
pub use replica::Replica;
