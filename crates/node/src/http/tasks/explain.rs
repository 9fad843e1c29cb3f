//! `GET /v1/tasks/{id}/explain`: why a task is not running.

use hyper::StatusCode;
use ikada_api::convert::{parse_name, show_explanation};
use ikada_api::state::TaskId;
use ikada_replica::call::{Answer, Request};

use crate::http::answer::{Reply, Stop, show_document};
use crate::http::app::App;
use crate::http::dispatch::{call, mismatch};
use crate::http::door::Door;
use crate::http::problems;
use crate::http::request::Context;

pub(in crate::http) async fn explain<D: Door>(
    app: &App<D>,
    context: &Context,
) -> Result<Reply, Stop> {
    let name = &context.names[0];
    let id = parse_name("id", name, TaskId::parse).map_err(|error| problems::bad_field(&error))?;
    let request = Request::Explain(context.namespace.clone(), id);
    match call(app, context, request, context.routing).await? {
        Answer::Explained(Some(explanation)) => {
            show_document(context, StatusCode::OK, &show_explanation(&explanation))
        }
        Answer::Explained(None) => Err(problems::not_found("task_not_found", "task", name).into()),
        _ => Err(mismatch("explain task")),
    }
}
