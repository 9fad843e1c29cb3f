//! Schedules: one file per verb.

mod delete;
mod describe;
mod list;
mod set;
mod show;

pub(super) use delete::delete;
pub(super) use describe::describe;
pub(super) use list::list;
pub(super) use set::{pause, set};
pub(super) use show::show;
