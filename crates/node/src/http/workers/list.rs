//! `GET /v1/workers` and `GET /v1/workers/{id}`.

use hyper::StatusCode;
use ikada_api::convert::worker_name;
use ikada_api::v1::WorkerPage;

use super::{describe, every_worker, summarize};
use crate::http::answer::{Reply, Stop, show_document};
use crate::http::app::App;
use crate::http::door::Door;
use crate::http::objects::some_limit;
use crate::http::problems;
use crate::http::request::Context;

pub(in crate::http) async fn list<D: Door>(app: &App<D>, context: &Context) -> Result<Reply, Stop> {
    let mut workers = every_worker(app, context).await?;
    workers.retain(|worker| worker.record.namespace == context.namespace);
    let summary = summarize(&workers);
    let (find, after) = (context.query("find").unwrap_or(""), context.query("after").unwrap_or(""));
    workers.retain(|worker| {
        let name = worker.record.id.as_str();
        name.contains(find) && (after.is_empty() || name > after)
    });
    let limit = some_limit(app, context)?;
    let more = workers.len() > limit;
    workers.truncate(limit);
    let next = workers.last().filter(|_| more).map(|worker| worker.record.id.to_string());
    let page = WorkerPage { summary, workers: workers.iter().map(describe).collect(), next };
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
