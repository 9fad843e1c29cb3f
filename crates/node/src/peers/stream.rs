//! A connection between two nodes, in the open or by TLS. Who is at the other end is known before a byte is read.

use std::io;
use std::time::Duration;

use ikada_api::socket::Socket;
use rustls::pki_types::CertificateDer;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::ration::{Ration, Wire};
use crate::tls::{JOIN_PROTOCOL, PEER_PROTOCOL, ShownNode, Tls, any_name, node_of};

/// A peer that acknowledges nothing for this long is out of reach: its connection is closed, and dialled again.
const SILENCE: Duration = Duration::from_secs(5);
/// How often an idle peer is asked for a sign of life, so that an accepted connection ends as well.
const SIGN_EVERY: Duration = Duration::from_secs(2);

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Frames and founding questions.
    Peer,
    /// A wish for a certificate, and nothing else.
    Join,
}

/// An accepted connection.
pub(super) struct Accepted {
    pub(super) stream: Socket,
    pub(super) purpose: Purpose,
    /// The node that it proved to be, and by what; none without TLS, and for newcomers.
    pub(super) shown: Option<ShownNode>,
}

/// Connects. With TLS the other side is a node of our cluster; `node` says which one, if it must be one.
pub(super) async fn dial(addr: &str, tls: Option<&Tls>, node: Option<u64>) -> io::Result<Socket> {
    let stream = TcpStream::connect(addr).await?;
    prepare(&stream)?;
    let Some(tls) = tls else { return Ok(Socket::Plain(stream)) };
    let stream = TlsConnector::from(tls.peers_out()).connect(any_name(), stream).await?;
    let shown = first_node(stream.get_ref().1.peer_certificates());
    if node.is_some() && shown.as_ref().map(|shown| shown.name.node) != node {
        return Err(io::Error::other("the certificate at this address is of another node"));
    }
    if !shown.is_some_and(|shown| tls.believes(&shown)) {
        return Err(io::Error::other(
            "the certificate at this address was replaced by a newer one",
        ));
    }
    Ok(Socket::Tls(Box::new(stream.into())))
}

/// Sends small frames at once, and lets silence end the connection. Left alone the kernel tries again after twice the time,
/// each time: a node that was cut off for two minutes would be deaf for one more after the cut has ended.
fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let socket = SockRef::from(stream);
    socket
        .set_tcp_keepalive(&TcpKeepalive::new().with_time(SIGN_EVERY).with_interval(SIGN_EVERY))?;
    socket.set_tcp_user_timeout(Some(SILENCE))
}

/// Accepts. With TLS only nodes of our cluster pass, and newcomers who wish for a certificate.
pub(super) async fn accept(stream: TcpStream, tls: Option<&Tls>) -> io::Result<Accepted> {
    prepare(&stream)?;
    let Some(tls) = tls else {
        let stream = Socket::Plain(stream);
        return Ok(Accepted { stream, purpose: Purpose::Peer, shown: None });
    };
    let ration = Ration::new();
    let stream = Wire::new(stream, ration.clone());
    let stream = TlsAcceptor::from(tls.peers_in()).accept(stream).await?;
    let session = stream.get_ref().1;
    let ours = |shown: &ShownNode| shown.name.cluster == tls.name().cluster;
    let shown = first_node(session.peer_certificates()).filter(ours);
    let purpose = match (session.alpn_protocol(), &shown) {
        (Some(JOIN_PROTOCOL), _) => Purpose::Join,
        (Some(PEER_PROTOCOL), Some(shown)) if tls.believes(shown) => Purpose::Peer,
        (Some(PEER_PROTOCOL), Some(_)) => {
            return Err(io::Error::other("a certificate that was replaced by a newer one"));
        }
        (Some(PEER_PROTOCOL), None) => {
            return Err(io::Error::other("no certificate of a node of this cluster"));
        }
        _ => return Err(io::Error::other("no protocol of ours")),
    };
    match purpose {
        Purpose::Peer => drop(ration.trust()),
        // A wish for a certificate is shorter than a ration.
        Purpose::Join => ration.renew(),
    }
    Ok(Accepted { stream: Socket::Bounded(Box::new(stream)), purpose, shown })
}

fn first_node(certificates: Option<&[CertificateDer<'_>]>) -> Option<ShownNode> {
    certificates?.first().and_then(node_of)
}
