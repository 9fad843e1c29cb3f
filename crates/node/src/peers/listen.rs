//! The peer port: links in, founding questions in.

use std::io;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use ikada_api::socket::Socket;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tracing::{debug, warn};

use super::directory::{Directory, Standing};
use super::founding::FoundingDoor;
use super::hello::{LinkHello, OPENING_BYTES_MAX, Opening, PROTOCOL, Welcome, decode, encode};
use super::stream::{Accepted, Purpose, accept};
use super::wire;
use crate::config::{FRAME_BYTES_MAX, HANDSHAKE_MS, INBOUND_BYTES_MAX, PEER_CONNECTIONS_MAX};
use crate::counters::SharedCounters;
use crate::driver::{DriverMessage, DriverSender};
use crate::objects::Shelf;
use crate::places::{Place, Places, Taken};
use crate::seldom::Seldom;
use crate::tls::{ShownNode, Tls, serve_join};

/// Who may link to us, once the cluster stands.
pub struct Links {
    /// The cluster.
    pub cluster: u64,
    /// Our id.
    pub node: u64,
    /// Members and their disks.
    pub directory: Directory,
    /// Where frames go.
    pub driver: DriverSender,
    /// Our blobs.
    pub shelf: Shelf,
}

impl Links {
    fn standing(&self, hello: &LinkHello) -> Standing {
        self.directory.standing(hello.node, hello.incarnation)
    }
}

struct Port {
    links: Arc<OnceLock<Links>>,
    door: FoundingDoor,
    tls: Option<Tls>,
    /// Without TLS a port of this machine hears this machine alone, whatever its network passes on to it.
    here_only: bool,
    inbound: Arc<Semaphore>,
    counters: SharedCounters,
    refused: Seldom,
    strangers: Seldom,
}

/// Serves the peer port for as long as the process lives. Links are refused until `links` is set.
pub async fn listen(
    listener: TcpListener,
    links: Arc<OnceLock<Links>>,
    door: FoundingDoor,
    tls: Option<Tls>,
    counters: SharedCounters,
) {
    let inbound = Arc::new(Semaphore::new(INBOUND_BYTES_MAX));
    // One address may be that of all nodes.
    let places = Places::new(PEER_CONNECTIONS_MAX, PEER_CONNECTIONS_MAX);
    let bound = listener.local_addr().map(|address| address.ip());
    let here_only = tls.is_none() && bound.is_ok_and(is_here);
    let (refused, strangers, full) = (Seldom::default(), Seldom::default(), Seldom::default());
    let port =
        Arc::new(Port { links, door, tls, here_only, inbound, counters, refused, strangers });
    // Dropped with this future: a node that has stopped must not answer its peers any more.
    let mut serving = JoinSet::new();
    loop {
        let Ok((stream, from)) = listener.accept().await else {
            // Out of file descriptors: a pause, not an end.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let Some(Taken { place, pushed_out, .. }) = places.take(from.ip()) else {
            if let Some(unsaid) = full.turn(Instant::now()) {
                warn!(%from, unsaid, "too many peer connections; one refused");
            }
            continue;
        };
        while serving.try_join_next().is_some() {}
        let port = port.clone();
        serving.spawn(async move {
            tokio::select! {
                served = port.serve(stream, from.ip(), &place) => {
                    if let Err(error) = served {
                        debug!(%from, %error, "peer connection ended");
                    }
                }
                () = pushed_out.wait() => debug!(%from, "a stranger made room for a newcomer"),
            }
        });
    }
}

