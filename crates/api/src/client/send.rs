//! Sends one request until it is settled or the time is over.

use std::sync::atomic::Ordering;
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use hyper::{Method, Request};
use tokio::time::Instant;

use super::backoff::Backoff;
use super::pipe::Answered;
use super::retry::{Met, Next, Try, decide};
use super::url::unique_bits;
use super::{Client, Error, SentBody};
use crate::cbor;
use crate::convert::Form;
use crate::pipe::{PipeAsk, PipeVerb};
use crate::problem::Problem;
use crate::v1::{IDEMPOTENCY_KEY, NAMESPACE_HEADER, TIMEOUT_HEADER};

/// Largest answer that is read; a page of tasks with large payloads stays below.
const ANSWER_BYTES_MAX: usize = 64 << 20;
/// The server gets a little less time than we wait, so that its own word arrives before we give up.
const ANSWER_MARGIN: Duration = Duration::from_millis(100);

/// One request.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    pub(crate) method: Method,
    /// Path and query.
    pub(crate) path: String,
    pub(crate) body: Option<Bytes>,
    /// The request id of a write; absent for reads and for what is idempotent by itself.
    pub(crate) key: Option<String>,
    /// Extra time that the server may hold the request on purpose (long poll).
    pub(crate) hold: Duration,
    /// The form of the body and of the answer.
    pub(crate) form: Form,
    /// Whether it may travel on a pipe.
    pub(crate) piped: bool,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) form: Form,
}

impl Ask {
    pub(crate) fn get(path: String) -> Ask {
        Ask {
            method: Method::GET,
            path,
            body: None,
            key: None,
            hold: Duration::ZERO,
            form: Form::Json,
            piped: false,
        }
    }

    /// A request without a body that changes something.
    pub(crate) fn act(method: Method, path: String, key: Option<String>) -> Ask {
        Ask { method, path, body: None, key, hold: Duration::ZERO, form: Form::Json, piped: false }
    }

    /// A request with a JSON body.
    pub(crate) fn json<T: serde::Serialize>(
        method: Method,
        path: String,
        body: &T,
        key: Option<String>,
    ) -> Result<Ask, Error> {
        let body = serde_json::to_vec(body)
            .map_err(|error| Error::Protocol { detail: format!("request body: {error}") })?;
        let (body, hold) = (Some(Bytes::from(body)), Duration::ZERO);
        Ok(Ask { method, path, body, key, hold, form: Form::Json, piped: false })
    }

    /// A call of the hot path: CBOR, over a pipe if there is one.
    pub(crate) fn hot<T: serde::Serialize>(
        path: &str,
        body: &T,
        key: Option<String>,
    ) -> Result<Ask, Error> {
        let body = cbor::to_vec(body)
            .map_err(|error| Error::Protocol { detail: format!("request body: {error}") })?;
        let (body, hold) = (Some(Bytes::from(body)), Duration::ZERO);
        Ok(Ask {
            method: Method::POST,
            path: path.to_owned(),
            body,
            key,
            hold,
            form: Form::Cbor,
            piped: true,
        })
    }

    fn is_write(&self) -> bool {
        !matches!(self.method, Method::GET | Method::HEAD)
    }
}

impl Client {
    /// Sends until settled, and reads the answer as JSON.
    pub(crate) async fn ask<T: serde::de::DeserializeOwned>(&self, ask: &Ask) -> Result<T, Error> {
        let answer = self.send(ask, self.deadline(ask)).await?;
        read_answer(&answer)
    }

    /// When an operation that begins now must be over.
    pub(crate) fn deadline(&self, ask: &Ask) -> Instant {
        Instant::now() + self.inner.options.timeout + ask.hold
    }

