//! How N strangers become one cluster, once (CH-13).
//!
//! Promise: a node durably promises at most one founding plan in its life, and a plan starts only when all of its N
//! members have promised it. So two clusters can never arise from overlapping nodes, whatever is lost, repeated or
//! restarted. Whoever hears of an existing cluster never proposes.
//!
//! Shape: request and reply. Every node asks its seeds and everyone it has heard of, again and again; the lowest id of
//! exactly N known candidates proposes. Time, addresses and the random cluster id come from outside.
//!
//! Leaves out: adding nodes later (membership changes in the log) and finding seeds (the node's business).

mod message;
mod step;

pub use message::{Candidate, FoundingMessage, MESSAGE_BYTES_MAX, Plan};
pub use step::{Founding, FoundingError, FoundingOutput};

#[cfg(test)]
mod step_test;