/// Whether an address is one of this machine's own, in either form.
fn is_here(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

impl Port {
    /// Refuses whoever sent something that a node would not send; counted, and told to nobody else.
    fn refuse(&self, what: &'static str) -> io::Error {
        self.counters.peer_refused();
        io::Error::new(io::ErrorKind::InvalidData, what)
    }

    async fn serve(&self, stream: TcpStream, from: IpAddr, place: &Place) -> io::Result<()> {
        if self.here_only && !is_here(from) {
            return Err(self.refuse("this port is for this machine alone"));
        }
        let limit = Duration::from_millis(HANDSHAKE_MS);
        let accepting = accept(stream, self.tls.as_ref());
        let accepted = timeout(limit, accepting).await.map_err(|_| io::ErrorKind::TimedOut)?;
        let Accepted { mut stream, purpose, shown } = accepted.inspect_err(|error| {
            self.counters.peer_refused();
            if let Some(unsaid) = self.refused.turn(Instant::now()) {
                warn!(%from, %error, unsaid, "peer connection refused");
            }
        })?;
        if purpose == Purpose::Join {
            let desk = self.tls.as_ref().and_then(Tls::desk);
            // A removed node's certificate runs out and is not renewed.
            let shown = shown.filter(|shown| !self.is_removed(shown.name.node));
            let serving = serve_join(&mut stream, desk, shown, Some(from));
            return timeout(limit, serving).await.map_err(|_| io::ErrorKind::TimedOut)?;
        }
        let opening = timeout(limit, wire::read(&mut stream, OPENING_BYTES_MAX))
            .await
            .map_err(|_| io::ErrorKind::TimedOut)?;
        let Some(opening) = self.counted(opening)? else { return Ok(()) };
        let opening = decode::<Opening>(&opening).ok_or_else(|| self.refuse("not an opening"))?;
        match opening {
            Opening::Founding(message) => {
                let speaker = message.speaker();
                if speaker.is_some_and(|node| shown.is_some_and(|shown| shown.name.node != node)) {
                    return Err(self.refuse("a founding question in another node's name"));
                }
                if let Some(answer) = self.door.answer(message).await {
                    wire::write(&mut stream, &encode(&Welcome::Founding(answer))).await?;
                }
                Ok(())
            }
            Opening::Link(hello) => self.link(stream, hello, shown, place).await,
            Opening::Blobs(hello) => self.blobs(stream, hello, shown, place).await,
        }
    }

    async fn link(
        &self,
        mut stream: Socket,
        hello: LinkHello,
        shown: Option<ShownNode>,
        place: &Place,
    ) -> io::Result<()> {
        let links = match self.admit(&hello, shown.as_ref()) {
            Ok(links) => links,
            Err(why) => {
                let standing = self.links.get().map(|links| links.standing(&hello));
                if standing == Some(Standing::Removed) {
                    return wire::write(&mut stream, &encode(&Welcome::Removed)).await;
                }
                self.tell_stranger(hello.node, &why, "link refused");
                return wire::write(&mut stream, &encode(&Welcome::Refused(why))).await;
            }
        };
        place.vouch();
        if let (Some(tls), Some(shown)) = (&self.tls, &shown) {
            tls.linked(shown);
        }
        wire::write(&mut stream, &encode(&Welcome::Accepted)).await?;
        let mut reader = tokio::io::BufReader::with_capacity(256 * 1024, stream);
        while let Some(frame) = self.counted(wire::read(&mut reader, FRAME_BYTES_MAX).await)? {
            // Closed on whoever was removed or replaced meanwhile: it dials again, and is told.
            if links.standing(&hello) != Standing::Member || self.is_replaced(shown.as_ref()) {
                return Ok(());
            }
            self.counters.frame_received(frame.len());
            let units = frame.len().clamp(1, INBOUND_BYTES_MAX) as u32;
            let permit = self.inbound.clone().acquire_many_owned(units).await;
            let permit = permit.map_err(io::Error::other)?;
            let message = DriverMessage::Frame(hello.node, frame, permit);
            if links.driver.send(message).is_err() {
                return Ok(());
            }
        }
        Ok(())
    }

    async fn blobs(
        &self,
        mut stream: Socket,
        hello: LinkHello,
        shown: Option<ShownNode>,
        place: &Place,
    ) -> io::Result<()> {
        let links = match self.admit(&hello, shown.as_ref()) {
            Ok(links) => links,
            Err(why) => {
                self.tell_stranger(hello.node, &why, "connection for blobs refused");
                return wire::write(&mut stream, &encode(&Welcome::Refused(why))).await;
            }
        };
        place.vouch();
        wire::write(&mut stream, &encode(&Welcome::Accepted)).await?;
        let is_member =
            || links.standing(&hello) == Standing::Member && !self.is_replaced(shown.as_ref());
        self.counted(crate::objects::serve_peer(stream, &links.shelf, is_member).await)
    }

    /// Counts bytes that no node of this version sends.
    fn counted<T>(&self, outcome: io::Result<T>) -> io::Result<T> {
        outcome.inspect_err(|error| {
            if error.kind() == io::ErrorKind::InvalidData {
                self.counters.peer_refused();
            }
        })
    }

    /// Tells of whoever is no member, seldom, and counts it; a node that is not ready itself cannot tell who is.
    fn tell_stranger(&self, peer: u64, why: &str, what: &'static str) {
        if let Some(unsaid) = self.strangers.turn(Instant::now()) {
            warn!(peer, why, unsaid, "{what}");
        }
        if self.links.get().is_some() {
            self.counters.peer_refused();
        }
    }

    fn is_replaced(&self, shown: Option<&ShownNode>) -> bool {
        let tls = self.tls.as_ref();
        tls.zip(shown).is_some_and(|(tls, shown)| tls.is_replaced(shown))
    }

    fn is_removed(&self, node: u64) -> bool {
        self.links.get().is_some_and(|links| links.directory.is_removed(node))
    }

    /// Whether this node may link to us; the reason goes back to it.
    fn admit(&self, hello: &LinkHello, shown: Option<&ShownNode>) -> Result<&Links, String> {
        if shown.is_some_and(|shown| shown.name.node != hello.node) {
            return Err("the certificate is of another node".to_owned());
        }
        let Some(links) = self.links.get() else {
            return Err("this node is not ready yet".to_owned());
        };
        if hello.protocol != PROTOCOL {
            return Err(format!("this node speaks protocol {PROTOCOL}, not {}", hello.protocol));
        }
        if hello.cluster != links.cluster {
            return Err(format!(
                "this node belongs to cluster {:016x}, not {:016x}",
                links.cluster, hello.cluster
            ));
        }
        if hello.to != links.node {
            return Err(format!("this is node {}, not {}", links.node, hello.to));
        }
        match links.standing(hello) {
            Standing::Member => Ok(links),
            Standing::OtherDisk => Err(format!(
                "node {} is known with another disk: it was wiped or replaced",
                hello.node
            )),
            Standing::Removed => Err(format!("node {} was removed from the cluster", hello.node)),
            Standing::Stranger => Err(format!("node {} is not a member", hello.node)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x_3_only_loopback_is_this_machine() {
        let parsed = |text: &str| text.parse::<IpAddr>().expect("an address");
        for here in ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"] {
            assert!(is_here(parsed(here)), "{here}");
        }
        for there in ["10.0.0.1", "0.0.0.0", "169.254.169.254", "::", "fe80::1", "::ffff:10.0.0.1"]
        {
            assert!(!is_here(parsed(there)), "{there}");
        }
    }
}
