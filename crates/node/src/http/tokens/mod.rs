//! Tokens and who the caller is.

mod create;
mod list;
mod revoke;
mod whoami;

pub(super) use create::create;
pub(super) use list::list;
pub(super) use revoke::revoke;
pub(super) use whoami::whoami;
