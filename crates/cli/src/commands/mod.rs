//! One file per noun.

mod auth;
mod cluster;
mod context;
mod members;
mod queue;
mod request;
mod schedule;
mod server;
mod task;

pub(crate) use auth::auth;
pub(crate) use cluster::cluster;
pub(crate) use context::context;
pub(crate) use queue::queue;
pub(crate) use request::request;
pub(crate) use schedule::schedule;
pub(crate) use server::server;
pub(crate) use task::task;
