//! What a node judges of quotas before it takes anything in: the rate of submissions, the follow-ups that workers bring with
//! their completions, and the bytes of objects over all shards.
//!
//! Promise: a namespace without a quota costs one load. Over any length of time, and whichever nodes a tenant asks, no more
//! than its rate comes in per second, but for what arrives at other nodes between two looks. Whoever is refused is told
//! when to come back.
//!
//! Leaves out: what the state judges when it applies an order (`state/namespace`), and HTTP.

mod admit;
mod bucket;

pub use admit::{LOOK_EVERY, Quotas};
