//! Namespaces: one file per verb.

mod judge;
mod list;
mod set;
mod show;

pub(super) use judge::{admit_follow_ups, admit_in_place, admit_objects, admit_tasks};
pub(super) use list::list;
pub(super) use set::set;
pub(super) use show::{own, show};
