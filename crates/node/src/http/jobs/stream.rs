//! `GET /v1/jobs/{id}/events` as a live stream: one event `job` per change, with its revision as id, until the job has ended.
//!
//! Changes that come faster than one looks are told as one: what counts is how the job stands. A reader who comes again with
//! `Last-Event-ID` hears only what is newer. One that takes nothing for a while is cut off; the number of streams is
//! bounded.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use http_body_util::channel::{Channel, Sender};
use hyper::StatusCode;
use ikada_api::convert::show_job;
use ikada_api::state::{Job, JobId, JobState, Namespace};
use ikada_replica::call::{Answer, Consistency, Query, Request, Routing, View};
use tokio::sync::watch;

use super::show::look;
use crate::http::answer::{Reply, Stop, with_body};
use crate::http::app::App;
use crate::http::connection::told_to_stop;
use crate::http::door::Door;
use crate::http::problems;
use crate::http::request::Context;

/// How often the job is looked at: people watch, and a look is cheap.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How long a look may take; one that takes longer is made again.
const LOOK_PATIENCE: Duration = Duration::from_secs(5);
/// A comment is sent after this long without changes, so that a dead connection is noticed.
const ALIVE_EVERY: Duration = Duration::from_secs(15);
/// A reader that takes nothing for this long is cut off.
const READER_PATIENCE: Duration = Duration::from_secs(30);
/// Pieces that wait for the reader.
const PIECES_MAX: usize = 16;

pub(super) async fn stream<D: Door>(
    app: &App<D>,
    context: &Context,
    after: u64,
) -> Result<Reply, Stop> {
    let last: Option<u64> = context.last_event_as("must be the id of an event of this stream")?;
    // As fresh as asked for, so that whoever has just submitted it is not told that it does not exist.
    let (_, job) = look(app, context).await?;
    let permit = app.streams.clone().try_acquire_owned();
    let permit = permit.map_err(|_| problems::door_full("event streams"))?;
    let (sender, body) = Channel::<Bytes, Infallible>::new(PIECES_MAX);
    let key = (context.namespace.clone(), job.id().clone());
    let told = last.unwrap_or(after);
    let (door, stopping) = (app.door.clone(), app.stopping.clone());
    let (security, principal) = (app.security.clone(), context.principal.clone());
    tokio::spawn(async move {
        tokio::select! {
            () = feed(door, key, (job, told), sender, stopping) => {}
            () = security.revoked(&principal) => {}
        }
        drop(permit);
    });
    Ok(with_body(StatusCode::OK, "text/event-stream", body.boxed()))
}

/// Feeds one stream until the job has ended, its reader leaves or the door closes.
async fn feed<D: Door>(
    door: D,
    key: (Namespace, JobId),
    (mut job, mut told): (Arc<Job>, u64),
    mut sender: Sender<Bytes, Infallible>,
    mut stopping: watch::Receiver<bool>,
) {
    let mut quiet = Duration::ZERO;
    // The first comment opens the stream on the reader's side.
    let mut piece = String::from(": job\n\n");
    loop {
        let ended = job.state() != JobState::Running;
        // The end is told in any case: a reader who missed nothing must learn that nothing follows.
        if job.revision() > told || ended {
            told = job.revision();
            let data = serde_json::to_string(&show_job(&job)).unwrap_or_default();
            piece.push_str(&format!("id: {told}\nevent: job\ndata: {data}\n\n"));
        } else if quiet >= ALIVE_EVERY {
            piece.push_str(": alive\n\n");
        }
        if !piece.is_empty() {
            quiet = Duration::ZERO;
            let sent = sender.send_data(Bytes::from(std::mem::take(&mut piece)));
            let sent = tokio::time::timeout(READER_PATIENCE, sent).await;
            if ended || !matches!(sent, Ok(Ok(()))) {
                return;
            }
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK_EVERY) => quiet += LOOK_EVERY,
            () = told_to_stop(&mut stopping) => return,
        }
        let read = Request::Read(Query::Job(key.clone()), Consistency::Stale);
        // Our own copy: it may be behind, never ahead. One whose record is gone has been told of for as long as it was kept.
        match door.call(read, LOOK_PATIENCE, Routing::Forward).await {
            Answer::View { view: View::Job(Some(seen)), .. } if seen.revision() >= told => {
                job = seen
            }
            Answer::View { view: View::Job(None), .. } if told > 0 => return,
            _ => {}
        }
    }
}
