//! `POST /v1/workers/{id}/drain` and `DELETE /v1/workers/{id}`.

use hyper::StatusCode;
use ikada_api::convert::worker_name;
use ikada_api::state::{Command, DrainWorker, Order, RemoveWorker, WorkerId};
use ikada_api::v1::WorkerChanged;

use crate::http::answer::{Reply, Stop, add_positions, show_document};
use crate::http::app::App;
use crate::http::door::Door;
use crate::http::problems;
use crate::http::request::Context;
use crate::http::tasks::{Item, write};

pub(in crate::http) async fn drain<D: Door>(
    app: &App<D>,
    context: &Context,
) -> Result<Reply, Stop> {
    change(app, context, "draining", |id| Command::DrainWorker(DrainWorker { id })).await
}

pub(in crate::http) async fn remove<D: Door>(
    app: &App<D>,
    context: &Context,
) -> Result<Reply, Stop> {
    let remove = |id| Command::RemoveWorker(RemoveWorker { id, session: None, forget: false });
    change(app, context, "removed", remove).await
}

async fn change<D: Door>(
    app: &App<D>,
    context: &Context,
    outcome: &str,
    command: impl Fn(WorkerId) -> Command,
) -> Result<Reply, Stop> {
    let name = context.names[0].clone();
    let id = worker_name(&name).map_err(|error| problems::bad_field(&error))?;
    let namespace = context.namespace.clone();
    // Doing it twice is as good as once, so no request id is remembered.
    let order = Order { namespace, request: None, command: command(id) };
    let item = Item { id: name.clone(), order: Ok(order) };
    let written = write(app, context, vec![item], None).await?;
    let (_, positions) = written.only()?;
    let shown = WorkerChanged { id: name, outcome: outcome.to_owned() };
    let mut response = show_document(context, StatusCode::OK, &shown)?;
    add_positions(&mut response, &positions);
    Ok(response)
}
