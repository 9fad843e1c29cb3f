//! What both client doors do around a call: the checks before it, its place in a lane, the count and the audit line
//! after it.
//!
//! Leaves out: who calls and what is answered, which each door has its own words for.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use hyper::header::{AUTHORIZATION, CONTENT_LENGTH, HeaderMap};
use hyper::http::request::Parts;
use hyper::{Method, Uri};
use ikada_api::Problem;
use ikada_api::state::limits::OBJECT_CHUNK_BYTES;

use super::answer::Reply;
use super::app::App;
use super::door::Door;
use super::guard::{Contained, check_origin};
use super::problems;
use super::security::Source;
use super::trace::Line;
use super::uploads::Unmeasured;
use crate::admission::Lane;

/// In the address of a call that S3 signed beforehand.
const PRESIGNED: &str = "X-Amz-Signature=";

/// Refuses what is wrong whoever calls: an address that is too long, a page of another site.
pub(super) fn check_head<D: Door>(app: &App<D>, parts: &Parts) -> Result<(), Problem> {
    let url_bytes = parts.uri.path_and_query().map_or(0, |path| path.as_str().len());
    if url_bytes > app.limits.url_bytes_max {
        return Err(problems::url_too_long(app.limits.url_bytes_max));
    }
    check_site(app, &parts.method, &parts.uri, &parts.headers, parts.extensions.get())
}

/// Refuses pages of other sites, and names that are not ours, and counts them.
pub(super) fn check_site<D>(
    app: &App<D>,
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
    source: Option<&Source>,
) -> Result<(), Problem> {
    // Where nobody is asked for proof, what looks like one proves nothing.
    let proved = app.security.gatekeeper.is_some()
        && (headers.contains_key(AUTHORIZATION)
            || source.is_some_and(|source| source.shown.is_some())
            || uri.query().is_some_and(|query| query.contains(PRESIGNED)));
    let checked = check_origin(method, headers, &app.hosts, proved);
    if checked.is_err() {
        app.counters.denied.fetch_add(1, Ordering::Relaxed);
    }
    checked
}

/// Runs a call; none if it panicked, which is counted.
pub(super) async fn contain<D, F: Future>(app: &App<D>, call: Pin<Box<F>>) -> Option<F::Output> {
    let outcome = Contained(call).await;
    if outcome.is_err() {
        app.counters.panics.fetch_add(1, Ordering::Relaxed);
    }
    outcome.ok()
}

/// When the body of a call had arrived: until then its sender was what it waited for, and not this node.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrived(Instant);

impl Arrived {
    pub(super) fn now() -> Arrived {
        Arrived(Instant::now())
    }

    /// An answer that says so.
    pub(super) fn mark(self, mut reply: Reply) -> Reply {
        reply.extensions_mut().insert(self);
        reply
    }
}

/// Serves a call in its lane: it has a place meanwhile, and the time it took counts for those to come.
pub(super) async fn in_lane<D, E, F>(
    app: &App<D>,
    lane: Lane,
    left: Option<Duration>,
    parts: &Parts,
    serve: impl FnOnce() -> F,
) -> Result<Reply, E>
where
    D: Door,
    E: From<Problem>,
    F: Future<Output = Result<Reply, E>>,
{
    let pieces = pieces(parts);
    // Times are known per piece, so a large upload needs as many of them (CH-21).
    let _place = app.admit(lane, left.map(|left| left / pieces))?;
    let (begun, alone) = (Instant::now(), app.rooms.under_way(lane) <= 1);
    let answered = serve().await;
    app.admission.settle(lane, 1);
    let counts = |reply: &Reply| {
        reply.status().is_success() && reply.extensions().get::<Unmeasured>().is_none()
    };
    // A claim waits for work, and a refusal is no service.
    if let Ok(reply) = &answered
        && lane != Lane::Claim
        && counts(reply)
    {
        let begun = reply.extensions().get::<Arrived>().map_or(begun, |arrived| arrived.0);
        let time = begun.elapsed();
        app.admission.took(lane, time / pieces);
        app.admission.waited(lane, time, alone);
    }
    answered
}

/// How many pieces an upload has by its own word: its time is counted and expected per piece.
fn pieces(parts: &Parts) -> u32 {
    let length = parts.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    let bytes = length.and_then(|length| length.parse::<u64>().ok()).unwrap_or(0);
    bytes.div_ceil(OBJECT_CHUNK_BYTES).clamp(1, u64::from(u32::MAX)) as u32
}

/// Counts an answer and writes it down.
pub(super) async fn finish<D: Door>(app: &App<D>, line: Line<'_, D>, response: &Reply) {
    let status = response.status().as_u16();
    app.counters.count(status);
    line.note_down(status).await;
}
