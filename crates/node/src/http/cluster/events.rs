//! `GET /v1/cluster/events`: the ring of role changes (MQ-27), as a page or as a live stream.
//!
//! A stream belongs to a task of its own with a small buffer. A reader that takes nothing for a while is cut off
//! (F-33); the number of streams is bounded.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use http_body_util::channel::{Channel, Sender};
use hyper::StatusCode;
use ikada_api::v1::{EventPage, EventView, Number};
use ikada_replica::status::RoleEvent;
use tokio::sync::watch;

use super::role_word;
use crate::http::answer::{Reply, Stop, show_document, with_body};
use crate::http::app::App;
use crate::http::connection::told_to_stop;
use crate::http::door::Door;
use crate::http::problems;
use crate::http::request::Context;

/// How often the ring is looked at: role changes are rare, and a person watches.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// A comment is sent after this long without events, so that a dead connection is noticed.
const ALIVE_EVERY: Duration = Duration::from_secs(15);
/// A reader that takes nothing for this long is cut off.
const READER_PATIENCE: Duration = Duration::from_secs(30);
/// Pieces that wait for the reader.
const PIECES_MAX: usize = 16;

pub(in crate::http) async fn events<D: Door>(
    app: &App<D>,
    context: &Context,
) -> Result<Reply, Stop> {
    let after: u64 = context.query_as("after", "must be a number from 0")?.unwrap_or(0);
    if context.wants_stream {
        return stream(app, context, after);
    }
    let events = app.door.events(after).await;
    let next = events.last().map_or(after, |event| event.sequence);
    let page = EventPage {
        node: Number(app.door.info().node),
        events: events.iter().map(show_event).collect(),
        next,
    };
    show_document(context, StatusCode::OK, &page)
}

fn show_event(event: &RoleEvent) -> EventView {
    EventView {
        sequence: event.sequence,
        wall_ms: event.wall_ms,
        shard: event.shard,
        term: event.term,
        role: role_word(event.role).to_owned(),
        leader: event.leader.map(Number),
        vote: event.vote.map(Number),
        reason: event.reason.to_owned(),
    }
}

fn stream<D: Door>(app: &App<D>, context: &Context, after: u64) -> Result<Reply, Stop> {
    let permit = app.streams.clone().try_acquire_owned();
    let permit = permit.map_err(|_| problems::door_full("event streams"))?;
    let (sender, body) = Channel::<Bytes, Infallible>::new(PIECES_MAX);
    let (door, stopping) = (app.door.clone(), app.stopping.clone());
    let (security, principal) = (app.security.clone(), context.principal.clone());
    tokio::spawn(async move {
        tokio::select! {
            () = feed(door, after, sender, stopping) => {}
            () = security.revoked(&principal) => {}
        }
        drop(permit);
    });
    Ok(with_body(StatusCode::OK, "text/event-stream", body.boxed()))
}

/// Feeds one stream until its reader leaves or the door closes.
async fn feed<D: Door>(
    door: D,
    mut after: u64,
    mut sender: Sender<Bytes, Infallible>,
    mut stopping: watch::Receiver<bool>,
) {
    let mut quiet = Duration::ZERO;
    // The first comment opens the stream on the reader's side.
    let mut piece = String::from(": role changes\n\n");
    loop {
        for event in door.events(after).await {
            after = event.sequence;
            let data = serde_json::to_string(&show_event(&event)).unwrap_or_default();
            piece.push_str(&format!("id: {after}\nevent: role\ndata: {data}\n\n"));
        }
        if piece.is_empty() && quiet >= ALIVE_EVERY {
            piece.push_str(": alive\n\n");
        }
        if piece.is_empty() {
            quiet += LOOK_EVERY;
        } else {
            quiet = Duration::ZERO;
            let sent = sender.send_data(Bytes::from(std::mem::take(&mut piece)));
            match tokio::time::timeout(READER_PATIENCE, sent).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return,
            }
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK_EVERY) => {}
            () = told_to_stop(&mut stopping) => return,
        }
    }
}
