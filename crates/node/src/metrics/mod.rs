//! Numbers for operators: what is counted, and how it is written down.

mod blobs;
mod counters;
mod load;
#[cfg(test)]
mod page_test;
mod queues;
mod render;
mod schedules;
mod security;

pub use counters::{Counters, HttpCounters};
pub use render::render;
pub use security::{SecurityFigures, TokenEnds};
