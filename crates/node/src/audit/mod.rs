//! The audit log: who changed what, and who was not let in (X15).
//!
//! Promise: every request that changes something, every backup, and every request that was denied, leaves exactly one line,
//! also if its caller hung up before the answer (status 499), in a file that only its owner can read. Each line carries a hash over itself and the hash before it, so that a changed, removed
//! or inserted line is found by `ikada audit verify`. Lines are synced in groups by a thread of their own: those of calls
//! that run the cluster before their answer goes out, all others a fraction of a second after it, so that a node which
//! loses power then loses these. Files are rotated; the oldest go.
//!
//! A full queue is never waited for: what does not fit, or cannot be written, is counted (`ikada_audit_lost_total`), and
//! the next line that is written says how many are missing.
//! Strangers, and denials of each caller, get so many lines a minute and no more, so that nobody can push out of the log
//! what others did.
//!
//! Leaves out: other reads that were allowed, and renewals, which change nothing that is kept.

mod chain;
mod files;
mod record;
mod write;

#[cfg(test)]
pub(crate) use chain::sample;
pub use chain::{Broken, records, verify, whole_lines};
pub use record::{Action, Note, Record};
pub use write::{AUDIT_FOLDER, AuditLog, note_offline};
