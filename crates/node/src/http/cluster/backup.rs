//! `GET /v1/cluster/backup`: the state of every shard as one stream, while the cluster works.
//!
//! Each state is as new as a linearizable read at the time of the question. States of different shards are taken
//! together and only used if no message between two of them is missing on both sides; else they are taken again.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use http_body_util::channel::{Channel, Sender};
use hyper::StatusCode;
use ikada_api::state::{Frozen, messages_fit};
use ikada_replica::call::{Answer, Consistency, Query, Request, Routing, View};

use crate::backup::write_backup;
use crate::http::answer::{Reply, Stop, with_body};
use crate::http::app::App;
use crate::http::dispatch::{call, mismatch};
use crate::http::door::Door;
use crate::http::problems;
use crate::http::request::Context;

/// Pieces that wait for the reader.
const PIECES_MAX: usize = 4;
/// A reader that takes nothing for this long is cut off.
const READER_PATIENCE: Duration = Duration::from_secs(60);
/// States are taken anew so often while messages are on their way.
const TRIES_MAX: u32 = 50;
/// Pause between two tries.
const TRY_PAUSE: Duration = Duration::from_millis(40);

pub(in crate::http) async fn backup<D: Door>(
    app: &App<D>,
    context: &Context,
) -> Result<Reply, Stop> {
    let permit = app.streams.clone().try_acquire_owned();
    let permit = permit.map_err(|_| problems::door_full("streams"))?;
    let frozen = freeze(app, context).await?;
    let pieces = write_backup(app.door.info().cluster, frozen);
    let (sender, body) = Channel::<Bytes, Infallible>::new(PIECES_MAX);
    tokio::spawn(async move {
        feed(pieces, sender).await;
        drop(permit);
    });
    Ok(with_body(StatusCode::OK, "application/octet-stream", body.boxed()))
}

/// The states of all shards, taken so that no message between them is lost.
async fn freeze<D: Door>(app: &App<D>, context: &Context) -> Result<Vec<Frozen>, Stop> {
    for _ in 0..TRIES_MAX {
        let read = Request::Read(Query::Backup, Consistency::Linearizable);
        let answer = call(app, context, read, Routing::Forward).await?;
        let Answer::View { view: View::Frozen(frozen), .. } = answer else {
            return Err(mismatch("backup"));
        };
        if messages_fit(&frozen) {
            return Ok(frozen);
        }
        tokio::time::sleep(TRY_PAUSE).await;
    }
    Err(problems::door_full("changes between shards, too many for a backup just now").into())
}

/// Sends piece after piece; each is made off the sockets' threads.
async fn feed(
    mut pieces: impl Iterator<Item = Vec<u8>> + Send + 'static,
    mut sender: Sender<Bytes, Infallible>,
) {
    loop {
        let made = tokio::task::spawn_blocking(move || (pieces.next(), pieces)).await;
        let Ok((Some(piece), rest)) = made else { return };
        pieces = rest;
        let sent = sender.send_data(Bytes::from(piece));
        if !matches!(tokio::time::timeout(READER_PATIENCE, sent).await, Ok(Ok(()))) {
            return;
        }
    }
}
