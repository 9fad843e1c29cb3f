//! What callers ask of a node and what they are told.
//!
//! A call is one client request. It may touch several shards; every item of it has an outcome of its own. An outcome
//! is never a guess: `Unknown` means that the command may or may not have been committed, and that asking again with
//! the same request id is safe.
//!
//! Leaves out: HTTP, status codes and field names (the node's and the api's business).

mod answer;
mod request;

pub use answer::{Answer, Outcome, RenewOutcome, RequestFate, Unavailable, View};
pub use request::{
    Call, CallId, ClaimCall, Consistency, LeaseCall, LeaseWatch, Query, Renewal, Request, Routing,
};
