//! `GET /v1/jobs/{id}/tasks`: a job's tasks in order, stage by stage.

use ikada_api::convert::show_job_task;
use ikada_api::v1::JobTaskPage;
use ikada_replica::call::{Query, View};

use super::show::look;
use crate::http::answer::{Reply, Stop};
use crate::http::app::App;
use crate::http::dispatch::mismatch;
use crate::http::door::Door;
use crate::http::objects::page_limit;
use crate::http::problems;
use crate::http::request::Context;
use crate::http::requests::{read, show_view};

pub(in crate::http) async fn tasks<D: Door>(
    app: &App<D>,
    context: &Context,
) -> Result<Reply, Stop> {
    let limit = page_limit(app, context)?;
    let (seen, job) = look(app, context).await?;
    let named = |name: &str| job.spec().stages.iter().position(|stage| stage.name.as_str() == name);
    let only = match context.query("stage") {
        None => None,
        Some(name) => Some(named(name).ok_or_else(|| {
            problems::bad_parameter("stage", format!("the job has no stage {name:?}"))
        })?),
    };
    let (mut stage, mut from) = match context.query("after") {
        None => (only.unwrap_or(0), 0),
        Some(text) => read_place(text, named)?,
    };
    let mut tasks = Vec::new();
    while tasks.len() < limit && stage < job.spec().stages.len() {
        let left = (limit - tasks.len()) as u32;
        let key = (context.namespace.clone(), job.id().clone());
        let query = Query::JobTasks { job: key, stage, from, limit: left };
        let seen = read(app, context, query).await?;
        let View::JobTasks(page) = &seen.view else {
            return Err(mismatch("job tasks"));
        };
        tasks.extend(page.iter().map(show_job_task));
        from += page.len() as u32;
        if from >= job.spec().count(stage) {
            if only.is_some() {
                stage = job.spec().stages.len();
            } else {
                stage += 1;
            }
            from = 0;
        } else if page.is_empty() {
            break;
        }
    }
    let next = job.spec().stages.get(stage).map(|stage| format!("{}.{from}", stage.name));
    show_view(context, &seen, &JobTaskPage { tasks, next })
}

/// Where a page begins: a stage and a number.
fn read_place(text: &str, named: impl Fn(&str) -> Option<usize>) -> Result<(usize, u32), Stop> {
    let place = text
        .rsplit_once('.')
        .and_then(|(stage, index)| Some((named(stage)?, index.parse::<u32>().ok()?)));
    place.ok_or_else(|| problems::bad_parameter("after", "must be the next of a page").into())
}
