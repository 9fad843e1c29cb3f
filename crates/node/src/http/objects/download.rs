//! `GET` and `HEAD /v1/objects/{bucket}/{key}`: the bytes of an object, or a part of them.
//!
//! The name is looked up as freshly as the caller asks; its bytes cannot be out of date, since they are named by their
//! digests. Should a piece be lost in mid-stream, the connection is cut: a short answer never passes for a whole one.

use std::convert::Infallible;

use bytes::Bytes;
use http_body_util::channel::{Channel, Sender};
use http_body_util::{BodyExt, Empty};
use hyper::header::{
    CACHE_CONTROL, CONTENT_LENGTH, CONTENT_RANGE, HeaderValue, IF_MATCH, IF_NONE_MATCH,
};
use hyper::http::request::Parts;
use hyper::{Method, Response, StatusCode};
use ikada_api::state::limits::OBJECT_CHUNK_BYTES;
use ikada_api::state::{Digest, ObjectVersion};
use ikada_api::v1::{Number, ObjectPieces};
use ikada_replica::call::{Query, View};

use super::name::{object_key, version};
use super::outgoing::Outgoing;
use super::precondition::tags;
use super::range::{Span, span};
use super::show::add_headers;
use crate::admission::Lane;
use crate::config::CACHED_PIECES_MAX;
use crate::http::answer::{Reply, Stop};
use crate::http::app::App;
use crate::http::dispatch::mismatch;
use crate::http::door::Door;
use crate::http::problems;
use crate::http::request::Context;
use crate::http::requests::{Seen, label, read, show_view};
use crate::objects::Shelf;

/// Pieces that wait for a slow reader.
const PIECES_MAX: usize = 2;
/// Most pieces whose digests are told at once: 16 GiB of bytes, a megabyte of digests.
const PIECES_SHOWN_MAX: usize = 16 << 10;

pub(in crate::http) async fn download<D: Door>(
    app: &App<D>,
    context: &Context,
    parts: &Parts,
) -> Result<Reply, Stop> {
    let key = object_key(context)?;
    let wanted = version(context)?;
    let shown = format!("{}/{}", key.1, key.2);
    let seen = read(app, context, Query::Object(key)).await?;
    let View::Object(object) = &seen.view else {
        return Err(mismatch("get object"));
    };
    let Some(found) = object.as_ref().and_then(|object| object.version(wanted)) else {
        return Err(problems::not_found("object_not_found", "object", &shown).into());
    };
    if tags(&parts.headers, &IF_MATCH)?.is_some_and(|tags| !tags.hold(&found.digest)) {
        return Err(problems::refusal(ikada_api::state::RefusalCode::PreconditionFailed).into());
    }
    if tags(&parts.headers, &IF_NONE_MATCH)?.is_some_and(|tags| tags.hold(&found.digest)) {
        return Ok(bare(StatusCode::NOT_MODIFIED, context, &seen, found));
    }
    if context.query_as("pieces", "must be true or false")?.unwrap_or(false) {
        return pieces(app, context, &seen, found);
    }
    let (status, from, to) = match span(&parts.headers, found.size, &found.digest) {
        Span::Whole => (StatusCode::OK, 0, found.size),
        Span::Part(from, to) => (StatusCode::PARTIAL_CONTENT, from, to),
        Span::Beyond => {
            let mut response = bare(StatusCode::RANGE_NOT_SATISFIABLE, context, &seen, found);
            set(&mut response, CONTENT_RANGE, &format!("bytes */{}", found.size));
            return Ok(response);
        }
    };
    let mut response = bare(status, context, &seen, found);
    if status == StatusCode::PARTIAL_CONTENT {
        let range = format!("bytes {from}-{}/{}", to - 1, found.size);
        set(&mut response, CONTENT_RANGE, &range);
    }
    set(&mut response, CONTENT_LENGTH, &(to - from).to_string());
    if parts.method != Method::HEAD && from < to {
        *response.body_mut() = stream(app, context, found, from, to).await?;
    }
    Ok(response)
}

