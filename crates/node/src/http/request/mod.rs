//! Reading a request: its context, its body, and what a call leaves of it.

mod body;
mod context;
mod rest;

pub(super) use body::{check_count, read_document, read_document_as, take_body};
pub(super) use context::{Context, form_wanted};
pub(super) use rest::lend;
