//! Signs and sends one request to an object store until it is answered for good.
//!
//! What a store or the way to it may get over (no connection, no answer, 429, 5xx) is tried again with growing waits;
//! what it refuses is told in its own words.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_RANGE, ETAG, HOST, HeaderMap, HeaderName, HeaderValue, RANGE};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use super::escape::{encode, encode_path};
use super::place::StorePlace;
use super::settings::{BadSettings, StoreRight, StoreSettings};
use super::sign::{digest_of, sign_request};
use super::xml;
use crate::client::{
    Backoff, Connector, TrustedAuthority, innermost, read_retry_after, unique_bits,
};

/// Tries of one request; the waits between them add up to some four seconds.
const TRIES_MAX: u32 = 5;
/// The first wait; it doubles.
const WAIT_FIRST: Duration = Duration::from_millis(250);
/// How long a connection may take to come about.
const CONNECT_PATIENCE: Duration = Duration::from_secs(10);
/// How long one try may take: a part over a slow line, or a store that puts many parts together.
const TRY_PATIENCE: Duration = Duration::from_secs(300);
/// Largest answer that is read at once: words about one object.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// Why a store did not do what was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// No answer, or one that says "later", however often it was asked.
    #[error("{endpoint} cannot be reached or does not answer: {detail}")]
    Unavailable {
        /// Who was asked.
        endpoint: String,
        /// What was met last.
        detail: String,
    },
    /// It decided against it.
    #[error("{endpoint} refuses: {code}: {detail}")]
    Refused {
        /// Who was asked.
        endpoint: String,
        /// The status of its answer.
        status: u16,
        /// The protocol's word for it.
        code: String,
        /// What it said.
        detail: String,
        /// The how manieth try this answers: an earlier one may have been carried out.
        tries: u32,
    },
}

impl StoreError {
    /// Whether the key is good, but not for this.
    pub fn is_denied(&self) -> bool {
        let words = ["AccessDenied", "AuthorizationPermissionMismatch"];
        matches!(self, StoreError::Refused { status: 403, code, .. } if words.contains(&code.as_str()))
    }

    /// Whether there is no such object.
    fn is_missing(&self) -> bool {
        self.has_code("NoSuchKey") || self.has_code("BlobNotFound")
    }

    fn of_try(mut self, number: u32) -> StoreError {
        if let StoreError::Refused { tries, .. } = &mut self {
            *tries = number;
        }
        self
    }

    pub(super) fn has_code(&self, wanted: &str) -> bool {
        matches!(self, StoreError::Refused { code, .. } if code == wanted)
    }
}

/// What a store knows of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// Its length in bytes.
    pub size: u64,
    /// The mark of this version of it, if the store gives one.
    pub tag: Option<HeaderValue>,
}

/// A store; clones share connections.
#[derive(Clone)]
pub struct Store {
    settings: Arc<StoreSettings>,
    http: legacy::Client<Connector, Full<Bytes>>,
}

/// One request.
#[derive(Debug, Clone)]
pub(super) struct Ask<'a> {
    pub(super) method: Method,
    pub(super) place: &'a StorePlace,
    pub(super) query: Vec<(&'static str, String)>,
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    pub(super) body: Bytes,
}

/// An answer, read to its end.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) headers: HeaderMap,
    pub(super) text: String,
}

/// What became of one try.
enum Tried<T> {
    Done(T),
    Later { detail: String, after: Option<Duration> },
    Refused(StoreError),
}

impl<'a> Ask<'a> {
    pub(super) fn new(method: Method, place: &'a StorePlace) -> Ask<'a> {
        Ask { method, place, query: Vec::new(), headers: Vec::new(), body: Bytes::new() }
    }
}

impl Store {
    /// A store with these settings. Nothing is sent yet.
    pub fn new(settings: StoreSettings) -> Result<Store, BadSettings> {
        let authority = match (settings.endpoint.is_secure(), &settings.authorities_file) {
            (false, _) => None,
            (true, None) => Some(TrustedAuthority::of_system()),
            (true, Some(file)) => Some(match std::fs::read(file) {
                Ok(pem) => TrustedAuthority::from_pem(&pem),
                Err(error) => return Err(BadSettings(vec![format!("AWS_CA_BUNDLE: {error}")])),
            }),
        };
        let authority = authority.transpose();
        let authority = authority.map_err(|error| BadSettings(vec![error.to_string()]))?;
        let http = legacy::Client::builder(TokioExecutor::new())
            .pool_idle_timeout(Duration::from_secs(5))
            .pool_timer(TokioTimer::new())
            .build(Connector::new(authority, CONNECT_PATIENCE));
        Ok(Store { settings: Arc::new(settings), http })
    }

