//! Namespaces and their quotas: how much of the cluster one tenant may take.
//!
//! Promise: what a namespace has waiting in a shard never exceeds that shard's share of its quota by a submission, a retry
//! or a job's tasks; the shares of all shards add up to the quota. Shard 0 owns quotas; every other shard holds a versioned
//! copy with its share, delivered through the outbox.
//!
//! Left out: the rate, which each node judges before it takes a submission in (`node`), and the sum of objects over all
//! shards, which a node judges before it takes bytes in.

mod count;
mod judge;
mod quota;
mod set;
mod view;

pub(crate) use count::Waiting;
pub use quota::{Quota, QuotaRecord};
pub use set::{QuotaChange, SetQuota};
pub use view::NamespaceView;
