//! Reading a request: its context and its body.

mod body;
mod context;

pub(super) use body::{check_count, read_json, take_body};
pub(super) use context::Context;
