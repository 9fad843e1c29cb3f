//! `GET /v1/jobs/{id}`, and the look at a job that every verb ends with.

use std::sync::Arc;

use hyper::StatusCode;
use ikada_api::convert::{parse_name, show_job};
use ikada_api::state::{Job, JobId, Lsn, ShardId};
use ikada_replica::call::{Answer, Consistency, Query, Request, Routing, View};

use crate::http::answer::{Reply, Stop, add_positions, show_document};
use crate::http::app::App;
use crate::http::dispatch::{call, mismatch};
use crate::http::door::Door;
use crate::http::problems;
use crate::http::request::Context;
use crate::http::requests::{Seen, read, show_view};

pub(in crate::http) async fn show<D: Door>(app: &App<D>, context: &Context) -> Result<Reply, Stop> {
    let (seen, job) = look(app, context).await?;
    show_view(context, &seen, &show_job(&job))
}

/// The job of the path.
pub(super) fn job_id(context: &Context) -> Result<JobId, Stop> {
    parse_name("id", &context.names[0], JobId::parse)
        .map_err(|error| problems::bad_field(&error).into())
}

/// The job of the path, as fresh as the caller asked for.
pub(super) async fn look<D: Door>(
    app: &App<D>,
    context: &Context,
) -> Result<(Seen, Arc<Job>), Stop> {
    let seen =
        read(app, context, Query::Job((context.namespace.clone(), job_id(context)?))).await?;
    let View::Job(job) = &seen.view else {
        return Err(mismatch("show job"));
    };
    let Some(job) = job.clone() else {
        return Err(missing(&context.names[0]));
    };
    Ok((seen, job))
}

/// The answer to a change of a job: the job as it then is.
pub(super) async fn show_after<D: Door>(
    app: &App<D>,
    context: &Context,
    (id, status): (JobId, StatusCode),
    positions: &[(ShardId, Lsn)],
) -> Result<Reply, Stop> {
    let query = Query::Job((context.namespace.clone(), id.clone()));
    let read = Request::Read(query, Consistency::Linearizable);
    match call(app, context, read, Routing::Forward).await? {
        Answer::View { view: View::Job(Some(job)), .. } => {
            let mut response = show_document(context, status, &show_job(&job))?;
            add_positions(&mut response, positions);
            Ok(response)
        }
        Answer::View { view: View::Job(None), .. } => Err(missing(id.as_str())),
        _ => Err(mismatch("show job")),
    }
}

/// There is no such job (B4-7: its status is missing).
fn missing(id: &str) -> Stop {
    problems::not_found("job_not_found", "job", id).into()
}
