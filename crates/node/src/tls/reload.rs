//! A node's TLS settings, made of its files, and made again when the files change.

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
use super::{JoinDesk, Life, Newest, Papers, ShownNode};

/// Frames between nodes, in the handshake.
pub const PEER_PROTOCOL: &[u8] = b"ikada-peer/1";
/// How often the files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Pauses after a renewal that did not come about: the longest and the shortest.
const RENEW_PAUSE_MAX: Duration = Duration::from_secs(600);
const RENEW_PAUSE_MIN: Duration = Duration::from_secs(60);
/// Tries that still fit into what is left of a certificate, at least.
const RENEW_TRIES: u32 = 50;

struct Loaded {
    stored_at: Option<SystemTime>,
    life: Life,
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
    newest: Newest,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Tls").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Tls {
    /// TLS by these papers.
    pub fn new(papers: &Papers) -> Result<Tls, TlsError> {
        let newest = Newest::open(&papers.folder)?;
        let desk = JoinDesk::open(papers, newest.clone())?.map(Arc::new);
        let loaded = Arc::new(RwLock::new(Arc::new(load(papers)?)));
        Ok(Tls { folder: papers.folder.clone(), name: papers.name, loaded, desk, newest })
    }

    /// Whether a node shows the newest certificate that is known of it: an older one proves nothing.
    pub fn believes(&self, shown: &ShownNode) -> bool {
        self.newest.learn(shown)
    }

    /// A node linked to us by this certificate.
    pub fn linked(&self, shown: &ShownNode) {
        self.newest.link(shown);
    }

    /// Whether its node linked to us by a newer certificate since.
    pub fn is_replaced(&self, shown: &ShownNode) -> bool {
        self.newest.is_replaced(shown)
    }

    /// Whom this node's certificate names.
    pub fn name(&self) -> Name {
        self.name
    }

    /// How long the certificate that is in use still holds.
    pub fn left(&self) -> Duration {
        self.now().life.left(SystemTime::now())
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

    /// Keeps the certificate fresh for as long as the process lives. `peers` says whom to ask, each time anew.
    pub async fn watch(self, peers: impl Fn() -> Vec<String>, hosts: Vec<String>) {
        let mut rest = Duration::ZERO;
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            match self.reload() {
                Ok(false) => {}
                Ok(true) => info!("a new certificate is in use"),
                Err(error) => warn!(%error, "the new certificate is not used"),
            }
            self.note_deeds().await;
            rest = rest.saturating_sub(LOOK_EVERY);
            if rest.is_zero() && self.now().life.is_old(SystemTime::now()) {
                rest = self.try_renewal(&peers(), &hosts).await;
            }
        }
    }

    /// Tries to renew the certificate, and says so loudly if that fails. Gives the pause until the next try.
    async fn try_renewal(&self, peers: &[String], hosts: &[String]) -> Duration {
        let why = match self.renew_now(peers, hosts).await {
            Ok(true) => return RENEW_PAUSE_MIN,
            Ok(false) => "no node that was asked keeps the authority's key".to_owned(),
            Err(error) => error.to_string(),
        };
        let (left, pause) = (self.left(), renewal_pause(self.left()));
        warn!(
            why,
            hours_left = left.as_secs() / 3600,
            next_try_s = pause.as_secs(),
            "the certificate could not be renewed: without a new one this node is cut off when it ends"
        );
        pause
    }

    /// Puts into the audit log what operators did to join tokens meanwhile.
    async fn note_deeds(&self) {
        let Some(desk) = self.desk() else { return };
        // Files are locked and written: not on a thread that serves sockets.
        let noted = tokio::task::spawn_blocking(move || desk.note_deeds()).await;
        if let Ok(Err(error)) = noted {
            warn!(%error, "what was done to join tokens is not in the audit log yet");
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

/// The pause before the next try, with so much of the certificate left.
fn renewal_pause(left: Duration) -> Duration {
    (left / RENEW_TRIES).clamp(RENEW_PAUSE_MIN, RENEW_PAUSE_MAX)
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
        life: papers.life,
        peers_in: Arc::new(peers_in),
        peers_out: Arc::new(peers_out),
        joining: Arc::new(joining),
        clients: Arc::new(clients),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::authority::new_key;
    use crate::tls::files::store_node;

    const DAY: Duration = Duration::from_secs(24 * 3600);

    /// A node whose certificate ends then, and its authority if it keeps it.
    fn node(ends: SystemTime, keeps_authority: bool) -> (tempfile::TempDir, Papers) {
        let folder = tempfile::tempdir().expect("a folder");
        let name = Name { cluster: 7, node: 1 };
        let papers = Papers::found(folder.path(), name, &[], 0).expect("papers");
        let authority = papers.authority().expect("read").expect("an authority");
        let key = new_key().expect("a key");
        let pem = authority.sign_until(1, key.public_key_raw(), &[], ends).expect("signed");
        store_node(&papers.folder, &key.serialize_pem(), &papers.authority_pem, &pem)
            .expect("stored");
        if !keeps_authority {
            std::fs::remove_file(papers.folder.join("ca.key")).expect("removed");
        }
        let papers = Papers::load(&papers.folder).expect("read").expect("papers");
        (folder, papers)
    }

    #[test]
    fn x_2_a_certificate_is_old_by_its_own_dates_however_young_its_file() {
        // The file is of this moment in both.
        let (_old, papers) = node(SystemTime::now() + DAY / 100, true);
        let tls = Tls::new(&papers).unwrap();
        assert!(tls.now().life.is_old(SystemTime::now()));
        let (_young, papers) = node(SystemTime::now() + DAY * 90, true);
        let tls = Tls::new(&papers).unwrap();
        assert!(!tls.now().life.is_old(SystemTime::now()));
        assert!(tls.left() > DAY * 89 && tls.left() <= DAY * 90);
    }

    #[test]
    fn x_2_a_renewal_that_fails_is_tried_again_sooner_towards_the_end() {
        assert_eq!(renewal_pause(DAY * 60), RENEW_PAUSE_MAX);
        assert_eq!(renewal_pause(Duration::ZERO), RENEW_PAUSE_MIN);
        let tries: Vec<_> = [DAY, DAY / 4, DAY / 24].map(renewal_pause).to_vec();
        assert!(tries.is_sorted_by(|later, sooner| later >= sooner) && tries[2] < tries[0]);
    }

    #[tokio::test]
    async fn x_2_a_renewal_without_the_authority_fails_and_with_it_lasts_long() {
        let (_folder, papers) = node(SystemTime::now() + DAY, false);
        let tls = Tls::new(&papers).unwrap();
        assert_eq!(tls.try_renewal(&[], &[]).await, renewal_pause(DAY));
        assert!(!tls.reload().unwrap() && tls.left() <= DAY);
        let (_folder, papers) = node(SystemTime::now() + DAY, true);
        let tls = Tls::new(&papers).unwrap();
        tls.try_renewal(&[], &[]).await;
        assert!(tls.reload().unwrap() && tls.left() > DAY * 89);
    }
}
