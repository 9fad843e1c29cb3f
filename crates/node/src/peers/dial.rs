//! Our side of a link: connect, introduce ourselves, send frames until it breaks, connect again.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use ikada_api::socket::Halves;
use ikada_replica::Input;
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt, BufWriter};
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

use super::hello::{LinkHello, Opening, PROTOCOL, WELCOME_BYTES_MAX, Welcome, decode, encode};
use super::outgoing::LaneEnd;
use super::stream::dial;
use super::wire;
use crate::config::{HANDSHAKE_MS, REDIAL_MS_MAX, REDIAL_MS_MIN};
use crate::counters::SharedCounters;
use crate::driver::{DriverMessage, DriverSender};
use crate::tls::Tls;

/// Frames gathered into one write.
const WRITE_BUFFER_BYTES: usize = 256 * 1024;

/// What every link of this node needs.
#[derive(Clone)]
pub struct Dialling {
    /// Who we are.
    pub hello: LinkHello,
    /// How we prove it; none in the open.
    pub tls: Option<Tls>,
    /// Where news of links goes.
    pub driver: DriverSender,
    /// Numbers for the metrics.
    pub counters: SharedCounters,
}

impl Dialling {
    /// Starts the task that keeps a link to one peer, until its lane is closed.
    pub fn dial(&self, peer: u64, addr: String, end: LaneEnd) {
        let hello = LinkHello { to: peer, ..self.hello };
        let Dialling { tls, driver, counters, .. } = self.clone();
        tokio::spawn(Dialler { peer, addr, hello, tls, driver, counters, end }.run());
    }
}

/// Who we are, for links.
pub fn link_hello(cluster: u64, node: u64, incarnation: u64) -> LinkHello {
    LinkHello { protocol: PROTOCOL, cluster, node, incarnation, to: 0 }
}

/// What the driver was last told of the peer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Told {
    Up,
    Down,
    Gone,
}

struct Dialler {
    peer: u64,
    addr: String,
    hello: LinkHello,
    tls: Option<Tls>,
    driver: DriverSender,
    counters: SharedCounters,
    end: LaneEnd,
}

impl Dialler {
    async fn run(mut self) {
        let mut wait_ms = REDIAL_MS_MIN;
        let mut told = Told::Up;
        let mut told_why = String::new();
        loop {
            match self.connect().await {
                Ok(halves) => {
                    wait_ms = REDIAL_MS_MIN;
                    told = Told::Up;
                    told_why.clear();
                    self.counters.peer_connected();
                    info!(peer = self.peer, addr = %self.addr, "link up");
                    if !self.tell(Input::PeerUp(self.peer)) {
                        return;
                    }
                    let why = self.pump(halves).await;
                    info!(peer = self.peer, %why, "link closed");
                    if self.end.frames.is_closed() {
                        return;
                    }
                    // Dial again at once: only a refusal means that the process is gone.
                }
                Err(error) => {
                    let refused = error.kind() == io::ErrorKind::ConnectionRefused;
                    let why = error.to_string();
                    if why != told_why {
                        warn!(peer = self.peer, addr = %self.addr, %why, "no link");
                        told_why = why;
                    }
                    // A dying process may reset a connection before it refuses the next: a refusal is news even
                    // after another failure was told.
                    let news = if refused { Told::Gone } else { Told::Down };
                    if news > told {
                        told = news;
                        let down = Input::PeerDown { peer: self.peer, refused };
                        if !self.tell(down) {
                            return;
                        }
                    }
                    if self.end.frames.is_closed() {
                        return;
                    }
                    self.end.drain();
                    sleep(Duration::from_millis(fastrand::u64(0..=wait_ms))).await;
                    wait_ms = (wait_ms * 2).min(REDIAL_MS_MAX);
                }
            }
        }
    }

    fn tell(&self, input: Input) -> bool {
        self.driver.send(DriverMessage::Input(input)).is_ok()
    }

    async fn connect(&self) -> io::Result<Halves> {
        let limit = Duration::from_millis(HANDSHAKE_MS);
        timeout(limit, self.shake_hands()).await.map_err(|_| io::ErrorKind::TimedOut)?
    }

    async fn shake_hands(&self) -> io::Result<Halves> {
        let mut stream = dial(&self.addr, self.tls.as_ref(), Some(self.peer)).await?;
        wire::write(&mut stream, &encode(&Opening::Link(self.hello))).await?;
        let answer = wire::read(&mut stream, WELCOME_BYTES_MAX).await?;
        match answer.as_deref().and_then(decode::<Welcome>) {
            Some(Welcome::Accepted) => Ok(stream.split()),
            Some(Welcome::Refused(why)) => Err(io::Error::other(why)),
            Some(Welcome::Removed) => {
                self.tell(Input::Removed);
                Err(io::Error::other("this node was removed from the cluster"))
            }
            _ => Err(io::Error::other("the peer does not speak this protocol")),
        }
    }

    /// Sends frames until the connection breaks; says why.
    async fn pump(&mut self, (mut reader, writer): Halves) -> String {
        let mut writer = BufWriter::with_capacity(WRITE_BUFFER_BYTES, writer);
        let mut nothing = [0; 1];
        loop {
            tokio::select! {
                frame = self.end.frames.recv() => {
                    let Some(frame) = frame else { return "the driver has ended".to_owned() };
                    if let Err(error) = self.send(&mut writer, frame).await {
                        return error.to_string();
                    }
                }
                // Nothing is ever sent this way: an end or an error means the peer has closed.
                read = reader.read(&mut nothing) => {
                    return match read {
                        Ok(_) => "closed by the peer".to_owned(),
                        Err(error) => error.to_string(),
                    };
                }
            }
        }
    }

    /// Writes a frame and all that wait behind it, then flushes once.
    async fn send(
        &mut self,
        writer: &mut (impl AsyncWrite + Unpin),
        first: Bytes,
    ) -> io::Result<()> {
        let mut next = Some(first);
        while let Some(frame) = next {
            self.end.took(&frame);
            writer.write_all(&wire::head(&frame)).await?;
            writer.write_all(&frame).await?;
            next = self.end.frames.try_recv().ok();
        }
        writer.flush().await
    }
}
