//! A node's TLS settings, made of its files, and made again when the files change.

use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tracing::{info, warn};

use super::authority::TlsError;
use super::files::stored_at;
use super::join::{JOIN_PROTOCOL, renew};
use super::name::Name;
use super::verify::{NodeVerifier, Trust};
use super::{JoinDesk, Papers};

/// Frames between nodes, in the handshake.
pub const PEER_PROTOCOL: &[u8] = b"ikada-peer/1";
/// How often the files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// A certificate older than this is renewed; it lasts three times as long.
const RENEW_AFTER: Duration = Duration::from_secs(30 * 24 * 3600);
/// The pause after a renewal that did not come about.
const RENEW_PAUSE: Duration = Duration::from_secs(3600);

struct Loaded {
    stored_at: Option<SystemTime>,
    peers_in: Arc<ServerConfig>,
    peers_out: Arc<ClientConfig>,
    joining: Arc<ClientConfig>,
    clients: Arc<ServerConfig>,
}

/// TLS of one node. Cloning it shares what is loaded.
#[derive(Clone)]
pub struct Tls {
    folder: std::path::PathBuf,
    name: Name,
    loaded: Arc<RwLock<Arc<Loaded>>>,
    desk: Option<Arc<JoinDesk>>,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Tls").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Tls {
    /// TLS by these papers.
    pub fn new(papers: &Papers) -> Result<Tls, TlsError> {
        let desk = JoinDesk::open(papers)?.map(Arc::new);
        let loaded = Arc::new(RwLock::new(Arc::new(load(papers)?)));
        Ok(Tls { folder: papers.folder.clone(), name: papers.name, loaded, desk })
    }

    /// Whom this node's certificate names.
    pub fn name(&self) -> Name {
        self.name
    }

    /// Answers those who wish to join; none where the authority's key is not.
    pub fn desk(&self) -> Option<Arc<JoinDesk>> {
        self.desk.clone()
    }

    /// For connections of peers to us.
    pub fn peers_in(&self) -> Arc<ServerConfig> {
        self.now().peers_in.clone()
    }

    /// For our connections to peers.
    pub fn peers_out(&self) -> Arc<ClientConfig> {
        self.now().peers_out.clone()
    }

    /// For asking for a new certificate with the one we have.
    pub(super) fn joining(&self) -> Arc<ClientConfig> {
        self.now().joining.clone()
    }

    /// For clients.
    pub fn clients(&self) -> Arc<ServerConfig> {
        self.now().clients.clone()
    }

    /// For a newcomer: believes whoever shows an authority with this digest.
    pub(super) fn pinned(digest: [u8; 32]) -> Result<Arc<ClientConfig>, TlsError> {
        let provider = provider();
        let verifier = NodeVerifier { trust: Trust::Pinned(digest), provider: provider.clone() };
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(setup)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        config.alpn_protocols = vec![JOIN_PROTOCOL.to_vec()];
        Ok(Arc::new(config))
    }

    fn now(&self) -> Arc<Loaded> {
        self.loaded.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads the files again if they changed; true if so.
    pub fn reload(&self) -> Result<bool, TlsError> {
        if stored_at(&self.folder) == self.now().stored_at {
            return Ok(false);
        }
        let Some(papers) = Papers::load(&self.folder)? else { return Ok(false) };
        if papers.name != self.name {
            return Err(TlsError::Setup(format!(
                "the new certificate is for {}, this node is {}",
                papers.name, self.name
            )));
        }
        let loaded = Arc::new(load(&papers)?);
        *self.loaded.write().unwrap_or_else(PoisonError::into_inner) = loaded;
        Ok(true)
    }

    /// Keeps the certificate fresh for as long as the process lives.
    pub async fn watch(self, peers: Vec<String>, hosts: Vec<String>) {
        let mut rest = Duration::ZERO;
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            match self.reload() {
                Ok(false) => {}
                Ok(true) => info!("a new certificate is in use"),
                Err(error) => warn!(%error, "the new certificate is not used"),
            }
            rest = rest.saturating_sub(LOOK_EVERY);
            if rest.is_zero() && is_old(&self.folder) {
                rest = RENEW_PAUSE;
                if let Err(error) = self.renew_now(&peers, &hosts).await {
                    warn!(%error, "the certificate could not be renewed; it is tried again");
                }
            }
        }
    }

    /// Gets a new certificate; the next look at the files takes it into use.
    pub async fn renew_now(&self, peers: &[String], hosts: &[String]) -> Result<bool, TlsError> {
        match Papers::load(&self.folder)? {
            Some(papers) => renew(&papers, self, peers, hosts).await,
            None => Ok(false),
        }
    }
}

fn is_old(folder: &Path) -> bool {
    let age = stored_at(folder).and_then(|stored| stored.elapsed().ok());
    age.is_some_and(|age| age > RENEW_AFTER)
}

pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn setup(error: impl std::fmt::Display) -> TlsError {
    TlsError::Setup(error.to_string())
}

fn load(papers: &Papers) -> Result<Loaded, TlsError> {
    let provider = provider();
    let stored_at = stored_at(&papers.folder);
    let authority = CertificateDer::from_pem_slice(papers.authority_pem.as_bytes());
    let authority = authority.map_err(setup)?;
    let node = CertificateDer::from_pem_slice(papers.node_pem.as_bytes()).map_err(setup)?;
    let key = || PrivateKeyDer::from_pem_slice(papers.key.reveal().as_bytes()).map_err(setup);
    let mut roots = RootCertStore::empty();
    roots.add(authority.clone()).map_err(setup)?;
    let roots = Arc::new(roots);
    // The authority goes along, for newcomers that know only its digest.
    let chain = vec![node, authority];
    let versions = &[&rustls::version::TLS13];
    let verifier = WebPkiClientVerifier::builder_with_provider(roots.clone(), provider.clone())
        .allow_unauthenticated()
        .build()
        .map_err(setup)?;
    let mut peers_in = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(versions)
        .map_err(setup)?
        .with_client_cert_verifier(verifier.clone())
        .with_single_cert(chain.clone(), key()?)
        .map_err(setup)?;
    peers_in.alpn_protocols = vec![PEER_PROTOCOL.to_vec(), JOIN_PROTOCOL.to_vec()];
    let mut clients = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(versions)
        .map_err(setup)?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain.clone(), key()?)
        .map_err(setup)?;
    clients.alpn_protocols = vec![b"http/1.1".to_vec()];
    let trust = Trust::Cluster { roots, cluster: papers.name.cluster };
    let verifier = Arc::new(NodeVerifier { trust, provider: provider.clone() });
    let mut peers_out = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .map_err(setup)?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_client_auth_cert(chain, key()?)
        .map_err(setup)?;
    let mut joining = peers_out.clone();
    peers_out.alpn_protocols = vec![PEER_PROTOCOL.to_vec()];
    joining.alpn_protocols = vec![JOIN_PROTOCOL.to_vec()];
    Ok(Loaded {
        stored_at,
        peers_in: Arc::new(peers_in),
        peers_out: Arc::new(peers_out),
        joining: Arc::new(joining),
        clients: Arc::new(clients),
    })
}
