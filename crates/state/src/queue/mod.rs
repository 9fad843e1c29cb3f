//! Queues: named lines of tasks with their own settings. Shard 0 owns the settings; every other
//! shard holds a versioned copy, delivered through the outbox. A queue appears with its first task
//! or setting and is never removed.

mod alerts;
mod keep_dead;
mod offer;
mod record;
mod set;
mod sweep;
mod view;

pub use alerts::AlertThresholds;
pub use keep_dead::KeepDead;
pub use offer::Offer;
pub(crate) use record::QueueRecord;
pub use record::{Backoff, QueueCounters, QueueSettings};
pub use set::{QueueChange, SetQueue};
pub use sweep::{SWEEP_SLOTS_MAX, SWEEP_TASKS_MAX, Sweep, SweepAction};
pub use view::QueueView;
