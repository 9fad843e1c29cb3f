//! Idempotency: which request ids were seen, with the first outcome (Q8, Q9, TQ-22).
//!
//! Two windows, bounded by log time and by count, both in the snapshot: one for submissions,
//! cancels and settings, one for claims. Completions and failures need none while their task is
//! there, since their fence already makes them idempotent; of removed tasks the report that settled
//! them is remembered (`settled.rs`). Entries hold hashes, not names; replies are rebuilt from the
//! resent order.
//!
//! The names of tasks that are no longer there lie in the first window, too (`gone.rs`).
//!
//! Transient refusals (no room) are not remembered: a retry under the same id is judged afresh.

mod entry;
mod gone;
mod remember;
mod ring;
mod settled;
mod submit;
mod void;

pub(crate) use entry::{ClaimEntry, GrantMark, Grants};
pub use entry::{Outcome, RecordedRequest};
pub(crate) use ring::{Ring, RingEntry};
pub(crate) use settled::SettledEntry;
pub(crate) use submit::SubmitEntry;
pub(crate) use void::VoidEntry;
pub use void::{VOIDS_MAX, Void};
