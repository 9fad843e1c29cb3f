//! `GET /v1/tasks/{id}/logs` and `GET /v1/jobs/{id}/logs` as live streams: what was said so far, and then what comes, until
//! the task or job has ended.
//!
//! Any node tells them from its own copy of the state, so a stream outlives leaders; a reader whose node dies goes on at
//! another with `Last-Event-ID`. Streams share the bound and the conduct of those of role changes.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use http_body_util::channel::Channel;
use hyper::StatusCode;
use hyper::http::request::Parts;
use ikada_api::convert::parse_name;
use ikada_api::state::{JobId, TaskId};
use ikada_replica::call::Consistency;
use tokio::sync::watch;

use super::look::{Scope, Standing, Subject};
use super::read::read_task;
use super::tell::{Left, Shape, Teller};
use crate::http::answer::{Reply, Stop, with_body};
use crate::http::app::App;
use crate::http::connection::told_to_stop;
use crate::http::door::Door;
use crate::http::problems;
use crate::http::request::Context;

/// How often logs are looked at, for every thousand of them.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// A comment is sent after this long without news, so that a dead connection is noticed.
const ALIVE_EVERY: Duration = Duration::from_secs(15);
/// Pieces that wait for the reader.
const PIECES_MAX: usize = 16;

/// `GET /v1/tasks/{id}/logs`.
pub(in crate::http) async fn of_task<D: Door>(
    app: &App<D>,
    context: &Context,
    parts: &Parts,
) -> Result<Reply, Stop> {
    let id = parse_name("id", &context.names[0], TaskId::parse);
    let id = id.map_err(|error| problems::bad_field(&error))?;
    let attempt = context.query_as("attempt", "must be a number from 1")?;
    match context.wants_stream {
        true => stream(app, context, Scope::Task(id, attempt)).await,
        false => read_task(app, context, parts, &id, attempt).await,
    }
}

/// `GET /v1/jobs/{id}/logs`: a live stream, or the lines so far.
pub(in crate::http) async fn of_job<D: Door>(
    app: &App<D>,
    context: &Context,
) -> Result<Reply, Stop> {
    let id = parse_name("id", &context.names[0], JobId::parse);
    let id = id.map_err(|error| problems::bad_field(&error))?;
    stream(app, context, Scope::Job(id)).await
}

async fn stream<D: Door>(app: &App<D>, context: &Context, scope: Scope) -> Result<Reply, Stop> {
    let follows = context.query_as("follow", "must be true or false")?.unwrap_or(true);
    let since_ms = context.last_event_as("must be the id of an event of this stream")?;
    let name = context.names[0].as_str();
    let missing = match &scope {
        Scope::Task(..) => problems::not_found("task_not_found", "task", name),
        Scope::Job(_) => problems::not_found("job_not_found", "job", name),
    };
    let subject = Subject { namespace: context.namespace.clone(), scope };
    // As fresh as asked for, so that whoever has just submitted it is not told that it does not exist.
    match subject.standing(&app.door, context.consistency.clone()).await {
        None => return Err(problems::door_full("looks at the state").into()),
        Some(Standing::Gone) => return Err(missing.into()),
        Some(_) => {}
    }
    let permit = app.streams.clone().try_acquire_owned();
    let permit = permit.map_err(|_| problems::door_full("event streams"))?;
    let (sender, body) = Channel::<Bytes, std::convert::Infallible>::new(PIECES_MAX);
    let (shape, media_type) = match context.wants_stream {
        true => (Shape::Events, "text/event-stream"),
        false => (Shape::Lines, "text/plain; charset=utf-8"),
    };
    let teller = Teller::new(subject.clone(), shape, since_ms.unwrap_or(0), sender);
    let (door, stopping) = (app.door.clone(), app.stopping.clone());
    let standing = app.security.standing(&context.principal);
    let follows = follows && shape == Shape::Events;
    tokio::spawn(async move {
        tokio::select! {
            _ = feed(door, subject, teller, stopping, follows) => {}
            () = standing.ended() => {}
        }
        drop(permit);
    });
    Ok(with_body(StatusCode::OK, media_type, body.boxed()))
}

/// Feeds one stream until all is said, its reader leaves or the door closes.
async fn feed<D: Door>(
    door: D,
    subject: Subject,
    mut teller: Teller,
    mut stopping: watch::Receiver<bool>,
    follows: bool,
) -> Result<(), Left> {
    // The first comment opens the stream on the reader's side.
    teller.comment("logs").await?;
    if let Some(tasks) = subject.forgotten(&door).await.filter(|tasks| *tasks > 0) {
        teller.tell_forgotten(tasks).await?;
    }
    let (mut quiet, mut known) = (Duration::ZERO, false);
    loop {
        // Looked at first: what was said before the end is then among the logs.
        let mut standing = subject.standing(&door, Consistency::Stale).await;
        if standing == Some(Standing::Gone) && !known {
            // Our own copy may be behind.
            standing = subject.standing(&door, Consistency::Linearizable).await;
        }
        known |= standing.is_some();
        let logs = subject.logs(&door).await;
        let pause =
            LOOK_EVERY * (1 + logs.as_ref().map_or(0, |logs| logs.found.len() / 1_000)) as u32;
        if let (Some(standing), Some(logs)) = (standing, logs) {
            let end = match standing {
                Standing::Open if follows => None,
                Standing::Open => Some("open".to_owned()),
                Standing::Over(state) => Some(state),
                Standing::Gone => Some("gone".to_owned()),
            };
            if teller.tell(&door, &logs, end.is_some()).await? {
                quiet = Duration::ZERO;
            }
            if let Some(state) = end {
                return teller.end(&state).await;
            }
        }
        quiet += pause;
        if quiet >= ALIVE_EVERY {
            quiet = Duration::ZERO;
            teller.comment("alive").await?;
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = told_to_stop(&mut stopping) => return Ok(()),
        }
    }
}
