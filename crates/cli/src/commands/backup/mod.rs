//! `ikada cluster backup|restore|recover`.
//!
//! A backup is taken from a running cluster, into a file or an object store that this command itself writes to; nodes
//! open no address that a user gives. Restore and recover make the data folder of a new cluster of one node, offline; it
//! then grows by `ikada cluster add`. With logs in a database they name all its nodes at once, and make its beginning there.
//! Neither touches a running cluster.

mod found;
mod recover;
mod report;
mod restore;
mod store;
mod stream;
mod take;

pub(crate) use recover::recover;
pub(crate) use restore::restore;
pub(crate) use store::open_store;
pub(crate) use take::take;

fn position(lsn: ikada_api::state::Lsn) -> String {
    format!("{}:{}", lsn.term, lsn.index)
}
