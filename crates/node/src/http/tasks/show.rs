//! `GET /v1/tasks/{id}`.

use ikada_api::convert::{parse_name, show_task};
use ikada_api::state::TaskId;
use ikada_replica::call::{Query, View};

use crate::http::answer::{Reply, Stop};
use crate::http::app::App;
use crate::http::dispatch::mismatch;
use crate::http::door::Door;
use crate::http::problems;
use crate::http::request::Context;
use crate::http::requests::{read, show_view};

pub(in crate::http) async fn show<D: Door>(app: &App<D>, context: &Context) -> Result<Reply, Stop> {
    let name = &context.names[0];
    let id = parse_name("id", name, TaskId::parse).map_err(|error| problems::bad_field(&error))?;
    let seen = read(app, context, Query::Task(context.namespace.clone(), id)).await?;
    match &seen.view {
        View::Task(Some(task)) => show_view(context, &seen, &show_task(task, context.form_wanted)),
        View::Task(None) => Err(problems::not_found("task_not_found", "task", name).into()),
        _ => Err(mismatch("show task")),
    }
}
