//! A stream of events from whichever node answers.
//!
//! Promises: a stream that breaks off is gone on with on the next node, from the last event. It leaves out trying for
//! ever: a caller who gets [`Error::Unavailable`] may ask again, and the place is kept.

use std::sync::atomic::Ordering;
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, HeaderValue};
use tokio::time::Instant;

use super::backoff::Backoff;
use super::retry::{Met, Next, Try, decide};
use super::send::{Ask, innermost, read_retry_after};
use super::url::unique_bits;
use super::{Client, Error};
use crate::problem::Problem;

/// A node says that it lives every 15 s; one that is silent for longer has gone.
const SILENCE: Duration = Duration::from_secs(40);
/// What is asked for.
const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");
/// Longest event or problem.
const EVENT_BYTES_MAX: usize = 1 << 20;

/// One event.
#[derive(Debug)]
pub(super) struct Event {
    /// What it is about.
    pub(super) kind: String,
    /// A JSON document.
    pub(super) data: String,
}

impl Event {
    /// The document, read.
    pub(super) fn read<T: serde::de::DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_str(&self.data)
            .map_err(|error| Error::Protocol { detail: error.to_string() })
    }
}

/// A stream of events.
#[derive(Debug)]
pub(super) struct Feed {
    client: Client,
    path: String,
    /// The id of the last event.
    last: Option<String>,
    body: Option<Incoming>,
    rest: Vec<u8>,
}

impl Feed {
    /// The stream at this path.
    pub(super) fn new(client: Client, path: String) -> Feed {
        Feed { client, path, last: None, body: None, rest: Vec::new() }
    }

    /// The next event. When no node answers for the client's timeout this is [`Error::Unavailable`]; asking again goes on.
    pub(super) async fn next(&mut self) -> Result<Event, Error> {
        let mut backoff = Backoff::new(unique_bits());
        let mut deadline = None;
        loop {
            if let Some(event) = self.take_event()? {
                return Ok(event);
            }
            let Some(broken) = self.read_more().await? else { continue };
            self.drop_stream();
            let timeout = self.client.inner.options.timeout;
            let deadline = *deadline.get_or_insert_with(|| Instant::now() + timeout);
            let pause = backoff.next(None);
            if Instant::now() + pause >= deadline {
                return Err(broken.unavailable());
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
    async fn read_more(&mut self) -> Result<Option<Met>, Error> {
        let Some(body) = &mut self.body else {
            return self.open().await;
        };
        let frame = match tokio::time::timeout(SILENCE, body.frame()).await {
            Err(_) => return Ok(Some("the node has fallen silent".into())),
            Ok(None) => return Ok(Some("the node ended the stream".into())),
            Ok(Some(Err(error))) => return Ok(Some(innermost(&error).into())),
            Ok(Some(Ok(frame))) => frame,
        };
        if let Ok(bytes) = frame.into_data() {
            self.rest.extend_from_slice(&bytes);
        }
        Ok(None)
    }

    async fn open(&mut self) -> Result<Option<Met>, Error> {
        let inner = self.client.inner.clone();
        let node = inner.current.load(Ordering::Relaxed) % inner.urls.len();
        let limit = inner.options.attempt_timeout.min(inner.options.timeout);
        let mut request = match self.client.build(&Ask::get(self.path.clone()), node, limit) {
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
            Err(_) => return Ok(Some(format!("{url}: no answer in time").into())),
            Ok(Err(error)) => return Ok(Some(format!("{url}: {}", innermost(&error)).into())),
            Ok(Ok(response)) => response,
        };
        let status = response.status();
        if status.is_success() {
            self.body = Some(response.into_body());
            return Ok(None);
        }
        let retry_after = read_retry_after(response.headers());
        let body = http_body_util::Limited::new(response.into_body(), EVENT_BYTES_MAX);
        let said = match tokio::time::timeout(limit, body.collect()).await {
            Ok(Ok(said)) => said.to_bytes(),
            _ => return Ok(Some(format!("{url}: broke off").into())),
        };
        let problem = serde_json::from_slice::<Problem>(&said).ok().map(Box::new);
        let answer = Try::Answer { status: status.as_u16(), problem, retry_after };
        match decide(answer) {
            Next::Refuse(problem) => Err(Error::Refused(problem)),
            Next::Again { met, .. } => {
                Ok(Some(Met { detail: format!("{url}: {}", met.detail), ..met }))
            }
            Next::Accept => Ok(Some(format!("{url}: no stream").into())),
        }
    }

    /// Takes the next whole event out of what was read.
    fn take_event(&mut self) -> Result<Option<Event>, Error> {
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
            if let (Some(kind), Some(data)) = (field("event:"), field("data:")) {
                return Ok(Some(Event { kind: kind.to_owned(), data: data.to_owned() }));
            }
        }
    }
}
