//! What a node judges of quotas before it takes anything in: the rate of submissions, the follow-ups that workers bring with
//! their completions, and the bytes of objects over all shards.
//!
//! Promise: a namespace without a quota costs one load. Over any length of time, and whichever nodes a tenant asks, no more
//! than its rate is submitted per second, but for what arrives at other nodes between two looks. Whoever is refused is told
//! when to come back. A completion with follow-ups is put off for a few seconds at most per node (`line.rs`), even if they pass the quota
//! then: work that is done is not lost for it.
//!
//! Leaves out: what the state judges when it applies an order (`state/namespace`), and HTTP.

mod admit;
mod bucket;
mod line;

pub use admit::{LOOK_EVERY, Quotas};