    /// Sends until settled or past the deadline.
    pub(crate) async fn send(&self, ask: &Ask, deadline: Instant) -> Result<Answer, Error> {
        let mut backoff = Backoff::new(unique_bits());
        let mut maybe_done = false;
        let mut failures = 0usize;
        loop {
            let node = self.inner.current.load(Ordering::Relaxed) % self.inner.urls.len();
            self.inner.tries.fetch_add(1, Ordering::Relaxed);
            let (outcome, answer) = self.try_once(ask, node, deadline).await;
            let (after, met) = match (decide(outcome), answer) {
                (Next::Accept, Some(answer)) => return Ok(answer),
                (Next::Accept, None) => (None, Met::from("no answer")),
                (Next::Refuse(problem), _) => return Err(Error::Refused(problem)),
                (Next::Again { maybe_done: effect, after, met }, _) => {
                    maybe_done |= effect;
                    (after, met)
                }
            };
            failures += 1;
            self.leave(node);
            // The other nodes are asked at once; a pause comes when all have failed.
            let round_over = failures.is_multiple_of(self.inner.urls.len());
            let pause = if round_over { backoff.next(after) } else { Duration::ZERO };
            if Instant::now() + pause >= deadline {
                return Err(give_up(ask, maybe_done, met));
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// Has calls from now on begin at the next node; whoever answers is kept (CH-2).
    pub(super) fn leave(&self, node: usize) {
        let next = (node + 1) % self.inner.urls.len();
        // Another call may have moved on already; never step over a node because of that.
        let (current, order) = (&self.inner.current, Ordering::Relaxed);
        let _ = current.compare_exchange(node, next, order, order);
    }

    /// One try on one node.
    async fn try_once(&self, ask: &Ask, node: usize, deadline: Instant) -> (Try, Option<Answer>) {
        let remaining = deadline.saturating_duration_since(Instant::now());
        let limit = if self.inner.urls.len() > 1 {
            remaining.min(self.inner.options.attempt_timeout + ask.hold)
        } else {
            remaining
        };
        match tokio::time::timeout(limit, self.try_pipe(ask, node, limit)).await {
            Ok(None) => {}
            Ok(Some(tried)) => return tried,
            Err(_) => {
                let detail =
                    format!("{}: no answer within {} ms", self.inner.urls[node], limit.as_millis());
                return (Try::NoAnswer(detail), None);
            }
        }
        let request = match self.build(ask, node, limit) {
            Ok(request) => request,
            Err(detail) => return (Try::NotSent(detail), None),
        };
        let url = &self.inner.urls[node];
        match tokio::time::timeout(limit, self.exchange(request)).await {
            Ok(Ok((outcome, answer))) => (outcome, answer),
            Ok(Err(Failure { sent: false, detail })) => {
                (Try::NotSent(format!("{url}: {detail}")), None)
            }
            Ok(Err(Failure { sent: true, detail })) => {
                (Try::NoAnswer(format!("{url}: {detail}")), None)
            }
            Err(_) => {
                let waited_ms = limit.as_millis();
                (Try::NoAnswer(format!("{url}: no answer within {waited_ms} ms")), None)
            }
        }
    }

    /// One try over a pipe; none if the call or the node is not for pipes.
    async fn try_pipe(
        &self,
        ask: &Ask,
        node: usize,
        limit: Duration,
    ) -> Option<(Try, Option<Answer>)> {
        if !self.inner.options.pipe || !ask.piped {
            return None;
        }
        let (verb, body) = (PipeVerb::of_path(&ask.path)?, ask.body.as_ref()?);
        let url = &self.inner.urls[node];
        let patience = limit.min(self.inner.options.attempt_timeout);
        let pipe =
            match self.inner.pipes.to(node, url, self.inner.options.token.as_ref(), patience).await
            {
                Ok(pipe) => pipe?,
                Err(detail) => return Some((Try::NotSent(format!("{url}: {detail}")), None)),
            };
        let answered = pipe.call(PipeAsk {
            call: 0,
            verb,
            timeout_ms: server_ms(limit) as u32,
            key: ask.key.as_deref(),
            namespace: self.inner.options.namespace.as_deref(),
            body: body.as_ref().into(),
        });
        Some(match answered.await {
            Ok(Answered { status, body }) if (200..300).contains(&status) => {
                let outcome = Try::Answer { status, problem: None, retry_after: None };
                (outcome, Some(Answer { headers: HeaderMap::new(), body, form: Form::Cbor }))
            }
            Ok(Answered { status, body }) => {
                let problem = cbor::from_slice::<Problem>(&body).ok().map(Box::new);
                let retry_after = problem.as_ref().and_then(|problem| problem.retry_after_s);
                let retry_after =
                    retry_after.filter(|s| *s > 0).map(|s| Duration::from_secs(s.into()));
                (Try::Answer { status, problem, retry_after }, None)
            }
            Err(false) => (Try::NotSent(format!("{url}: connection closed")), None),
            Err(true) => (Try::NoAnswer(format!("{url}: connection closed")), None),
        })
    }

    /// What every request begins with: where it goes, and who sends it.
    pub(super) fn head(
        &self,
        method: Method,
        path: &str,
        node: usize,
    ) -> Result<hyper::http::request::Builder, String> {
        let uri = format!("{}{path}", self.inner.urls[node]);
        let mut request = Request::builder().method(method).uri(uri);
        if let Some(namespace) = &self.inner.options.namespace {
            request = request.header(NAMESPACE_HEADER, namespace);
        }
        if let Some(token) = &self.inner.options.token {
            let mut value = HeaderValue::from_str(&token.bearer())
                .map_err(|_| "the token cannot stand in a header".to_owned())?;
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        Ok(request)
    }

    pub(super) fn build(
        &self,
        ask: &Ask,
        node: usize,
        limit: Duration,
    ) -> Result<Request<SentBody>, String> {
        let mut request = self
            .head(ask.method.clone(), &ask.path, node)?
            .header(TIMEOUT_HEADER, server_ms(limit).to_string());
        if let Some(key) = &ask.key {
            request = request.header(IDEMPOTENCY_KEY, key);
        }
        if ask.body.is_some() {
            let media_type = match ask.form {
                Form::Json => "application/json",
                Form::Cbor => cbor::CBOR_TYPE,
            };
            request = request.header(CONTENT_TYPE, HeaderValue::from_static(media_type));
        }
        let body = ask.body.clone().unwrap_or_default();
        let body = Full::new(body).map_err(|never| match never {}).boxed();
        request.body(body).map_err(|error| format!("request: {error}"))
    }

    pub(super) async fn exchange(
        &self,
        request: Request<SentBody>,
    ) -> Result<(Try, Option<Answer>), Failure> {
        let response =
            self.inner.http.request(request).await.map_err(|error| Failure {
                sent: !error.is_connect(),
                detail: innermost(&error),
            })?;
        let (parts, body) = response.into_parts();
        let body = Limited::new(body, ANSWER_BYTES_MAX)
            .collect()
            .await
            .map_err(|error| Failure { sent: true, detail: error.to_string() })?
            .to_bytes();
        let status = parts.status.as_u16();
        let is_cbor = parts.headers.get(CONTENT_TYPE).is_some_and(|given| given == cbor::CBOR_TYPE);
        let form = if is_cbor { Form::Cbor } else { Form::Json };
        if parts.status.is_success() {
            let outcome = Try::Answer { status, problem: None, retry_after: None };
            return Ok((outcome, Some(Answer { headers: parts.headers, body, form })));
        }
        let problem = match form {
            Form::Cbor => cbor::from_slice::<Problem>(&body).ok(),
            Form::Json => serde_json::from_slice::<Problem>(&body).ok(),
        };
        let problem = problem.map(Box::new);
        let retry_after = read_retry_after(&parts.headers);
        Ok((Try::Answer { status, problem, retry_after }, None))
    }
}

/// How long the server may take.
fn server_ms(limit: Duration) -> u64 {
    limit.saturating_sub(ANSWER_MARGIN).as_millis().clamp(1, 120_000) as u64
}

/// A try without an answer.
pub(super) struct Failure {
    pub(super) sent: bool,
    pub(super) detail: String,
}

fn give_up(ask: &Ask, maybe_done: bool, met: Met) -> Error {
    match (&ask.key, maybe_done && ask.is_write()) {
        (Some(request), true) => Error::Unknown { request: request.clone(), detail: met.detail },
        _ => met.unavailable(),
    }
}

/// The wait a server asks for; 0 stands for "soon", which our own backoff covers.
pub(crate) fn read_retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?;
    text.trim().parse().ok().filter(|seconds| *seconds > 0).map(Duration::from_secs)
}

/// The deepest cause says most: "connection refused" rather than "client error".
pub(crate) fn innermost(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

/// Reads an answer in the form it came in.
pub(crate) fn read_answer<T: serde::de::DeserializeOwned>(answer: &Answer) -> Result<T, Error> {
    match answer.form {
        Form::Json => read_json(&answer.body),
        Form::Cbor => cbor::from_slice(&answer.body)
            .map_err(|error| Error::Protocol { detail: error.to_string() }),
    }
}

/// Reads a JSON answer.
pub(crate) fn read_json<T: serde::de::DeserializeOwned>(body: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(body).map_err(|error| Error::Protocol { detail: error.to_string() })
}
