//! `GET /v1/tasks/{id}`.

use std::time::Duration;

use ikada_api::convert::{parse_name, show_progress, show_task};
use ikada_api::state::{TaskId, TaskState};
use ikada_api::v1::ProgressBody;
use ikada_replica::call::{Answer, Consistency, Query, Request, Routing, View};

use crate::http::answer::{Reply, Stop};
use crate::http::app::App;
use crate::http::dispatch::{call_within, mismatch};
use crate::http::door::Door;
use crate::http::problems;
use crate::http::request::Context;
use crate::http::requests::{read, show_view};

/// How long the view of a task waits for word of its progress.
const PROGRESS_WAIT: Duration = Duration::from_millis(500);

pub(in crate::http) async fn show<D: Door>(app: &App<D>, context: &Context) -> Result<Reply, Stop> {
    let name = &context.names[0];
    let id = parse_name("id", name, TaskId::parse).map_err(|error| problems::bad_field(&error))?;
    let seen = read(app, context, Query::Task(context.namespace.clone(), id)).await?;
    match &seen.view {
        View::Task(Some(task)) => {
            let mut shown = show_task(task, context.form_wanted);
            if task.state == TaskState::Claimed && context.consistency != Consistency::Stale {
                shown.progress = progress(app, context, task.id.clone()).await;
            }
            show_view(context, &seen, &shown)
        }
        View::Task(None) => Err(problems::not_found("task_not_found", "task", name).into()),
        _ => Err(mismatch("show task")),
    }
}

/// How far a running task is: only its shard's leader knows. No answer in time is none; the task is shown all the same.
async fn progress<D: Door>(app: &App<D>, context: &Context, id: TaskId) -> Option<ProgressBody> {
    let request = Request::Explain(context.namespace.clone(), id);
    let left = PROGRESS_WAIT.min(context.timeout);
    match call_within(app, context, request, Routing::Forward, left).await {
        Ok(Answer::Explained(Some(explained))) => explained.progress.as_ref().map(show_progress),
        _ => None,
    }
}
