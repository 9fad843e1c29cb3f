//! Connections on which to ask peers about blobs: apart from the frames, so that bulk never delays consensus.

use std::io;

use ikada_api::socket::Socket;

use super::directory::Directory;
use super::hello::{LinkHello, Opening, WELCOME_BYTES_MAX, Welcome, decode, encode};
use super::stream::dial;
use super::wire;
use crate::tls::Tls;

/// How this node reaches its peers about blobs.
#[derive(Clone)]
pub struct BlobDialling {
    hello: LinkHello,
    tls: Option<Tls>,
    directory: Directory,
}

impl BlobDialling {
    /// With who we are, how we prove it, and who belongs to the cluster.
    pub fn new(hello: LinkHello, tls: Option<Tls>, directory: Directory) -> Self {
        BlobDialling { hello, tls, directory }
    }

    /// Ids and addresses of the other members, as of now.
    pub(crate) fn others(&self) -> Vec<(u64, String)> {
        let all = self.directory.candidates().into_iter();
        let others = all.filter(|member| member.node != self.hello.node);
        others.map(|member| (member.node, member.peer_addr)).collect()
    }

    /// Connects and introduces ourselves; an error says why the peer does not want us.
    pub(crate) async fn dial(&self, node: u64, addr: &str) -> io::Result<Socket> {
        let mut stream = dial(addr, self.tls.as_ref(), Some(node)).await?;
        let hello = LinkHello { to: node, ..self.hello };
        wire::write(&mut stream, &encode(&Opening::Blobs(hello))).await?;
        let answer = wire::read(&mut stream, WELCOME_BYTES_MAX).await?;
        match answer.as_deref().and_then(decode::<Welcome>) {
            Some(Welcome::Accepted) => Ok(stream),
            Some(Welcome::Refused(why)) => Err(io::Error::other(why)),
            _ => Err(io::Error::other("the peer does not speak this protocol")),
        }
    }
}
