//! One file per noun.

mod audit;
mod auth;
mod backup;
mod cluster;
mod context;
mod doctor;
mod job;
mod join_token;
mod lease;
mod members;
mod object;
mod paper;
mod program;
mod queue;
mod request;
mod schedule;
mod server;
mod task;
mod worker;

pub(crate) use audit::audit;
pub(crate) use auth::auth;
pub(crate) use cluster::cluster;
pub(crate) use context::context;
pub(crate) use doctor::doctor;
pub(crate) use job::job;
pub(crate) use join_token::join_token;
pub(crate) use lease::lease;
pub(crate) use object::object;
pub(crate) use paper::{completions, man};
pub(crate) use program::program;
pub(crate) use queue::queue;
pub(crate) use request::request;
pub(crate) use schedule::schedule;
pub(crate) use server::server;
pub(crate) use task::task;
pub(crate) use worker::worker;
