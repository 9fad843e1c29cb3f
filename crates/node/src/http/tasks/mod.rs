//! Tasks: one file per verb.

mod act;
mod checkpoint;
mod claim;
mod enqueue;
mod explain;
mod items;
mod list;
mod renew;
mod report;
mod show;
mod write;

pub(super) use act::{cancel, drop_task, retry};
pub(super) use checkpoint::checkpoint;
pub(super) use claim::claim;
pub(super) use enqueue::{Enqueuing, enqueue};
pub(super) use explain::explain;
pub(super) use list::list;
pub(super) use renew::renew;
pub(super) use report::{complete, fail, read_completions, read_failures, show_report};
pub(super) use show::show;
pub(super) use write::{Item, Writing, Written, write};
