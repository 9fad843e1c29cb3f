//! `GET /v1/jobs/{id}/events`: waits until a job has changed since a revision, or ended, and shows it; a live stream for
//! those who ask for one (`stream.rs`).
//!
//! The wait looks at what this node has applied, which costs no other node anything; the answer itself is as fresh as
//! every other read.

use std::time::{Duration, Instant};

use ikada_api::convert::show_job;
use ikada_api::state::{Job, JobState};
use ikada_replica::call::{Consistency, Query, Request, Routing, View};

use super::show::{job_id, look};
use super::stream::stream;
use crate::http::answer::{Reply, Stop};
use crate::http::app::App;
use crate::http::dispatch::call;
use crate::http::door::Door;
use crate::http::problems;
use crate::http::request::Context;
use crate::http::requests::{Seen, show_view};

/// How often the job is looked at: people watch, and a look is cheap.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Longest wait.
const WAIT_MS_MAX: u64 = 60_000;

pub(in crate::http) async fn follow<D: Door>(
    app: &App<D>,
    context: &Context,
) -> Result<Reply, Stop> {
    let after: u64 = context.query_as("after", "must be a number from 0")?.unwrap_or(0);
    if context.wants_stream {
        return stream(app, context, after).await;
    }
    let rule = format!("must be 0 to {WAIT_MS_MAX}");
    let wait_ms: u64 = context.query_as("wait_ms", &rule)?.unwrap_or(0);
    if wait_ms > WAIT_MS_MAX {
        return Err(problems::bad_parameter("wait_ms", rule).into());
    }
    let until = Instant::now() + Duration::from_millis(wait_ms);
    let key = (context.namespace.clone(), job_id(context)?);
    let stopping = app.stopping.clone();
    // At once: whoever misspells an id is not kept waiting to hear of it.
    let (seen, job) = look(app, context).await?;
    if has_news(&job, after) {
        return show_view(context, &seen, &show_job(&job));
    }
    while Instant::now() < until && !*stopping.borrow() {
        let read = Request::Read(Query::Job(key.clone()), Consistency::Stale);
        let seen = Seen::of(call(app, context, read, Routing::Forward).await?);
        if let Some(View::Job(Some(job))) = seen.map(|seen| seen.view)
            && has_news(&job, after)
        {
            break;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    let (seen, job) = look(app, context).await?;
    show_view(context, &seen, &show_job(&job))
}

/// Whether whoever knows a revision of a job need not wait.
fn has_news(job: &Job, after: u64) -> bool {
    job.revision() > after || job.state() != JobState::Running
}
