//! Reading a request: its context and its body.

mod body;
mod context;

pub(super) use body::{check_count, read_document, read_document_as, take_body};
pub(super) use context::{Context, form_wanted};
