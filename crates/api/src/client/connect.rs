//! Connections to nodes, in the open (`http`) or by TLS (`https`), for plain calls and for pipes alike.
//!
//! Promise: an `https` node is believed only if the cluster's own authority signed its certificate for that host; the
//! system's authorities count for object stores alone. There is no way to switch the check off.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::Uri;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use rustls::client::WantsClientCert;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ConfigBuilder, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tower_service::Service;

use super::url::authority_of;
use crate::socket::Socket;

/// A file that holds no usable certificate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the authority's certificate cannot be used: {0}")]
pub struct BadAuthority(String);

/// A certificate or key that a client cannot show.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the client's certificate cannot be used: {0}")]
pub struct BadCertificate(String);

/// Authorities that a client trusts: the cluster's own, or for an object store the system's; and the certificate that it
/// shows to them, if any.
#[derive(Clone)]
pub struct TrustedAuthority {
    roots: Arc<RootCertStore>,
    config: Arc<ClientConfig>,
}

impl TrustedAuthority {
    /// Reads certificates in PEM form: the file `tls/ca.pem` of any node.
    pub fn from_pem(pem: &[u8]) -> Result<TrustedAuthority, BadAuthority> {
        let bad = |error: &dyn fmt::Display| BadAuthority(error.to_string());
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.map_err(|error| bad(&error))?;
            roots.add(certificate).map_err(|error| bad(&error))?;
        }
        if roots.is_empty() {
            return Err(BadAuthority("there is no certificate in it".to_owned()));
        }
        TrustedAuthority::of_roots(roots)
    }

    /// The authorities that this machine trusts.
    pub(crate) fn of_system() -> Result<TrustedAuthority, BadAuthority> {
        let mut roots = RootCertStore::empty();
        // Some certificates of a system may be too old to be read; the others count.
        let (added, _) =
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        match added {
            0 => Err(BadAuthority(
                "this machine has none; install its package ca-certificates".to_owned(),
            )),
            _ => TrustedAuthority::of_roots(roots),
        }
    }

    fn of_roots(roots: RootCertStore) -> Result<TrustedAuthority, BadAuthority> {
        let roots = Arc::new(roots);
        let builder = builder(&roots).map_err(|error| BadAuthority(error.to_string()))?;
        let config = speak_http(builder.with_no_client_auth());
        Ok(TrustedAuthority { roots, config })
    }

    /// The same with a certificate to show in place of a token, and its key, in PEM form.
    pub fn with_certificate(
        &self,
        certificate_pem: &[u8],
        key_pem: &[u8],
    ) -> Result<TrustedAuthority, BadCertificate> {
        let bad = |error: &dyn fmt::Display| BadCertificate(error.to_string());
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate_pem).collect();
        let chain = chain.map_err(|error| bad(&error))?;
        let key = PrivateKeyDer::from_pem_slice(key_pem).map_err(|error| bad(&error))?;
        let builder = builder(&self.roots).map_err(|error| bad(&error))?;
        let config = builder.with_client_auth_cert(chain, key).map_err(|error| bad(&error))?;
        Ok(TrustedAuthority { roots: self.roots.clone(), config: speak_http(config) })
    }
}

fn builder(
    roots: &Arc<RootCertStore>,
) -> Result<ConfigBuilder<ClientConfig, WantsClientCert>, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?;
    Ok(builder.with_root_certificates(roots.clone()))
}

fn speak_http(mut config: ClientConfig) -> Arc<ClientConfig> {
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Arc::new(config)
}

impl fmt::Debug for TrustedAuthority {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("TrustedAuthority(..)")
    }
}

/// Opens connections.
#[derive(Debug, Clone)]
pub(crate) struct Connector {
    authority: Option<TrustedAuthority>,
    patience: Duration,
}

impl Connector {
    pub(crate) fn new(authority: Option<TrustedAuthority>, patience: Duration) -> Connector {
        Connector { authority, patience }
    }

    /// A connection to `host:port`.
    pub(crate) async fn open(&self, secure: bool, address: &str) -> io::Result<Socket> {
        let opening = async {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            if !secure {
                return Ok(Socket::Plain(stream));
            }
            let Some(TrustedAuthority { config, .. }) = &self.authority else {
                let detail = "https needs the cluster's authority: name its ca.pem";
                return Err(io::Error::other(detail));
            };
            let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
            let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
            let name = ServerName::try_from(host).map_err(io::Error::other)?;
            let stream = TlsConnector::from(config.clone()).connect(name, stream).await?;
            Ok(Socket::Tls(Box::new(stream.into())))
        };
        let late = || io::Error::new(io::ErrorKind::TimedOut, "no connection in time");
        tokio::time::timeout(self.patience, opening).await.map_err(|_| late())?
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Socket>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<TokioIo<Socket>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connector = self.clone();
        Box::pin(async move {
            let secure = uri.scheme_str() == Some("https");
            let address = uri.authority().map_or("", |authority| authority.as_str());
            let address = authority_of(address, secure);
            connector.open(secure, &address).await.map(TokioIo::new)
        })
    }
}

impl Connection for Socket {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}
