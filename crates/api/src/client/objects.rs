//! Objects: upload, download, list, remove. Bytes are streamed; nothing is held whole.
//!
//! An upload is sent again from its beginning, on another node, when it breaks off, as long as any other call would be; one request id makes that safe. A
//! download that breaks off can be continued by the caller with `from` and `if_match`.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use http_body_util::channel::{Channel, Sender};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    CONTENT_LENGTH, CONTENT_TYPE, ETAG, HeaderMap, IF_MATCH, IF_NONE_MATCH, RANGE,
};
use hyper::http::request::Builder;
use hyper::{Method, Request};

use super::backoff::Backoff;
use super::retry::{Met, Next, Try, decide};
use super::send::{Ask, Failure, innermost, read_answer, read_retry_after};
use super::url::{escape, unique_bits, unique_key, with_query};
use super::{Client, Error, SentBody};
use crate::problem::Problem;
use crate::v1::{
    BucketPage, IDEMPOTENCY_KEY, Number, OBJECT_DIGEST_HEADER, OBJECT_MODIFIED_HEADER,
    OBJECT_VERSION_HEADER, ObjectInfo, ObjectPage, ObjectPieces, ObjectRemoved, UploadInfo,
};

/// Bytes read from a file at one time.
const READ_BYTES: usize = 256 << 10;
/// Parts that wait for the connection.
const PARTS_MAX: usize = 4;
/// A transfer without any progress for this long is given up.
const STALL: Duration = Duration::from_secs(60);
/// Tries per node that an upload has at least, however long each takes.
const ROUNDS_MIN: usize = 3;
/// Longest problem document.
const PROBLEM_BYTES_MAX: usize = 64 << 10;

/// Where the bytes of an upload come from.
#[derive(Debug, Clone)]
pub enum ObjectSource {
    /// Memory.
    Bytes(Bytes),
    /// A file, read as it is sent.
    File(PathBuf),
    /// A file that only its owner knows to open.
    Open(Arc<dyn OpenSource>),
    /// Some bytes of another source.
    Part {
        /// The source.
        of: Box<ObjectSource>,
        /// Where they begin.
        from: u64,
        /// How many there are.
        length: u64,
    },
}

/// Opens a file for an upload, once for each try.
pub trait OpenSource: std::fmt::Debug + Send + Sync {
    /// The file, at its beginning.
    fn open(&self) -> io::Result<std::fs::File>;
}

/// How to upload; the default asks nothing.
#[derive(Debug, Clone, Default)]
pub struct PutOptions {
    /// What the bytes are.
    pub content_type: Option<String>,
    /// Only if there is no such object.
    pub if_absent: bool,
    /// Only if the newest version has this digest.
    pub if_match: Option<String>,
    /// Refuse the bytes unless they have this BLAKE3 digest.
    pub digest: Option<String>,
    /// Counts the bytes handed to the connection.
    pub progress: Option<Arc<AtomicU64>>,
}

/// How to download; the default gives the newest version, whole.
#[derive(Debug, Clone, Default)]
pub struct GetOptions {
    /// This version.
    pub version: Option<u64>,
    /// Leave out so many bytes at the beginning.
    pub from: u64,
    /// Only if the content has this digest.
    pub if_match: Option<String>,
    /// As fresh as this: a position that a write gave.
    pub min_lsn: Option<String>,
    /// Whatever the node has.
    pub stale: bool,
}

impl GetOptions {
    fn query(&self) -> Vec<(&'static str, String)> {
        let mut query = Vec::new();
        query.extend(self.version.map(|version| ("version", version.to_string())));
        query.extend(self.min_lsn.clone().map(|lsn| ("min_lsn", lsn)));
        query.extend(self.stale.then(|| ("consistency", "stale".to_owned())));
        query
    }
}

/// Bytes of an object as they arrive.
#[derive(Debug)]
pub struct ObjectReader {
    /// Digest of the whole object.
    pub digest: String,
    /// Version.
    pub version: u64,
    /// What the bytes are.
    pub content_type: String,
    /// Bytes still to come.
    pub left: u64,
    /// Age of what a stale read saw.
    pub age_ms: Option<u64>,
    body: Incoming,
}

