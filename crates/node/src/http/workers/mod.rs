//! Workers: one file per verb.

mod beat;
mod change;
mod describe;
mod list;

pub(super) use beat::beat;
pub(super) use change::{drain, remove};
pub(super) use describe::{describe, summarize};
pub(super) use list::{list, show};

use ikada_replica::call::{Answer, Request};
use ikada_replica::peer::WorkerTold;

use super::answer::Stop;
use super::app::App;
use super::dispatch::{call, mismatch};
use super::door::Door;
use super::request::Context;

/// All workers of all namespaces, as the leader of shard 0 sees them.
async fn every_worker<D: Door>(app: &App<D>, context: &Context) -> Result<Vec<WorkerTold>, Stop> {
    match call(app, context, Request::Workers, context.routing).await? {
        Answer::Workers { workers, .. } => Ok(workers),
        _ => Err(mismatch("workers")),
    }
}