    /// What the store knows of an object; none if there is none.
    pub async fn look(&self, place: &StorePlace) -> Result<Option<Facts>, StoreError> {
        // One byte of it instead of its head alone: answers to HEAD cannot say what is wrong.
        let mut ask = Ask::new(Method::GET, place);
        ask.headers.push((RANGE, HeaderValue::from_static("bytes=0-0")));
        match self.send(&ask).await {
            Ok(answer) => {
                let range = answer.headers.get(CONTENT_RANGE);
                let total = range.and_then(|range| range.to_str().ok()?.rsplit('/').next());
                let size = match total.map(str::parse) {
                    Some(Ok(size)) => size,
                    // It gave the whole instead of the range.
                    _ => answer.text.len() as u64,
                };
                Ok(Some(Facts { size, tag: answer.headers.get(ETAG).cloned() }))
            }
            Err(StoreError::Refused { status: 416, .. }) => Ok(Some(Facts { size: 0, tag: None })),
            Err(error) if error.is_missing() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Sends until it is answered for good, and reads the answer.
    pub(super) async fn send(&self, ask: &Ask<'_>) -> Result<Answer, StoreError> {
        self.persist(ask, async |response| {
            let (parts, body) = response.into_parts();
            let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
            let body = body.map_err(|error| error.to_string())?.to_bytes();
            let text = String::from_utf8_lossy(&body).into_owned();
            Ok(Answer { headers: parts.headers, text })
        })
        .await
    }

    /// Sends until it is answered for good; the body of the answer is left to the caller.
    pub(super) async fn open(&self, ask: &Ask<'_>) -> Result<Response<Incoming>, StoreError> {
        self.persist(ask, async |response| Ok(response)).await
    }

    async fn persist<T>(
        &self,
        ask: &Ask<'_>,
        read: impl AsyncFn(Response<Incoming>) -> Result<T, String>,
    ) -> Result<T, StoreError> {
        let digest = digest_of(&ask.body);
        let mut backoff = Backoff::new(unique_bits());
        for tried in 1.. {
            let outcome = self.try_once(ask, &digest, &read).await;
            let (detail, after) = match outcome {
                Tried::Done(answer) => return Ok(answer),
                Tried::Refused(error) => return Err(error.of_try(tried)),
                Tried::Later { detail, after } => (detail, after),
            };
            if tried == TRIES_MAX {
                return Err(self.unavailable(detail));
            }
            let wait = WAIT_FIRST * (1 << (tried - 1));
            tokio::time::sleep(backoff.next(Some(after.unwrap_or(wait)))).await;
        }
        Err(self.unavailable("never asked".to_owned()))
    }

    pub(super) fn unavailable(&self, detail: String) -> StoreError {
        StoreError::Unavailable { endpoint: self.settings.endpoint.to_string(), detail }
    }

    pub(super) fn refused(&self, status: u16, code: &str, detail: String) -> StoreError {
        let endpoint = self.settings.endpoint.to_string();
        StoreError::Refused { endpoint, status, code: code.to_owned(), detail, tries: 1 }
    }

    async fn try_once<T>(
        &self,
        ask: &Ask<'_>,
        digest: &str,
        read: &impl AsyncFn(Response<Incoming>) -> Result<T, String>,
    ) -> Tried<T> {
        let request = match self.build(ask, digest) {
            Ok(request) => request,
            Err(detail) => return Tried::Refused(self.refused(0, "not sent", detail)),
        };
        let exchange = async {
            let later = |detail: String| Tried::Later { detail, after: None };
            let response = match self.http.request(request).await {
                Ok(response) => response,
                Err(error) => return later(innermost(&error)),
            };
            let status = response.status();
            if !status.is_success() {
                return self.judge(status, response).await;
            }
            read(response).await.map_or_else(later, Tried::Done)
        };
        tokio::time::timeout(TRY_PATIENCE, exchange).await.unwrap_or_else(|_| {
            let detail = format!("no answer within {} s", TRY_PATIENCE.as_secs());
            Tried::Later { detail, after: None }
        })
    }

    /// The whole address of what is asked for.
    fn address(&self, ask: &Ask<'_>) -> String {
        let (settings, place) = (&self.settings, ask.place);
        let mut uri = format!("{}{}/{}", settings.endpoint, settings.path, place.bucket);
        let account = match &settings.right {
            StoreRight::Amazon { .. } => None,
            StoreRight::Azure(account) => Some(account),
        };
        // Azure's containers have no slash at their end; S3's buckets may have one.
        if account.is_none() || !place.key.is_empty() {
            uri.push('/');
            uri.push_str(&encode_path(place.key.as_bytes()));
        }
        let named = ask.query.iter().map(|(name, value)| {
            let value = encode(value.as_bytes());
            format!("{name}={value}")
        });
        let given = account.and_then(|account| account.parameters()).map(str::to_owned);
        for (position, parameter) in named.chain(given).enumerate() {
            uri.push(if position == 0 { '?' } else { '&' });
            uri.push_str(&parameter);
        }
        uri
    }

    fn build(&self, ask: &Ask<'_>, digest: &str) -> Result<Request<Full<Bytes>>, String> {
        let endpoint = self.settings.endpoint.as_str();
        let host = endpoint.split_once("://").map_or(endpoint, |(_, host)| host);
        let uri = self.address(ask);
        let mut request = Request::builder().method(&ask.method).uri(uri).header(HOST, host);
        for (name, value) in &ask.headers {
            request = request.header(name, value);
        }
        let request = request.body(()).map_err(|error| error.to_string())?;
        let (mut parts, ()): (Parts, ()) = request.into_parts();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now_ms = now.as_millis() as u64;
        let signed = match &self.settings.right {
            StoreRight::Amazon { region, credentials } => {
                sign_request(&mut parts, credentials, region, digest, now_ms)
            }
            StoreRight::Azure(account) => account.sign(&mut parts, ask.body.len(), now_ms),
        };
        signed.map_err(|what| format!("{what} cannot stand in a header"))?;
        Ok(Request::from_parts(parts, Full::new(ask.body.clone())))
    }

    /// Reads an answer that is not a success.
    async fn judge<T>(&self, status: StatusCode, response: Response<Incoming>) -> Tried<T> {
        let after = read_retry_after(response.headers());
        let region = response.headers().get("x-amz-bucket-region").cloned();
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
        let body = body.map(|body| body.to_bytes()).unwrap_or_default();
        let (code, mut detail) = read_error(&String::from_utf8_lossy(&body));
        let code = code.unwrap_or_else(|| status.to_string());
        if is_passing(status.as_u16(), &code) {
            return Tried::Later { detail: format!("{code}: {detail}"), after };
        }
        if let Some(region) = region.as_ref().and_then(|region| region.to_str().ok())
            && let StoreRight::Amazon { region: signed, .. } = &self.settings.right
            && region != signed
        {
            detail.push_str(&format!("; the bucket is in {region}: set AWS_REGION"));
        }
        Tried::Refused(self.refused(status.as_u16(), &code, detail))
    }
}

/// Whether the same request may succeed later.
fn is_passing(status: u16, code: &str) -> bool {
    matches!(status, 408 | 429 | 500 | 502 | 503 | 504)
        || ["RequestTimeout", "SlowDown", "InternalError", "ServerBusy"].contains(&code)
}

/// The protocol's word for a failure, and the first line of its text.
pub(super) fn read_error(document: &str) -> (Option<String>, String) {
    let first =
        |text: String| text.lines().next().unwrap_or("").chars().take(300).collect::<String>();
    let text = |name: &str| xml::first(document, name).map(first);
    (text("Code"), text("Message").unwrap_or_else(|| "no further word".to_owned()))
}

impl std::fmt::Debug for Store {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Store").field("settings", &self.settings).finish_non_exhaustive()
    }
}
