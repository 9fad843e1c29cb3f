//! Role changes as they happen, over whichever node answers.
//!
//! Promises: a stream that breaks off is gone on with on the next node, from the last event; what may be missing in
//! between is told by [`Heard::Source`], never left out in silence. It leaves out trying for ever: a caller who gets
//! [`Error::Unavailable`] may ask again, and the place is kept.

use std::sync::atomic::Ordering;
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, HeaderValue};
use tokio::time::Instant;

use super::backoff::Backoff;
use super::retry::{Next, Try, decide};
use super::send::{Ask, innermost};
use super::url::{unique_bits, with_query};
use super::{Client, Error};
use crate::problem::Problem;
use crate::v1::{EventSource, EventView};

/// A node says that it lives every 15 s; one that is silent for longer has gone.
const SILENCE: Duration = Duration::from_secs(40);
/// What is asked for.
const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");
/// Longest event or problem.
const EVENT_BYTES_MAX: usize = 1 << 20;

/// What a stream of role changes tells.
#[derive(Debug, Clone)]
pub enum Heard {
    /// Whose changes follow, and what is missing before them.
    Source(EventSource),
    /// One change.
    Change(Box<EventView>),
}

/// Role changes as they happen.
#[derive(Debug)]
pub struct EventStream {
    client: Client,
    after: u64,
    /// The id of the last event.
    last: Option<String>,
    body: Option<Incoming>,
    rest: Vec<u8>,
}

impl Client {
    /// Follows role changes with a sequence above `after`, beginning at the node that answers first.
    pub fn follow_events(&self, after: u64) -> EventStream {
        EventStream { client: self.clone(), after, last: None, body: None, rest: Vec::new() }
    }
}

impl EventStream {
    /// The next word. When no node answers for the client's timeout this is [`Error::Unavailable`]; asking again goes on.
    pub async fn next(&mut self) -> Result<Heard, Error> {
        let mut backoff = Backoff::new(unique_bits());
        let mut deadline = None;
        loop {
            if let Some(heard) = self.take_event()? {
                return Ok(heard);
            }
            let Some(broken) = self.read_more().await? else { continue };
            self.drop_stream();
            let timeout = self.client.inner.options.timeout;
            let deadline = *deadline.get_or_insert_with(|| Instant::now() + timeout);
            let pause = backoff.next(None);
            if Instant::now() + pause >= deadline {
                return Err(Error::Unavailable { detail: broken });
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// Forgets a stream that broke off; the next one is another node's.
    fn drop_stream(&mut self) {
        (self.body, self.rest) = (None, Vec::new());
        self.client.inner.current.fetch_add(1, Ordering::Relaxed);
    }

    /// Reads from the stream, opening one first; says why if that fails.
    async fn read_more(&mut self) -> Result<Option<String>, Error> {
        let Some(body) = &mut self.body else {
            return self.open().await;
        };
        let frame = match tokio::time::timeout(SILENCE, body.frame()).await {
            Err(_) => return Ok(Some("the node has fallen silent".to_owned())),
            Ok(None) => return Ok(Some("the node ended the stream".to_owned())),
            Ok(Some(Err(error))) => return Ok(Some(innermost(&error))),
            Ok(Some(Ok(frame))) => frame,
        };
        if let Ok(bytes) = frame.into_data() {
            self.rest.extend_from_slice(&bytes);
        }
        Ok(None)
    }

    async fn open(&mut self) -> Result<Option<String>, Error> {
        let inner = self.client.inner.clone();
        let node = inner.current.load(Ordering::Relaxed) % inner.urls.len();
        let limit = inner.options.attempt_timeout.min(inner.options.timeout);
        let path = with_query("/v1/cluster/events", &[("after", self.after.to_string())]);
        let mut request = match self.client.build(&Ask::get(path), node, limit) {
            Ok(request) => request,
            Err(detail) => return Err(Error::Protocol { detail }),
        };
        request.headers_mut().insert(ACCEPT, EVENT_STREAM);
        if let Some(last) = self.last.as_deref().and_then(|last| last.parse().ok()) {
            request.headers_mut().insert("last-event-id", last);
        }
        inner.tries.fetch_add(1, Ordering::Relaxed);
        let url = &inner.urls[node];
        let response = match tokio::time::timeout(limit, inner.http.request(request)).await {
            Err(_) => return Ok(Some(format!("{url}: no answer in time"))),
            Ok(Err(error)) => return Ok(Some(format!("{url}: {}", innermost(&error)))),
            Ok(Ok(response)) => response,
        };
        let status = response.status();
        if status.is_success() {
            self.body = Some(response.into_body());
            return Ok(None);
        }
        let body = http_body_util::Limited::new(response.into_body(), EVENT_BYTES_MAX);
        let said = match tokio::time::timeout(limit, body.collect()).await {
            Ok(Ok(said)) => said.to_bytes(),
            _ => return Ok(Some(format!("{url}: broke off"))),
        };
        let problem = serde_json::from_slice::<Problem>(&said).ok().map(Box::new);
        let answer = Try::Answer { status: status.as_u16(), problem, retry_after: None };
        match decide(answer) {
            Next::Refuse(problem) => Err(Error::Refused(problem)),
            Next::Again { detail, .. } => Ok(Some(format!("{url}: {detail}"))),
            Next::Accept => Ok(Some(format!("{url}: no stream"))),
        }
    }

    /// Takes the next whole event out of what was read.
    fn take_event(&mut self) -> Result<Option<Heard>, Error> {
        loop {
            let Some(end) = self.rest.windows(2).position(|pair| pair == b"\n\n") else {
                let is_long = self.rest.len() > EVENT_BYTES_MAX;
                let detail = "an event without an end".to_owned();
                return if is_long { Err(Error::Protocol { detail }) } else { Ok(None) };
            };
            let piece: Vec<u8> = self.rest.drain(..end + 2).collect();
            let piece = String::from_utf8_lossy(&piece);
            let field = |name: &str| {
                piece.lines().find_map(|line| line.strip_prefix(name)).map(|text| text.trim_start())
            };
            if let Some(id) = field("id:") {
                self.last = Some(id.to_owned());
            }
            let Some(data) = field("data:") else { continue };
            let bad = |error: serde_json::Error| Error::Protocol { detail: error.to_string() };
            return match field("event:") {
                Some("role") => Ok(Some(Heard::Change(serde_json::from_str(data).map_err(bad)?))),
                Some("source") => Ok(Some(Heard::Source(serde_json::from_str(data).map_err(bad)?))),
                // Words of a newer node.
                _ => continue,
            };
        }
    }
}