impl ObjectReader {
    /// The next bytes; none at the end. An end before all bytes came is an error.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            let frame = tokio::time::timeout(STALL, self.body.frame()).await;
            let broken = |detail: String| Met::from(detail).unavailable();
            let frame = frame.map_err(|_| broken("the download stands still".to_owned()))?;
            let Some(frame) = frame else {
                let short = format!("the download broke off {} bytes before its end", self.left);
                return if self.left == 0 { Ok(None) } else { Err(broken(short)) };
            };
            let frame = frame.map_err(|error| broken(innermost(&error)))?;
            if let Ok(bytes) = frame.into_data() {
                self.left = self.left.saturating_sub(bytes.len() as u64);
                return Ok(Some(bytes));
            }
        }
    }

    /// All bytes at once, of an object that fits into memory.
    pub async fn collect(mut self) -> Result<Vec<u8>, Error> {
        let mut all = Vec::new();
        while let Some(bytes) = self.next().await? {
            all.extend_from_slice(&bytes);
        }
        Ok(all)
    }
}

impl Client {
    /// Uploads an object.
    pub async fn put_object(
        &self,
        bucket: &str,
        key: &str,
        source: &ObjectSource,
        options: &PutOptions,
    ) -> Result<ObjectInfo, Error> {
        self.send_source(Method::PUT, &object_path(bucket, key), source, options).await
    }

    /// Stores bytes that have no name yet; a completion that names them as an output makes them last.
    pub async fn upload(
        &self,
        source: &ObjectSource,
        options: &PutOptions,
    ) -> Result<UploadInfo, Error> {
        self.send_source(Method::POST, "/v1/uploads", source, options).await
    }

