//! One node as the world runs it: how it starts, what its disk does with batches and snapshots.
//!
//! The same turn contract as the production driver (`ikada_replica::output`), with a simulated disk underneath.

pub mod boot;
pub mod snapshot;
