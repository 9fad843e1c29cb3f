//! A client of any Ikada cluster: knows several nodes, keeps connections, and settles what it can.
//!
//! Promises: a write is sent under one request id however often it is resent, through leader changes, refused
//! connections and lost answers, until it is settled or the time is over. An answer that never came is reported as
//! [`Error::Unknown`] with the request id, never as a failure. Reads are repeated on other nodes.
//!
//! Many callers with one item each share list calls through [`Enqueuer`] and [`Completer`]. Calls of submitters and
//! workers travel in CBOR, many at once over one connection per node; all others are plain HTTP with JSON.

mod backoff;
mod backup;
mod batch;
mod cluster;
mod connect;
mod error;
mod events;
mod feed;
mod jobs;
mod lease;
mod logs;
mod namespaces;
mod objects;
mod pipe;
mod programs;
mod queues;
mod retry;
mod schedules;
mod send;
mod tasks;
mod token;
mod tokens;
mod uploads;
mod url;
mod work;
mod workers;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use http_body_util::combinators::BoxBody;
use hyper::body::Bytes;
use hyper_util::rt::TokioExecutor;

use pipe::Pipes;

pub(crate) use backoff::Backoff;
pub use batch::{BatchOptions, Completer, Enqueuer, ItemError, Place};
pub(crate) use connect::Connector;
pub use connect::{BadAuthority, BadCertificate, TrustedAuthority};
pub use error::{BadUrl, Error};
pub use events::{EventStream, Heard};
pub use lease::{LeaseGuard, LeaseOptions};
pub use logs::{LogPart, LogStream, LogWord};
pub use objects::{GetOptions, ObjectReader, ObjectSource, OpenSource, PutOptions};
pub(crate) use send::{innermost, read_retry_after};
pub use tasks::{Consistency, TaskQuery};
pub use token::{AccessToken, BadToken};
pub use url::{BaseUrl, unique_key};
pub(crate) use url::{unique_bits, without_secrets};

/// How a client behaves; [`ClientOptions::default`] suits most.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// Namespace of everything it asks for; the server's `default` when absent.
    pub namespace: Option<String>,
    /// The token it shows; none for a node that asks for none.
    pub token: Option<AccessToken>,
    /// The authority of the cluster's certificates; `https` needs it.
    pub authority: Option<TrustedAuthority>,
    /// How long one operation may take, resends included.
    pub timeout: Duration,
    /// How long one try may take when there are other nodes to ask: a node that hangs must not use up all the time.
    pub attempt_timeout: Duration,
    /// Whether submitters' and workers' calls share one connection per node (a pipe) instead of one connection each.
    pub pipe: bool,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            namespace: None,
            token: None,
            authority: None,
            timeout: Duration::from_secs(10),
            attempt_timeout: Duration::from_secs(3),
            pipe: true,
        }
    }
}

/// A handle to a cluster; clones share connections.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

/// The body of a request: there at once, or read as it is sent.
pub(crate) type SentBody = BoxBody<Bytes, std::io::Error>;

type HyperClient = hyper_util::client::legacy::Client<Connector, SentBody>;

struct Inner {
    urls: Vec<BaseUrl>,
    /// The node that answered last; the next call starts there.
    current: AtomicUsize,
    options: ClientOptions,
    http: HyperClient,
    pipes: Arc<Pipes>,
    /// Requests sent so far, resends included.
    tries: Arc<AtomicU64>,
}

impl Client {
    /// A client of the nodes at these base URLs (`http://host:port` or `https://host:port`), at least one.
    pub fn new<I>(urls: I) -> Result<Client, BadUrl>
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        Client::with(urls, ClientOptions::default())
    }

    /// A client with other options.
    pub fn with<I>(urls: I, options: ClientOptions) -> Result<Client, BadUrl>
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        let urls: Vec<BaseUrl> =
            urls.into_iter().map(|url| BaseUrl::parse(url.as_ref())).collect::<Result<_, _>>()?;
        if urls.is_empty() {
            return Err(BadUrl::none());
        }
        if options.authority.is_none()
            && let Some(secure) = urls.iter().find(|url| url.is_secure())
        {
            return Err(BadUrl {
                url: secure.to_string(),
                rule: "https needs the authority of the cluster: the file tls/ca.pem of any node",
            });
        }
        let patience = options.attempt_timeout.min(options.timeout);
        let connector = Connector::new(options.authority.clone(), patience);
        let http = hyper_util::client::legacy::Client::builder(TokioExecutor::new())
            // Below the server's own idle limit, so that we rarely write into a closing connection.
            .pool_idle_timeout(Duration::from_secs(5))
            .pool_timer(hyper_util::rt::TokioTimer::new())
            .build(connector.clone());
        let current = AtomicUsize::new(0);
        let (tries, pipes) = (Arc::default(), Arc::new(Pipes::new(urls.len(), connector)));
        Ok(Client { inner: Arc::new(Inner { urls, current, options, http, pipes, tries }) })
    }

    /// The same connections with another time limit per operation.
    pub fn with_timeout(&self, timeout: Duration) -> Client {
        let inner = Inner {
            urls: self.inner.urls.clone(),
            current: AtomicUsize::new(self.inner.current.load(Ordering::Relaxed)),
            options: ClientOptions { timeout, ..self.inner.options.clone() },
            http: self.inner.http.clone(),
            pipes: self.inner.pipes.clone(),
            tries: self.inner.tries.clone(),
        };
        Client { inner: Arc::new(inner) }
    }

    /// How many requests this client and its clones have tried to send, resends included: beyond the number of calls,
    /// it is what a failing node cost.
    pub fn tries(&self) -> u64 {
        self.inner.tries.load(Ordering::Relaxed)
    }

    /// The nodes this client knows.
    pub fn urls(&self) -> &[BaseUrl] {
        &self.inner.urls
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Client").field("urls", &self.inner.urls).finish_non_exhaustive()
    }
}