    pub(super) async fn send_source<T: serde::de::DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        source: &ObjectSource,
        options: &PutOptions,
    ) -> Result<T, Error> {
        let request = unique_key();
        let mut backoff = Backoff::new(unique_bits());
        let mut maybe_done = false;
        let (nodes, patience) = (self.inner.urls.len(), self.inner.options.timeout);
        let mut failing_since = None;
        for attempt in 1_usize.. {
            let node = self.inner.current.load(Ordering::Relaxed) % nodes;
            let head = self.head(method.clone(), path, node);
            let sent = build_put(head, source, options, &request).await;
            let (built, sent) =
                sent.map_err(|error| Error::Protocol { detail: error.to_string() })?;
            self.inner.tries.fetch_add(1, Ordering::Relaxed);
            let (outcome, answer) = match watched(self.exchange(built), &sent).await {
                Ok(answered) => answered,
                Err(Failure { sent: false, detail }) => (Try::NotSent(detail), None),
                Err(Failure { sent: true, detail }) => (Try::NoAnswer(detail), None),
            };
            let (after, met) = match (decide(outcome), answer) {
                (Next::Accept, Some(answer)) => return read_answer(&answer),
                (Next::Accept, None) => (None, Met::from("no answer")),
                (Next::Refuse(problem), _) => return Err(Error::Refused(problem)),
                (Next::Again { maybe_done: effect, after, met }, _) => {
                    maybe_done |= effect;
                    (after, met)
                }
            };
            self.leave(node);
            // Sending takes its time; what is bounded is how long it fails.
            let since: &Instant = failing_since.get_or_insert_with(Instant::now);
            let is_round_over = attempt.is_multiple_of(nodes);
            let pause = if is_round_over { backoff.next(after) } else { Duration::ZERO };
            let is_over = attempt >= nodes * ROUNDS_MIN && since.elapsed() + pause >= patience;
            if is_over || pause >= patience {
                return Err(match maybe_done {
                    true => Error::Unknown { request, detail: met.detail },
                    false => met.unavailable(),
                });
            }
            tokio::time::sleep(pause).await;
        }
        Err(Met::from("no node was asked").unavailable())
    }

    /// Downloads an object; its bytes are read from what comes back.
    pub async fn get_object(
        &self,
        bucket: &str,
        key: &str,
        options: &GetOptions,
    ) -> Result<ObjectReader, Error> {
        let deadline = tokio::time::Instant::now() + self.inner.options.timeout;
        let mut backoff = Backoff::new(unique_bits());
        for attempt in 1usize.. {
            let node = self.inner.current.load(Ordering::Relaxed) % self.inner.urls.len();
            self.inner.tries.fetch_add(1, Ordering::Relaxed);
            let outcome = match self.try_get(node, bucket, key, options).await {
                Ok(reader) => return Ok(reader),
                Err(outcome) => outcome,
            };
            let (after, met) = match decide(outcome) {
                Next::Refuse(problem) => return Err(Error::Refused(problem)),
                Next::Accept => (None, Met::from("no answer")),
                Next::Again { after, met, .. } => (after, met),
            };
            self.leave(node);
            let round_over = attempt.is_multiple_of(self.inner.urls.len());
            let pause = if round_over { backoff.next(after) } else { Duration::ZERO };
            if tokio::time::Instant::now() + pause >= deadline {
                return Err(met.unavailable());
            }
            tokio::time::sleep(pause).await;
        }
        Err(Met::from("no node was asked").unavailable())
    }

    async fn try_get(
        &self,
        node: usize,
        bucket: &str,
        key: &str,
        options: &GetOptions,
    ) -> Result<ObjectReader, Try> {
        let path = with_query(&object_path(bucket, key), &options.query());
        let mut request = self.head(Method::GET, &path, node).map_err(Try::NotSent)?;
        if options.from > 0 {
            request = request.header(RANGE, format!("bytes={}-", options.from));
        }
        if let Some(digest) = &options.if_match {
            request = request.header(IF_MATCH, format!("\"{digest}\""));
        }
        let body = Full::default().map_err(|never| match never {}).boxed();
        let request = request.body(body).map_err(|error| Try::NotSent(error.to_string()))?;
        let limit = self.inner.options.timeout;
        let response = match tokio::time::timeout(limit, self.inner.http.request(request)).await {
            Err(_) => return Err(Try::NoAnswer("no answer in time".to_owned())),
            Ok(Err(error)) => return Err(Try::NotSent(innermost(&error))),
            Ok(Ok(response)) => response,
        };
        let (parts, body) = response.into_parts();
        let retry_after = read_retry_after(&parts.headers);
        if parts.status.is_success() {
            return Ok(reader(&parts.headers, body));
        }
        let problem = Limited::new(body, PROBLEM_BYTES_MAX).collect().await.ok();
        let problem = problem.map(|body| body.to_bytes());
        let problem = problem.and_then(|body| serde_json::from_slice::<Problem>(&body).ok());
        let (status, problem) = (parts.status.as_u16(), problem.map(Box::new));
        Err(Try::Answer { status, problem, retry_after })
    }

    /// The digests of an object's pieces, for whoever can read these elsewhere. Which bytes the options leave out is up to
    /// the caller, and whether the digest is the one that they name.
    pub async fn object_pieces(
        &self,
        bucket: &str,
        key: &str,
        options: &GetOptions,
    ) -> Result<ObjectPieces, Error> {
        let mut query = options.query();
        query.push(("pieces", "true".to_owned()));
        self.ask(&Ask::get(with_query(&object_path(bucket, key), &query))).await
    }

    /// What is known of an object; none if there is none of this name.
    pub async fn object(&self, bucket: &str, key: &str) -> Result<Option<ObjectInfo>, Error> {
        let ask = Ask { method: Method::HEAD, ..Ask::get(object_path(bucket, key)) };
        let answer = match self.send(&ask, self.deadline(&ask)).await {
            // The answer to a look has no words.
            Err(Error::Refused(problem)) if problem.status == 404 => return Ok(None),
            answer => answer?,
        };
        let text = |name: &str| answer.headers.get(name).and_then(|value| value.to_str().ok());
        let number = |name: &str| text(name).and_then(|text| text.parse().ok()).unwrap_or(0);
        Ok(Some(ObjectInfo {
            bucket: bucket.to_owned(),
            key: key.to_owned(),
            version: Number(number(OBJECT_VERSION_HEADER)),
            size: number(CONTENT_LENGTH.as_str()),
            digest: text(ETAG.as_str()).unwrap_or("").trim_matches('"').to_owned(),
            content_type: text(CONTENT_TYPE.as_str()).unwrap_or("").to_owned(),
            modified_ms: number(OBJECT_MODIFIED_HEADER),
            address: None,
            lsn: None,
        }))
    }

    /// A page of a bucket.
    pub async fn objects(
        &self,
        bucket: &str,
        prefix: &str,
        after: Option<&str>,
        versions: bool,
    ) -> Result<ObjectPage, Error> {
        let mut query = vec![("prefix", prefix.to_owned()), ("limit", "1000".to_owned())];
        query.extend(after.map(|after| ("after", after.to_owned())));
        query.extend(versions.then(|| ("versions", "true".to_owned())));
        let path = with_query(&format!("/v1/objects/{}", escape(bucket)), &query);
        self.ask(&Ask::get(path)).await
    }

    /// A page of buckets.
    pub async fn buckets(&self, after: Option<&str>) -> Result<BucketPage, Error> {
        let mut query = vec![("limit", "1000".to_owned())];
        query.extend(after.map(|after| ("after", after.to_owned())));
        self.ask(&Ask::get(with_query("/v1/objects", &query))).await
    }

    /// Removes an object with all its versions, or one version.
    pub async fn delete_object(
        &self,
        bucket: &str,
        key: &str,
        version: Option<u64>,
    ) -> Result<ObjectRemoved, Error> {
        let query: Vec<_> =
            version.map(|version| ("version", version.to_string())).into_iter().collect();
        let path = with_query(&object_path(bucket, key), &query);
        self.ask(&Ask::act(Method::DELETE, path, Some(unique_key()))).await
    }
}

