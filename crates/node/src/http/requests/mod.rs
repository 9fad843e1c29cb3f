//! Requests: what became of one, and how every read is carried out.

mod read;
mod show;
mod void;

pub(super) use read::{Seen, label, read, show_view};
pub(super) use show::show;
pub(super) use void::void;
