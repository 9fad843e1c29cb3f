//! The loop that runs a replica: inputs in, one turn, outputs out.
//!
//! Three threads: the *driver* steps the replica and never touches a disk or waits for a socket; the *log* thread
//! appends and syncs, many batches per sync; the *snapshot* thread does bulk work. So heartbeats never wait behind a
//! slow disk or a large state.
//!
//! Promise: log batches reach the disk in order; `Persisted` is said only after the sync; a failed write or sync ends the
//! process at once (F-13).

mod log_thread;
mod loop_thread;
mod message;
mod snapshot_thread;

pub use loop_thread::{Driver, Ended, Outlets, StartError, start};
pub use message::{AnswerSender, DriverMessage, DriverSender};
