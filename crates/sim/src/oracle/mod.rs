//! What the world knows and the nodes do not: what is on every disk, what was committed, what clients were told.
//!
//! Nothing here decides whether a run is right; the checks ask and decide.

pub mod batch;
pub mod clients;
pub mod jobs;
pub mod ledger;
pub mod mirror;
pub mod model;
pub mod rules;
pub mod timing;
