//! Whether a connection to the database is protected, and how: TLS 1.3, with a certificate of an authority that is trusted
//! and that names the host (X20).
//!
//! Promises: beyond this machine nothing is said in the open unless the address says `sslmode=disable`; there is no TLS
//! without a check of whom it leads to, so `require` and `verify-ca` mean `verify-full` here. Leaves out: certificates
//! of clients, and channel binding, which adds nothing to a certificate that was checked.

use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Config;
use tokio_postgres::config::Host;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect};
use tokio_rustls::TlsConnector;

use super::connect::PostgresError;

/// What the address asks for.
#[derive(Clone)]
pub(super) enum Protection {
    /// In the open: this machine, or asked for by name.
    Plain,
    /// By these authorities.
    Named(Arc<ClientConfig>),
    /// By the authorities of this machine, read at each connection: they change.
    System,
}

/// An address, and what it says about its protection.
pub(super) struct Wish {
    /// The address without that.
    pub(super) url: String,
    /// Which kind of server it asks for.
    session: Option<String>,
    mode: Option<String>,
    authority: Option<String>,
}

impl Wish {
    /// Takes `sslmode`, `sslrootcert` and `target_session_attrs` out of an address.
    pub(super) fn read(url: &str) -> Wish {
        let (front, query) = url.split_once('?').unwrap_or((url, ""));
        let mut wish = Wish { url: front.to_owned(), session: None, mode: None, authority: None };
        let mut rest = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("sslmode", mode)) => wish.mode = Some(mode.to_owned()),
                Some(("target_session_attrs", kind)) => wish.session = Some(kind.to_owned()),
                Some(("sslrootcert", file)) => wish.authority = Some(file.to_owned()),
                _ => rest.push(pair),
            }
        }
        if !rest.is_empty() {
            wish.url = format!("{front}?{}", rest.join("&"));
        }
        wish
    }

    /// Only a server that takes writes will do: of several hosts, the primary.
    pub(super) fn check_session(&self) -> Result<(), PostgresError> {
        match self.session.as_deref() {
            None | Some("read-write" | "primary") => Ok(()),
            Some(kind) => Err(PostgresError::BadUrl(format!(
                "target_session_attrs={kind} may lead to a standby; leave it out, connections go to the primary among the hosts"
            ))),
        }
    }

    /// What that comes to for these hosts.
    pub(super) fn judge(&self, config: &Config) -> Result<Protection, PostgresError> {
        let authority = match self.authority.as_deref() {
            None | Some("system") => None,
            Some(file) => Some(trust_file(&unescape(file))?),
        };
        let checked = authority.map_or(Protection::System, Protection::Named);
        match self.mode.as_deref() {
            Some("disable") => Ok(Protection::Plain),
            None if is_here(config) => Ok(Protection::Plain),
            // A socket of this machine has no host whose name could be checked.
            Some("require" | "verify-ca" | "verify-full") if is_socket(config) => {
                Ok(Protection::Plain)
            }
            None | Some("require" | "verify-ca" | "verify-full") => Ok(checked),
            Some(mode) => Err(PostgresError::Tls(format!(
                "sslmode={mode} would go on in the open where TLS fails; write verify-full, or disable"
            ))),
        }
    }
}

/// Whether the database is on this machine, whatever name servers say.
fn is_here(config: &Config) -> bool {
    let local = |host: &Host| match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
        }
    };
    config.get_hosts().iter().all(local) && config.get_hostaddrs().iter().all(IpAddr::is_loopback)
}

/// A host as it stands in an address.
pub(super) fn host_name(host: &Host) -> String {
    match host {
        Host::Tcp(name) => name.clone(),
        Host::Unix(path) => path.display().to_string(),
    }
}

fn is_socket(config: &Config) -> bool {
    config.get_hosts().iter().all(|host| matches!(host, Host::Unix(_)))
}

/// `%2F` is `/`; what is no such thing stays.
fn unescape(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..2).and_then(|code| std::str::from_utf8(code).ok());
        let code = code.and_then(|code| u8::from_str_radix(code, 16).ok());
        match (first, code) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn trust_file(file: &str) -> Result<Arc<ClientConfig>, PostgresError> {
    let bad = |why: String| PostgresError::Tls(format!("sslrootcert {file}: {why}"));
    let mut roots = RootCertStore::empty();
    let found = CertificateDer::pem_file_iter(file).map_err(|error| bad(error.to_string()))?;
    for certificate in found {
        let certificate = certificate.map_err(|error| bad(error.to_string()))?;
        roots.add(certificate).map_err(|error| bad(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(bad("there is no certificate in it".to_owned()));
    }
    trust(roots).map_err(|error| bad(error.to_string()))
}

fn trust(roots: RootCertStore) -> Result<Arc<ClientConfig>, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?;
    Ok(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
}

impl Protection {
    /// What the driver is given. In the open it is never asked to do anything.
    pub(super) fn guard(&self) -> Result<Guard, PostgresError> {
        let config = match self {
            Protection::Plain => None,
            Protection::Named(config) => Some(config.clone()),
            Protection::System => {
                let mut roots = RootCertStore::empty();
                // Some certificates of a system may be too old to be read; the others count.
                let found = rustls_native_certs::load_native_certs().certs;
                let config = match roots.add_parsable_certificates(found) {
                    (0, _) => Err("there are none".to_owned()),
                    _ => trust(roots).map_err(|error| error.to_string()),
                };
                let told = |why| {
                    PostgresError::Tls(format!(
                        "authorities of this machine: {why}; name one with sslrootcert"
                    ))
                };
                Some(config.map_err(told)?)
            }
        };
        Ok(Guard { config })
    }
}

/// Protects connections as the driver opens them.
#[derive(Clone)]
pub(super) struct Guard {
    config: Option<Arc<ClientConfig>>,
}

/// One connection's protection.
pub(super) struct Handshake {
    config: Option<Arc<ClientConfig>>,
    host: String,
}

type Opening<S> = Pin<Box<dyn Future<Output = io::Result<Protected<S>>> + Send>>;

impl<S> MakeTlsConnect<S> for Guard
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Protected<S>;
    type TlsConnect = Handshake;
    type Error = io::Error;

    fn make_tls_connect(&mut self, host: &str) -> Result<Handshake, io::Error> {
        Ok(Handshake { config: self.config.clone(), host: host.to_owned() })
    }
}

impl<S> TlsConnect<S> for Handshake
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Protected<S>;
    type Error = io::Error;
    type Future = Opening<S>;

    fn connect(self, stream: S) -> Opening<S> {
        Box::pin(async move {
            let config = self.config.ok_or_else(|| io::Error::other("TLS was not asked for"))?;
            let name = ServerName::try_from(self.host).map_err(io::Error::other)?;
            TlsConnector::from(config).connect(name, stream).await.map(Protected)
        })
    }
}

/// A connection by TLS.
pub(super) struct Protected<S>(tokio_rustls::client::TlsStream<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Protected<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Protected<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> tokio_postgres::tls::TlsStream for Protected<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}
