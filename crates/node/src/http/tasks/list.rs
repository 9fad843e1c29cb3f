//! `GET /v1/tasks`: a page of tasks, shard by shard.

use ikada_api::convert::{parse_name, show_task, show_task_brief, task_state};
use ikada_api::state::{QueueName, ShardId, TaskFilter, TaskView, WorkerId};
use ikada_api::v1::{TaskPage, TaskStateName};
use ikada_replica::call::{Query, View};

use crate::http::answer::{Reply, Stop};
use crate::http::app::App;
use crate::http::dispatch::mismatch;
use crate::http::door::Door;
use crate::http::problems;
use crate::http::request::Context;
use crate::http::requests::{read, show_view};

pub(in crate::http) async fn list<D: Door>(app: &App<D>, context: &Context) -> Result<Reply, Stop> {
    let queue = context.query("queue").map(|queue| parse_name("queue", queue, QueueName::parse));
    let queue = queue.transpose().map_err(|error| problems::bad_field(&error))?;
    let rule = "must be one of scheduled, ready, claimed, done, dead, cancelled";
    let state: Option<TaskStateName> = context.query_as("state", rule)?;
    let rule = format!("must be 1 to {}", app.limits.page_max);
    let limit: usize = context.query_as("limit", &rule)?.unwrap_or(app.limits.page_default);
    if !(1..=app.limits.page_max).contains(&limit) {
        return Err(problems::bad_parameter("limit", rule).into());
    }
    let after = context.query("after").map(read_place).transpose()?;
    let worker =
        context.query("worker").map(|worker| parse_name("worker", worker, WorkerId::parse));
    let worker = worker.transpose().map_err(|error| problems::bad_field(&error))?;
    let brief = context.query_as("brief", "must be true or false")?.unwrap_or(false);
    let filter = TaskFilter {
        namespace: Some(context.namespace.clone()),
        queue,
        state: state.map(task_state),
        worker,
        find: context.query("find").filter(|text| !text.is_empty()).map(Box::from),
    };
    let seen = read(app, context, Query::Tasks { filter, after, limit }).await?;
    let View::Tasks { tasks, next } = &seen.view else {
        return Err(mismatch("list tasks"));
    };
    let show = |task: &TaskView| match brief {
        true => show_task_brief(task),
        false => show_task(task, context.form_wanted),
    };
    let page = TaskPage {
        tasks: tasks.iter().map(show).collect(),
        next: next.map(|(shard, place)| format!("{shard}.{place}")),
    };
    show_view(context, &seen, &page)
}

/// Where a page begins, as the page before put it.
fn read_place(text: &str) -> Result<(ShardId, u32), Stop> {
    let parsed = text
        .split_once('.')
        .and_then(|(shard, place)| Some((shard.parse().ok()?, place.parse().ok()?)));
    parsed.ok_or_else(|| {
        problems::bad_parameter("after", "must be the next of an earlier page").into()
    })
}
