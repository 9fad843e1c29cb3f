//! Workers: who runs tasks, as shard 0 records it: name, session, slots, labels, queues, and whether it shall leave.
//!
//! Promise: one record per name. A removed session is remembered and cannot register again; its live claims are reopened in
//! every shard, by message. Nothing here decides whether a worker is alive: beats leave no trace in the log, and the leader
//! of shard 0 judges them by its own clock.
//!
//! Left out: handing tasks out. A claim asks no record; workers of other making need not register.

mod drain;
mod register;
mod remove;
mod store;

pub use drain::DrainWorker;
pub use register::RegisterWorker;
pub use remove::RemoveWorker;
pub use store::{WorkerKey, WorkerRecord, WorkerStanding};