/// Where the bytes of a version are. They stay for the grace time, so that whoever reads them elsewhere finds them.
fn pieces<D: Door>(
    app: &App<D>,
    context: &Context,
    seen: &Seen,
    found: &ObjectVersion,
) -> Result<Reply, Stop> {
    if found.chunks.len() > PIECES_SHOWN_MAX {
        let rule = "is for objects of fewer pieces";
        return Err(problems::bad_parameter("pieces", rule).into());
    }
    app.door.shelf().pin(&found.chunks);
    let pieces = ObjectPieces {
        version: Number(found.version),
        size: found.size,
        digest: found.digest.to_string(),
        piece_bytes: OBJECT_CHUNK_BYTES,
        pieces: found.chunks.iter().map(ToString::to_string).collect(),
    };
    show_view(context, seen, &pieces)
}

/// A response about a version, without its bytes.
fn bare(status: StatusCode, context: &Context, seen: &Seen, found: &ObjectVersion) -> Reply {
    let mut response = Response::new(Empty::new().boxed());
    *response.status_mut() = status;
    add_headers(response.headers_mut(), found);
    // May be kept by whoever asks again with the tag.
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    let nosniff = HeaderValue::from_static("nosniff");
    response.headers_mut().insert("x-content-type-options", nosniff);
    label(&mut response, context, seen);
    response
}

fn set(response: &mut Reply, name: hyper::header::HeaderName, text: &str) {
    if let Ok(value) = HeaderValue::from_str(text) {
        response.headers_mut().insert(name, value);
    }
}

/// The bytes in a span. The first piece is there before anything is promised.
async fn stream<D: Door>(
    app: &App<D>,
    context: &Context,
    found: &ObjectVersion,
    from: u64,
    to: u64,
) -> Result<crate::http::answer::ReplyBody, Stop> {
    let place = app.transfer(Lane::Download, context).await?;
    let standing = app.security.standing(&context.principal);
    let shelf = app.door.shelf().clone();
    let (first, last) =
        ((from / OBJECT_CHUNK_BYTES) as usize, ((to - 1) / OBJECT_CHUNK_BYTES) as usize);
    let wanted: Vec<Digest> = found.chunks.get(first..=last).unwrap_or_default().to_vec();
    // Somebody may remove the object while it is being read.
    shelf.pin(&wanted);
    let keep = wanted.len() <= CACHED_PIECES_MAX;
    let Some(digest) = wanted.first() else { return Err(mismatch("get object")) };
    if !shelf.in_memory(digest) {
        app.admit_miss()?;
    }
    let piece =
        shelf.fetch(*digest, keep).await.map_err(|error| problems::piece_missing(&error))?;
    let begin = (from % OBJECT_CHUNK_BYTES) as usize;
    if wanted.len() == 1 {
        let end = begin + (to - from) as usize;
        let part = piece.get(begin..end).map(|_| piece.slice(begin..end));
        let part = part.ok_or_else(|| mismatch("get object"))?;
        return Ok(Outgoing { part, rest: None, _place: place, standing }.boxed());
    }
    let (sender, rest) = Channel::<Bytes, Infallible>::new(PIECES_MAX);
    tokio::spawn(async move {
        let piece = piece.slice(begin.min(piece.len())..);
        feed(shelf, wanted, piece, to - from, sender).await;
    });
    Ok(Outgoing { part: Bytes::new(), rest: Some(rest), _place: place, standing }.boxed())
}

/// Sends pieces in order until the reader leaves or a piece cannot be had. An early end is seen by the reader, since the
/// length was announced. Whoever takes nothing loses its connection (`outflow.rs`), and the receiver goes with it.
async fn feed(
    shelf: Shelf,
    wanted: Vec<Digest>,
    first: Bytes,
    mut left: u64,
    mut sender: Sender<Bytes, Infallible>,
) {
    let keep = wanted.len() <= CACHED_PIECES_MAX;
    let mut next = Some(first);
    for digest in wanted {
        let piece = match next.take() {
            Some(piece) => piece,
            None => match shelf.fetch(digest, keep).await {
                Ok(piece) => piece,
                Err(error) => {
                    tracing::warn!(%error, "a download was cut short");
                    return;
                }
            },
        };
        let length = left.min(piece.len() as u64);
        left -= length;
        if sender.send_data(piece.slice(..length as usize)).await.is_err() {
            return;
        }
    }
}
