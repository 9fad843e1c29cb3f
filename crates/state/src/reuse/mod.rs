//! Results that are remembered, so that the same work need not be done twice: a task that says `reuse` is done without running if
//! its program, settings, payload and inputs are, by their digests, those of a task that was completed before.
//!
//! Promises: only what is known by its content counts (`key.rs`); a namespace never gets another's result. What is remembered is bounded in
//! number, bytes and age, and the oldest leaves first; forgetting costs a run, never a wrong result. Blobs of a remembered
//! result, and of one that is on its way between shards, are referred to, so that nobody collects them (A3).
//!
//! A result is remembered in the shard that its digest names, whichever shard the task is in: one message asks and one answers.
//! Until the answer the task waits, but not longer than `RECALL_WAIT_MS`.
//!
//! Left out: growth. What moved slots is not looked for where it was; it is forgotten in its time.

mod key;
mod recall;
mod record;
mod remember;

pub(crate) use key::digest_of_parts;
pub(crate) use recall::REUSED_WORKER;
pub use recall::Recall;
pub(crate) use record::RememberedKey;
pub use record::{Remembered, Stored};
