//! A flood in a thread of its own, bounded in rate, number and time.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use ikada_api::socket::Socket;
use tokio::net::{TcpSocket, TcpStream};

use super::held::Says;
use super::way::Way;
use super::{held, rude};
use crate::args::FloodKind;
use crate::failure::Failure;

/// Files that the bench needs besides connections of a flood.
const FILES_LEFT: u64 = 512;
/// Loopback addresses that connections come from, `127.0.1.1` and on: one address may hold 2,048.
const SOURCES: u64 = 8;
/// What the flood's thread yields to the nodes and to the well-behaved caller.
const NICE: i32 = 19;
/// How long a connection may take to come about.
const CONNECT_PATIENCE: Duration = Duration::from_secs(2);

/// What a flood did.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Connections or calls.
    pub(super) sent: AtomicU64,
    /// Closed by the node, or answered with a refusal.
    pub(super) turned_away: AtomicU64,
}

impl Tally {
    pub(super) fn count_sent(&self) -> u64 {
        self.sent.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn count_turned_away(&self) {
        self.turned_away.fetch_add(1, Ordering::Relaxed);
    }
}

/// What a flood works with.
#[derive(Clone)]
pub(super) struct Target {
    pub(super) way: Way,
    /// Connections that may be held.
    pub(super) connections: usize,
    pub(super) tally: Arc<Tally>,
}

impl Target {
    /// A connection from one of several addresses in turn.
    pub(super) async fn connect(&self) -> Option<TcpStream> {
        let number = self.tally.count_sent();
        let socket = TcpSocket::new_v4().ok()?;
        let source = [127, 0, 1, 1 + (number % SOURCES) as u8];
        socket.bind(SocketAddr::from((source, 0))).ok()?;
        let connecting = socket.connect(self.way.address());
        let connected = tokio::time::timeout(CONNECT_PATIENCE, connecting).await;
        let stream = connected.ok().and_then(Result::ok);
        if stream.is_none() {
            self.tally.count_turned_away();
        }
        stream
    }

    /// The same with a handshake behind it, where that is done.
    pub(super) async fn open(&self) -> Option<Socket> {
        let stream = self.connect().await?;
        let wrapped = tokio::time::timeout(CONNECT_PATIENCE, self.way.wrap(stream)).await;
        let stream = wrapped.ok().and_then(Result::ok);
        if stream.is_none() {
            self.tally.count_turned_away();
        }
        stream
    }
}

/// A running flood.
pub(super) struct Attack {
    what: String,
    rate: String,
    tally: Arc<Tally>,
    thread: JoinHandle<std::io::Result<()>>,
}

/// What became of it.
pub(super) struct Attacked {
    pub(super) what: String,
    pub(super) rate: String,
    pub(super) sent: u64,
    pub(super) turned_away: u64,
}

impl Attack {
    /// Begins a flood that ends by itself.
    pub(super) fn begin(
        kind: FloodKind,
        way: &Way,
        connections: u32,
        length: Duration,
    ) -> Result<Attack, Failure> {
        let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        let room = files.unwrap_or(u64::MAX).saturating_sub(FILES_LEFT);
        let connections = u64::from(connections).min(room) as usize;
        let tally = Arc::new(Tally::default());
        let target = Target { way: way.clone(), connections, tally: tally.clone() };
        let (what, rate) = words(kind, connections, way.is_secure());
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            step_back();
            // Whatever is under way when the time is over ends with the runtime.
            runtime.block_on(async {
                let _ = tokio::time::timeout(length, flood(kind, &target)).await;
            });
            Ok(())
        });
        Ok(Attack { what, rate, tally, thread })
    }

    /// Waits for its end.
    pub(super) fn end(self) -> Result<Attacked, Failure> {
        let ended = self.thread.join().map_err(|_| Failure::failed("the flood has ended badly"))?;
        ended.map_err(|error| Failure::failed(format!("the flood: {error}")))?;
        Ok(Attacked {
            what: self.what,
            rate: self.rate,
            sent: self.tally.sent.load(Ordering::Relaxed),
            turned_away: self.tally.turned_away.load(Ordering::Relaxed),
        })
    }
}

/// Those who flood a node sit elsewhere and take none of its processor's time: here they take what others leave. What was
/// sent is told beside the rate, so that a flood that came to less shows. Where the kernel refuses, all are equal.
fn step_back() {
    let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICE);
}

async fn flood(kind: FloodKind, target: &Target) {
    match kind {
        FloodKind::SlowHeads => held::hold(target, Says::Crumbs).await,
        FloodKind::Idle => held::hold(target, Says::Nothing).await,
        FloodKind::Handshakes => held::hold(target, Says::Hello).await,
        FloodKind::OpenAndClose => rude::open_and_close(target).await,
        FloodKind::LargeBodies => rude::large_bodies(target).await,
        FloodKind::DeepJson => rude::deep_json(target).await,
        FloodKind::TinyChunks => rude::tiny_chunks(target).await,
    }
}

/// A flood in words, with its bound.
fn words(kind: FloodKind, connections: usize, secure: bool) -> (String, String) {
    let opened = format!("{}/s opened", held::OPENED_PER_S);
    match kind {
        FloodKind::SlowHeads => {
            let what = if secure { "handshakes" } else { "heads" };
            (format!("{connections} slow {what}, a byte per second"), opened)
        }
        FloodKind::Handshakes => (format!("{connections} handshakes that stop half-way"), opened),
        FloodKind::Idle => (format!("{connections} idle connections"), opened),
        FloodKind::OpenAndClose => {
            ("opening and closing".to_owned(), format!("{}/s", rude::OPENED_PER_S))
        }
        FloodKind::LargeBodies => {
            ("bodies of 1 GiB".to_owned(), format!("{} MiB/s", rude::BODY_MIB_PER_S))
        }
        FloodKind::DeepJson => {
            ("JSON 100,000 deep".to_owned(), format!("{}/s", rude::DOCUMENTS_PER_S))
        }
        FloodKind::TinyChunks => {
            ("chunks of one byte".to_owned(), format!("{}/s", rude::CHUNKS_PER_S))
        }
    }
}
