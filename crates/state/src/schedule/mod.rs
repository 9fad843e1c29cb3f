//! Schedules: what submits a task at instants to come. They live in shard 0.
//!
//! Promise (Q12): an instant of a schedule is decided once. A schedule's cursor is the newest decided instant; `Fire`
//! moves it on and never back, and the task's id is made of the schedule and the instant.
//!
//! Left out: what a cron line or a time zone means. Zone data differ between versions of the program, and replicas must
//! not: the leader computes instants and writes them into commands. When to write them is the leader's business too.

mod delete;
mod fire;
mod set;
mod spec;
mod store;

pub use delete::DeleteSchedule;
pub use fire::Fire;
pub use set::SetSchedule;
pub use spec::{Missed, Overlap, ScheduleSpec, Timing};
pub use store::{LastFire, Schedule, ScheduleKey};
