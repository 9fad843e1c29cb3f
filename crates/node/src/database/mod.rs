//! Logs in a database: founding through it, a thread that carries the lease protocol's questions to it, and snapshots;
//! clusters made and read there without a running node.
//!
//! Promises: every question is answered exactly once, `Failed` when its time is over; leases, reads and appends have
//! connections of their own, so that a renewal never waits behind a large append; the password appears in no word. Leaves
//! out: every rule (`consensus/lease`) and every statement (`store/postgres`).

mod carry;
mod found;
mod offline;
mod seed;
mod snapshot;
mod thread;
mod weather;

pub use found::{DatabaseError, entered, found};
pub use offline::read_database;
pub use seed::{Seeding, SeedingError};
pub use thread::{Database, DatabaseSender, DatabaseWork};
