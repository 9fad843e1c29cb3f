//! Leases: locks and elections for users' own purposes. A lease lives in the shard of its name.
//!
//! Promise: at most one holder at a time in the order of the log; every grant has a fence from the counter that the
//! attempts of tasks use too, so fences of a lease only rise. Whoever waits is served in order: the end of a holding and
//! the next grant are one step, and nobody else is woken.
//!
//! A lease may be bound to an attempt of a task; when that ends, the task's shard says so by message (`bind.rs`).
//!
//! Left out: when a ttl is over. The leader's clock decides that, and `ExpireLease` names the fence or place it means.

mod acquire;
mod bind;
mod expire;
mod record;
mod release;
mod store;

pub use acquire::AcquireLease;
pub(crate) use bind::Binding;
pub use bind::{BindLease, BoundLease};
pub use expire::ExpireLease;
pub use record::{BoundTask, Lease, LeaseHolding, LeaseKey, LeaseMark, LeaseWaiter};
pub use release::ReleaseLease;
