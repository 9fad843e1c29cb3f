//! Jobs: one file per verb.

mod cancel;
mod follow;
mod list;
mod pin;
mod result;
mod show;
mod stream;
mod submit;
mod tasks;

pub(super) use cancel::cancel;
pub(super) use follow::follow;
pub(super) use list::list;
pub(super) use pin::pin_task;
pub(super) use result::result;
pub(super) use show::show;
pub(super) use submit::submit;
pub(super) use tasks::tasks;
