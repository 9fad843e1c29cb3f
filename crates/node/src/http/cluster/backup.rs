//! `GET /v1/cluster/backup`: the state of every shard and the bytes of all objects as one stream, while the cluster works.
//!
//! Each state is as new as a linearizable read at the time of the question. States of different shards are taken
//! together and only used if no message between two of them is missing on both sides; else they are taken again. Pieces
//! are pinned before the first byte leaves, so that an object that is removed meanwhile does not take them along.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use http_body_util::channel::{Channel, Sender};
use hyper::StatusCode;
use ikada_api::state::{Digest, Frozen, messages_fit};
use ikada_replica::call::{Answer, Consistency, Query, Request, Routing, View};
use tracing::warn;

use crate::backup::{pieces_of, write_end, write_piece_head, write_states, write_trouble};
use crate::http::answer::{Reply, Stop, with_body};
use crate::http::app::App;
use crate::http::dispatch::{call, mismatch};
use crate::http::door::Door;
use crate::http::problems;
use crate::http::request::Context;
use crate::objects::Shelf;

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
    let shelf = app.door.shelf().clone();
    let pieces = pieces_of(&frozen);
    shelf.pin(&pieces);
    let states = write_states(app.door.info().cluster, frozen);
    let (sender, body) = Channel::<Bytes, Infallible>::new(PIECES_MAX);
    let standing = app.security.standing(&context.principal);
    tokio::spawn(async move {
        let mut reader = Reader(sender);
        let all = async {
            if reader.take_states(states).await && reader.take_pieces(&shelf, &pieces).await {
                reader.take(write_end()).await;
            }
        };
        // Without its end it is no backup, and nobody takes it for one.
        tokio::select! {
            () = all => {}
            () = standing.ended() => warn!("a backup was cut short: its token has ended"),
        }
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

/// Whoever wants the backup. Every `take` says whether it still does.
struct Reader(Sender<Bytes, Infallible>);

impl Reader {
    async fn take(&mut self, bytes: impl Into<Bytes>) -> bool {
        let sent = self.0.send_data(bytes.into());
        matches!(tokio::time::timeout(READER_PATIENCE, sent).await, Ok(Ok(())))
    }

    /// The states; each chunk is made off the sockets' threads.
    async fn take_states(
        &mut self,
        mut chunks: impl Iterator<Item = Vec<u8>> + Send + 'static,
    ) -> bool {
        loop {
            let made = tokio::task::spawn_blocking(move || (chunks.next(), chunks)).await;
            let Ok((chunk, rest)) = made else { return false };
            let Some(chunk) = chunk else { return true };
            chunks = rest;
            if !self.take(chunk).await {
                return false;
            }
        }
    }

    /// The bytes of objects, one piece at a time, from wherever they are.
    async fn take_pieces(&mut self, shelf: &Shelf, pieces: &[Digest]) -> bool {
        for digest in pieces {
            let bytes = match shelf.fetch(*digest, false).await {
                Ok(bytes) => bytes,
                Err(error) => {
                    warn!(%error, "a backup cannot be made whole");
                    self.take(write_trouble(&error.to_string())).await;
                    return false;
                }
            };
            let is_wanted = self.take(write_piece_head(digest, bytes.len())).await;
            if !is_wanted || !self.take(bytes).await {
                return false;
            }
        }
        true
    }
}
