//! Queues: one file per verb.

mod list;
mod set;
mod show;

pub(super) use list::list;
pub(super) use set::{pause, set};
pub(super) use show::show;
