//! Schedules at the leader of shard 0: what a cron line means, and when to decide an instant.
//!
//! Promise: the state hears of instants only. Zone data and the reading of cron lines may differ between versions of
//! the program, so that they decide nothing in apply; which instants are decided is in the log, and a new leader goes
//! on from there.

mod cron;
mod fire;
mod plan;
mod timetable;

pub(crate) use plan::Planner;
pub use timetable::{Timetable, TimingError};