async fn build_put(
    head: Result<Builder, String>,
    source: &ObjectSource,
    options: &PutOptions,
    key: &str,
) -> io::Result<(Request<SentBody>, Arc<AtomicU64>)> {
    let mut request = head.map_err(io::Error::other)?.header(IDEMPOTENCY_KEY, key);
    if let Some(content_type) = &options.content_type {
        request = request.header(CONTENT_TYPE, content_type);
    }
    if options.if_absent {
        request = request.header(IF_NONE_MATCH, "*");
    }
    if let Some(digest) = &options.if_match {
        request = request.header(IF_MATCH, format!("\"{digest}\""));
    }
    if let Some(digest) = &options.digest {
        request = request.header(OBJECT_DIGEST_HEADER, digest);
    }
    let sent = options.progress.clone().unwrap_or_default();
    sent.store(0, Ordering::Relaxed);
    let (length, body) = open(source, sent.clone()).await?;
    let request = request.header(CONTENT_LENGTH, length).body(body);
    Ok((request.map_err(io::Error::other)?, sent))
}

fn object_path(bucket: &str, key: &str) -> String {
    // Escaped as a whole: a slash in a name means the same either way.
    format!("/v1/objects/{}/{}", escape(bucket), escape(key))
}

fn reader(headers: &HeaderMap, body: Incoming) -> ObjectReader {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    ObjectReader {
        digest: text(ETAG.as_str()).unwrap_or("").trim_matches('"').to_owned(),
        version: text(OBJECT_VERSION_HEADER).and_then(|text| text.parse().ok()).unwrap_or(0),
        content_type: text(CONTENT_TYPE.as_str()).unwrap_or("").to_owned(),
        left: text(CONTENT_LENGTH.as_str()).and_then(|text| text.parse().ok()).unwrap_or(0),
        age_ms: text(crate::v1::AGE_HEADER).and_then(|text| text.parse().ok()),
        body,
    }
}

