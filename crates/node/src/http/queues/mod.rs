//! Queues: one file per verb.

mod describe;
mod list;
mod set;
mod show;
mod sweep;

pub(super) use list::{Wish, list, page};
pub(super) use set::{pause, set};
pub(super) use show::show;
pub(super) use sweep::{drop_all, purge, retry};
