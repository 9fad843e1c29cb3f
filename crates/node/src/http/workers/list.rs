//! `GET /v1/workers` and `GET /v1/workers/{id}`.

use hyper::StatusCode;
use ikada_api::convert::worker_name;
use ikada_api::v1::WorkerPage;

use super::{describe, every_worker, summarize};
use crate::http::answer::{Reply, Stop, show_document};
use crate::http::app::App;
use crate::http::door::Door;
use crate::http::problems;
use crate::http::request::Context;

pub(in crate::http) async fn list<D: Door>(app: &App<D>, context: &Context) -> Result<Reply, Stop> {
    let mut workers = every_worker(app, context).await?;
    workers.retain(|worker| worker.record.namespace == context.namespace);
    let page = WorkerPage {
        summary: summarize(&workers),
        workers: workers.iter().map(describe).collect(),
    };
    show_document(context, StatusCode::OK, &page)
}

pub(in crate::http) async fn show<D: Door>(app: &App<D>, context: &Context) -> Result<Reply, Stop> {
    let text = &context.names[0];
    let id = worker_name(text).map_err(|error| problems::bad_field(&error))?;
    let workers = every_worker(app, context).await?;
    let key = (context.namespace.clone(), id);
    match workers.iter().find(|worker| worker.record.key() == key) {
        Some(worker) => show_document(context, StatusCode::OK, &describe(worker)),
        None => Err(problems::not_found("worker_not_found", "worker", text).into()),
    }
}
