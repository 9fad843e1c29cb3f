//! `PUT /v1/workers/{id}`: registration and proof of life in one; writes only what changes.

use hyper::StatusCode;
use ikada_api::convert::{register_worker, worker_name};
use ikada_api::state::WorkerStanding;
use ikada_api::v1::{WorkerBeat, WorkerOrders, WorkerWanted};
use ikada_replica::WORKER_BEAT_MS;
use ikada_replica::call::{Answer, Request};

use crate::http::answer::{Reply, Stop, show_document};
use crate::http::app::App;
use crate::http::dispatch::{call, mismatch};
use crate::http::door::Door;
use crate::http::problems;
use crate::http::request::{Context, read_document};

pub(in crate::http) async fn beat<D: Door>(
    app: &App<D>,
    context: &Context,
    body: &[u8],
) -> Result<Reply, Stop> {
    let beat: WorkerBeat = read_document(context, body)?;
    let id = worker_name(&context.names[0]).map_err(|error| problems::bad_field(&error))?;
    let id = context.worker(id)?;
    let worker = register_worker(id, &beat).map_err(|error| problems::bad_field(&error))?;
    let (namespace, leaving) = (context.namespace.clone(), beat.leaving);
    let busy = beat.busy.min(beat.slots);
    let request = Request::Beat { namespace, worker, busy, leaving };
    let Answer::Beat { standing, term } = call(app, context, request, context.routing).await?
    else {
        return Err(mismatch("beat"));
    };
    let wanted = match standing {
        WorkerStanding::Active => WorkerWanted::Work,
        WorkerStanding::Draining => WorkerWanted::Drain,
        WorkerStanding::Removed => WorkerWanted::Stop,
    };
    let orders = WorkerOrders { wanted, term, beat_ms: WORKER_BEAT_MS };
    show_document(context, StatusCode::OK, &orders)
}
