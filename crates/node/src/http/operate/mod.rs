//! For operators: metrics, health, readiness, and the API's own description.

mod health;
mod metrics;
mod openapi;

pub(super) use health::{health, ready};
pub(super) use metrics::metrics;
pub(super) use openapi::openapi;
