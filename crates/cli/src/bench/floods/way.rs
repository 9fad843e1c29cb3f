//! How the bench reaches the flooded node: in the open, or by TLS and with a token.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use ikada_api::socket::Socket;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::super::objects::speak::Line;
use crate::failure::Failure;
use crate::local::Nodes;

/// An address, and what it takes to be heard there.
#[derive(Clone)]
pub(super) struct Way {
    pub(super) host: String,
    address: SocketAddr,
    secure: Option<Secure>,
}

#[derive(Clone)]
struct Secure {
    config: Arc<ClientConfig>,
    /// The header with the token.
    bearer: String,
}

impl Way {
    /// To the first of the nodes.
    pub(super) fn to_first(nodes: &Nodes) -> Result<Way, Failure> {
        let url = nodes.urls().swap_remove(0);
        let host = url.split_once("://").map_or(url.as_str(), |(_, host)| host).to_owned();
        let address = host.parse().map_err(|error| Failure::failed(format!("{host}: {error}")))?;
        let secure = match nodes.papers()? {
            None => None,
            Some((pem, token)) => {
                let bearer = format!("authorization: Bearer {token}\r\n");
                Some(Secure { config: config(&pem)?, bearer })
            }
        };
        Ok(Way { host, address, secure })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn is_secure(&self) -> bool {
        self.secure.is_some()
    }

    /// A line of a caller that is known.
    pub(super) async fn line(&self) -> io::Result<Line> {
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        let bearer = self.secure.as_ref().map_or("", |secure| &secure.bearer);
        Ok(Line::on(self.wrap(stream).await?, &self.host, bearer))
    }

    /// Shakes hands, where that is done.
    pub(super) async fn wrap(&self, stream: TcpStream) -> io::Result<Socket> {
        let Some(secure) = &self.secure else { return Ok(Socket::Plain(stream)) };
        let connector = TlsConnector::from(secure.config.clone());
        let stream = connector.connect(self.name(), stream).await?;
        Ok(Socket::Tls(Box::new(stream.into())))
    }

    /// The first message of a handshake, whole; none in the open.
    pub(super) fn hello(&self) -> Option<Vec<u8>> {
        let secure = self.secure.as_ref()?;
        let mut talk = ClientConnection::new(secure.config.clone(), self.name()).ok()?;
        let mut hello = Vec::new();
        talk.write_tls(&mut hello).ok()?;
        Some(hello)
    }

    fn name(&self) -> ServerName<'static> {
        ServerName::IpAddress(self.address.ip().into())
    }
}

/// Believes the cluster's authority and nobody else.
fn config(pem: &[u8]) -> Result<Arc<ClientConfig>, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::failed(format!("TLS: {error}"));
    let mut roots = RootCertStore::empty();
    let authority = CertificateDer::from_pem_slice(pem).map_err(|error| failed(&error))?;
    roots.add(authority).map_err(|error| failed(&error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| failed(&error))?;
    Ok(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
}