/// Length and body of a source.
async fn open(source: &ObjectSource, sent: Arc<AtomicU64>) -> io::Result<(u64, SentBody)> {
    match source {
        ObjectSource::Bytes(bytes) => {
            sent.store(bytes.len() as u64, Ordering::Relaxed);
            let body = Full::new(bytes.clone()).map_err(|never| match never {}).boxed();
            Ok((bytes.len() as u64, body))
        }
        ObjectSource::File(_) | ObjectSource::Open(_) | ObjectSource::Part { .. } => {
            let (file, length) = source.reader()?;
            let (sender, body) = Channel::new(PARTS_MAX);
            tokio::spawn(feed(file, sender, sent));
            Ok((length, body.boxed()))
        }
    }
}

impl ObjectSource {
    /// Its bytes from their beginning, and how many there are.
    pub fn reader(&self) -> io::Result<(Box<dyn io::Read + Send>, u64)> {
        let of_file = |file: std::fs::File| -> io::Result<(Box<dyn io::Read + Send>, u64)> {
            let length = file.metadata()?.len();
            Ok((Box::new(file), length))
        };
        match self {
            ObjectSource::Bytes(bytes) => {
                Ok((Box::new(io::Cursor::new(bytes.clone())), bytes.len() as u64))
            }
            ObjectSource::File(path) => of_file(std::fs::File::open(path)?),
            ObjectSource::Open(source) => of_file(source.open()?),
            ObjectSource::Part { of, from, length } => {
                let whole = of.reader_at(*from)?;
                Ok((Box::new(io::Read::take(whole, *length)), *length))
            }
        }
    }

    fn reader_at(&self, from: u64) -> io::Result<Box<dyn io::Read + Send>> {
        let mut file = match self {
            ObjectSource::File(path) => std::fs::File::open(path)?,
            ObjectSource::Open(source) => source.open()?,
            ObjectSource::Bytes(bytes) => {
                let from = (from as usize).min(bytes.len());
                return Ok(Box::new(io::Cursor::new(bytes.slice(from..))));
            }
            ObjectSource::Part { of, from: first, length } => {
                let whole = of.reader_at(first + from)?;
                return Ok(Box::new(io::Read::take(whole, length.saturating_sub(from))));
            }
        };
        io::Seek::seek(&mut file, io::SeekFrom::Start(from))?;
        Ok(Box::new(file))
    }
}

/// Reads a source into a body until its end or until nobody wants it any more.
async fn feed(
    file: Box<dyn io::Read + Send>,
    mut sender: Sender<Bytes, io::Error>,
    sent: Arc<AtomicU64>,
) {
    let mut file = file;
    loop {
        let read = tokio::task::spawn_blocking(move || {
            let mut part = vec![0; READ_BYTES];
            let count = io::Read::read(&mut file, &mut part)?;
            part.truncate(count);
            Ok::<_, io::Error>((file, part))
        });
        let part = match read.await {
            Ok(Ok((back, part))) => {
                file = back;
                part
            }
            Ok(Err(error)) => return sender.abort(error),
            Err(_) => return,
        };
        if part.is_empty() {
            return;
        }
        let count = part.len() as u64;
        if sender.send_data(Bytes::from(part)).await.is_err() {
            return;
        }
        sent.fetch_add(count, Ordering::Relaxed);
    }
}

/// Waits for an answer as long as bytes move.
async fn watched<T>(
    exchange: impl Future<Output = Result<T, Failure>>,
    sent: &AtomicU64,
) -> Result<T, Failure> {
    tokio::pin!(exchange);
    let mut before = sent.load(Ordering::Relaxed);
    loop {
        tokio::select! {
            answer = &mut exchange => return answer,
            () = tokio::time::sleep(STALL) => {}
        }
        let now = sent.load(Ordering::Relaxed);
        if now == before {
            let detail = "the upload stands still".to_owned();
            return Err(Failure { sent: true, detail });
        }
        before = now;
    }
}
