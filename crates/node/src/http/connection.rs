//! Connections: accepting, bounds before any byte is understood, and closing in good order.

use std::future::Future;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::app::App;
use super::dispatch::answer;
use super::door::Door;
use super::limits::HttpLimits;
use super::outflow::Outflow;
use super::pipe;
use super::request::lend;
use super::s3;
use super::security::{Security, Source};
use super::uploads;
use crate::admission::Admission;
use crate::places::{Places, Taken};
use crate::ration::{Ration, Wire, Words};
use crate::tls::Shown;

/// Told to a connection that is one too many, without reading from it.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
/// What HTTP may hold of a connection; `ration.rs` keeps it lower until the caller is known (X7).
const BUFFER_BYTES_MAX: usize = 64 << 10;
/// Out of file handles and the like: a pause lets other connections end.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How long such a connection may take to be told.
const FULL_PATIENCE: Duration = Duration::from_secs(1);

/// Where clients come in.
#[derive(Debug)]
pub struct Listeners {
    /// The port of the API.
    pub client: TcpListener,
    /// The port for programs that speak S3, if there is one.
    pub s3: Option<TcpListener>,
}

impl From<TcpListener> for Listeners {
    fn from(client: TcpListener) -> Self {
        Listeners { client, s3: None }
    }
}

/// What is spoken on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tongue {
    Api,
    S3,
}

/// A connection of S3; never where there is no such port.
async fn accept_s3(listener: Option<&TcpListener>) -> std::io::Result<(TcpStream, SocketAddr)> {
    match listener {
        Some(listener) => listener.accept().await,
        None => std::future::pending().await,
    }
}

/// Serves clients until `shutdown` is done, then finishes what is in flight within the grace time.
pub async fn serve<D: Door>(
    door: D,
    listeners: impl Into<Listeners>,
    limits: HttpLimits,
    security: Security,
    admission: Arc<Admission>,
    shutdown: impl Future<Output = ()>,
) {
    let Listeners { client, s3 } = listeners.into();
    let (stop, stopping) = watch::channel(false);
    let places = Places::new(limits.connections_max, limits.connections_per_address_max);
    let grace = limits.stop_grace;
    let app = Arc::new(App::new(door, limits, security, admission, stopping));
    let mut connections = JoinSet::new();
    connections.spawn(app.clone().watch_queues());
    connections.spawn(app.clone().watch_quotas());
    connections.spawn(uploads::watch_uploads(app.clone()));
    if app.security.gatekeeper.is_some() {
        connections.spawn(app.clone().watch_tokens());
    }
    tokio::pin!(shutdown);
    loop {
        let (accepted, tongue) = tokio::select! {
            () = &mut shutdown => break,
            accepted = client.accept() => (accepted, Tongue::Api),
            accepted = accept_s3(s3.as_ref()) => (accepted, Tongue::S3),
            // Ended connections are collected as they end.
            Some(_) = connections.join_next() => continue,
        };
        match accepted {
            Ok((stream, from)) => {
                match places.take(from.ip()) {
                    Some(taken) => {
                        connections.spawn(admit(app.clone(), stream, tongue, from.ip(), taken))
                    }
                    None => {
                        app.counters.connections_refused.fetch_add(1, Ordering::Relaxed);
                        connections.spawn(turn_away(stream))
                    }
                };
            }
            Err(error) => {
                tracing::warn!(%error, "a client connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop((client, s3));
    stop.send_replace(true);
    let all = async {
        while connections.join_next().await.is_some() {}
        // Pipes have left their connections behind and hold only their places.
        places.all_free().await;
    };
    if tokio::time::timeout(grace, all).await.is_err() {
        tracing::warn!("client requests were cut off at the end of the grace time");
    }
}

/// Serves a connection for as long as it has its place.
async fn admit<D: Door>(
    app: Arc<App<D>>,
    stream: TcpStream,
    tongue: Tongue,
    address: IpAddr,
    Taken { place, pushed_out, pushed }: Taken,
) {
    if pushed {
        app.counters.strangers_closed.fetch_add(1, Ordering::Relaxed);
    }
    let (ration, place) = (Ration::new(), Arc::new(place));
    let source = Source { address, shown: None, ration, place };
    tokio::select! {
        () = attend(app, stream, tongue, source) => {}
        () = pushed_out.wait() => {}
    }
}

/// Serves one connection.
async fn attend<D: Door>(app: Arc<App<D>>, stream: TcpStream, tongue: Tongue, source: Source) {
    // Answers are small and waited for; a failure only costs latency.
    let _ = stream.set_nodelay(true);
    let Some(tls) = app.security.tls.as_ref().map(|tls| TlsAcceptor::from(tls.clients())) else {
        return Box::pin(converse(app, stream, tongue, source)).await;
    };
    let (stream, address) = (Wire::new(stream, source.ration.clone()), source.address);
    let shaking = tokio::time::timeout(app.limits.head_timeout, tls.accept(stream));
    let why = match shaking.await {
        Ok(Ok(stream)) => {
            let shown = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
            let shown = shown.map(|certificate| Arc::new(Shown::of(certificate)));
            let source = Source { shown, ..source };
            // So that whoever never comes this far holds no room for it.
            return Box::pin(converse(app, stream, tongue, source)).await;
        }
        // Whoever closes again without a word only looked whether the port is open.
        Ok(Err(error)) if error.kind() == ErrorKind::UnexpectedEof => return,
        Ok(Err(error)) => error.to_string(),
        Err(_) => "it took too long".to_owned(),
    };
    // Whoever does not speak TLS is not spoken to.
    app.counters.handshakes_failed.fetch_add(1, Ordering::Relaxed);
    app.strangers.no_handshake(address, &why);
}

/// Speaks HTTP on a connection.
async fn converse<D: Door>(
    app: Arc<App<D>>,
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    tongue: Tongue,
    source: Source,
) {
    let mut stopping = app.stopping.clone();
    let served = app.clone();
    let stream = Outflow::new(stream, app.limits.write_timeout);
    let stream = Words::new(stream, source.ration.clone());
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(source.clone());
        let (app, place) = (served.clone(), source.place.clone());
        // On the heap, and only while there is a request: HTTP keeps room for it all along, and it is large.
        Box::pin(async move {
            if tongue == Tongue::Api && pipe::is_wanted(&request) {
                return Ok(pipe::accept(&app, request, place).await);
            }
            let (request, rest) = lend(request);
            let mut reply = match tongue {
                Tongue::S3 => s3::answer(&app, request).await,
                Tongue::Api => answer(&app, request).await,
            };
            rest.read(&mut reply);
            Ok::<_, std::convert::Infallible>(reply)
        })
    });
    let connection = protocol(&app.limits).serve_connection(TokioIo::new(stream), service);
    let connection = connection.with_upgrades();
    tokio::pin!(connection);
    tokio::select! {
        // A client that breaks off or sends nonsense harms nobody but itself.
        _ = connection.as_mut() => {}
        () = told_to_stop(&mut stopping) => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
}

/// HTTP/1 within its bounds.
pub(super) fn protocol(limits: &HttpLimits) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_timeout)
        .max_header_size(limits.head_bytes_max)
        .max_buf_size(BUFFER_BYTES_MAX);
    builder
}

/// Done when the door closes.
pub(super) async fn told_to_stop(stopping: &mut watch::Receiver<bool>) {
    // A sender that is gone means the same.
    let _ = stopping.wait_for(|stopping| *stopping).await;
}

async fn turn_away(mut stream: TcpStream) {
    let _ = tokio::time::timeout(FULL_PATIENCE, stream.write_all(FULL)).await;
}
