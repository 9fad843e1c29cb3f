//! Getting a certificate from the node that keeps the authority's key: by a join token, or, to renew, by the old
//! certificate. Spoken on the peer port under a protocol name of its own, so that nothing else is within reach.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::{Duration, SystemTime};

use minicbor::{Decode, Encode};
use rustls::ClientConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tracing::{info, warn};

use super::authority::{Authority, TlsError};
use super::files::{asking_key, forget_asking_key, store_node};
use super::{JoinToken, JoinTokens, Newest, Papers, ShownNode, Tls, Unfit, node_of};
use crate::audit::{Action, AuditLog, Note};
use crate::auth::{Denied, Gatekeeper, Secret};
use crate::peers::{read_frame, write_frame};
use crate::watch::wall_ms;

/// The protocol's name in the handshake.
pub const JOIN_PROTOCOL: &[u8] = b"ikada-join/1";
/// Longest question and answer.
const BYTES_MAX: usize = 16 << 10;
/// How much of the id of a token is logged; those that we draw are shorter.
const ID_CHARS_MAX: usize = 32;
/// How long one node may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// The pause between two rounds of asking.
const PAUSE: Duration = Duration::from_secs(1);
/// In the audit log, as the client port would answer: given, denied, told to wait, not possible.
const GIVEN: u16 = 200;
const DENIED: u16 = 403;
const TOO_OFTEN: u16 = 429;
const FAILED: u16 = 500;

/// A wish for a certificate.
#[derive(Clone, Encode, Decode)]
pub struct JoinAsk {
    /// Token id and secret; none to renew.
    #[n(0)]
    token: Option<(String, String)>,
    /// The node.
    #[n(1)]
    node: u64,
    /// Its public key.
    #[cbor(n(2), with = "minicbor::bytes")]
    public_key: Vec<u8>,
    /// Hosts under which it is reached.
    #[n(3)]
    hosts: Vec<String>,
}

/// What comes back.
#[derive(Debug, Clone, Encode, Decode)]
pub enum JoinAnswer {
    /// The authority's and the node's certificate.
    #[n(0)]
    Given(#[n(0)] String, #[n(1)] String),
    /// No; strangers are not told why.
    #[n(1)]
    Refused,
    /// The authority's key is kept on another node.
    #[n(2)]
    NotHere,
    /// Not now, whatever was shown: ask again.
    #[n(3)]
    Later,
}

/// Answers wishes, where the authority's key is.
pub struct JoinDesk {
    folder: PathBuf,
    authority: Authority,
    authority_pem: String,
    /// Slows guessing down.
    failures: Gatekeeper,
    one_at_a_time: Mutex<()>,
    /// Wishes that were refused.
    refused: AtomicU64,
    /// Hears of wishes and of what operators do to tokens. It ends before the desk does.
    audit: OnceLock<Weak<AuditLog>>,
    /// When the file of the tokens was last looked at.
    looked: Mutex<Option<SystemTime>>,
    /// Hears of certificates that replace others.
    newest: Newest,
}

impl JoinDesk {
    /// A desk for these papers; none where the authority's key is not. This node's own id is taken from then on, also where
    /// an older version did not note that.
    pub fn open(papers: &Papers, newest: Newest) -> Result<Option<JoinDesk>, TlsError> {
        let Some(authority) = papers.authority()? else { return Ok(None) };
        let own = CertificateDer::from_pem_slice(papers.node_pem.as_bytes()).ok();
        let own = own.as_ref().and_then(node_of).ok_or(TlsError::Key)?;
        let mut tokens = JoinTokens::open(&papers.folder)?;
        if !tokens.holds(own.name.node, &own.key) {
            tokens.hold(own.name.node, &own.key)?;
        }
        drop(tokens);
        Ok(Some(JoinDesk {
            folder: papers.folder.clone(),
            authority,
            authority_pem: papers.authority_pem.clone(),
            failures: Gatekeeper::default(),
            one_at_a_time: Mutex::default(),
            refused: AtomicU64::new(0),
            audit: OnceLock::new(),
            looked: Mutex::default(),
            newest,
        }))
    }

    /// From now on wishes, and what operators do to tokens, go to this log too.
    pub fn note_in(&self, log: &Arc<AuditLog>) {
        let _ = self.audit.set(Arc::downgrade(log));
    }

    /// Wishes that were refused.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Answers one wish, counts and notes it. `shown` is the certificate that the caller has already.
    pub fn answer(
        &self,
        ask: &JoinAsk,
        shown: Option<ShownNode>,
        from: Option<IpAddr>,
    ) -> JoinAnswer {
        // Nothing was looked at: a good token may have come from behind the address of a bad one.
        if self.failures.must_wait(from, wall_ms()) {
            self.refuse(Some(ask.node), from, TOO_OFTEN);
            return JoinAnswer::Later;
        }
        match self.decide(ask, shown, from) {
            JoinAnswer::Given(authority, node) => {
                self.note("GiveCertificate", ask.node.to_string(), GIVEN, from);
                JoinAnswer::Given(authority, node)
            }
            JoinAnswer::Later => {
                self.refuse(Some(ask.node), from, FAILED);
                JoinAnswer::Later
            }
            _ => self.refuse(Some(ask.node), from, DENIED),
        }
    }

    fn refuse(&self, node: Option<u64>, from: Option<IpAddr>, status: u16) -> JoinAnswer {
        self.refused.fetch_add(1, Ordering::Relaxed);
        let node = node.map(|node| node.to_string()).unwrap_or_default();
        self.note("GiveCertificate", node, status, from);
        JoinAnswer::Refused
    }

    fn note(&self, action: &'static str, object: String, status: u16, from: Option<IpAddr>) {
        let log = self.audit.get().and_then(Weak::upgrade);
        let Some(log) = log else { return };
        let note = Note::new(wall_ms(), Action::Other(action), status);
        log.add(Note { object: Some(object), source: from, ..note });
    }

    /// Puts into the audit log what operators did to the tokens, with files alone, since the last look.
    pub fn note_deeds(&self) -> Result<(), TlsError> {
        let Some(log) = self.audit.get().and_then(Weak::upgrade) else { return Ok(()) };
        let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        if !JoinTokens::changed(&self.folder, *looked).0 {
            return Ok(());
        }
        for deed in JoinTokens::open(&self.folder)?.take_deeds()? {
            let action = if deed.made { "CreateJoinToken" } else { "RevokeJoinToken" };
            log.add_deed(Note {
                object: Some(deed.id),
                ..Note::new(deed.time_ms, Action::Other(action), GIVEN)
            });
        }
        *looked = JoinTokens::changed(&self.folder, None).1;
        Ok(())
    }

    fn decide(&self, ask: &JoinAsk, shown: Option<ShownNode>, from: Option<IpAddr>) -> JoinAnswer {
        let _turn = self.one_at_a_time.lock().unwrap_or_else(PoisonError::into_inner);
        match self.judge(ask, shown) {
            Ok(Ok(node_pem)) => {
                info!(node = ask.node, "a certificate was given");
                JoinAnswer::Given(self.authority_pem.clone(), node_pem)
            }
            Ok(Err(why)) => {
                if self.failures.failed(from, wall_ms()) == Denied::Unknown {
                    let token = ask.token.as_ref().map(|(id, _)| shown_id(id));
                    warn!(node = ask.node, ?from, token, %why, "a certificate was refused");
                }
                JoinAnswer::Refused
            }
            // Its files cannot be read or written: what was shown may be good.
            Err(error) => {
                warn!(node = ask.node, %error, "a certificate could not be given");
                JoinAnswer::Later
            }
        }
    }

    /// The certificate, if the wish is a good one.
    fn judge(
        &self,
        ask: &JoinAsk,
        shown: Option<ShownNode>,
    ) -> Result<Result<String, Unfit>, TlsError> {
        let (now_ms, key) = (wall_ms(), ask.public_key.as_slice());
        let cluster = self.authority.cluster();
        let own = |shown: &ShownNode| shown.name.node == ask.node && shown.name.cluster == cluster;
        let serial = match (&ask.token, shown.filter(own)) {
            (None, None) => Err(Unfit::NothingShown),
            (None, Some(shown)) => {
                JoinTokens::open(&self.folder)?.renew(ask.node, &shown.key, key, now_ms)?
            }
            (Some((id, secret)), _) => {
                let secret = Secret::new(secret.clone());
                JoinTokens::open(&self.folder)?.spend(id, &secret, ask.node, key, now_ms)?
            }
        };
        let serial = match serial {
            Ok(serial) => serial,
            Err(unfit) => return Ok(Err(unfit)),
        };
        let signed = self.authority.sign_node((ask.node, serial), key, &ask.hosts)?;
        if ask.token.is_some() {
            // Whoever has an older key is that node no longer. A renewal counts once it is shown.
            self.newest.raise(ask.node, serial);
        }
        Ok(Ok(signed))
    }
}

/// An id as it may stand in a log, whatever a stranger sent.
fn shown_id(id: &str) -> String {
    id.chars().filter(char::is_ascii_alphanumeric).take(ID_CHARS_MAX).collect()
}

/// A node that has a join token and wants a certificate.
pub struct Newcomer {
    folder: PathBuf,
    key: rcgen::KeyPair,
    ask: JoinAsk,
    config: Arc<ClientConfig>,
}

impl Newcomer {
    /// Makes the node's key, or takes the one that it asked with before; nobody is asked yet.
    pub fn new(
        folder: PathBuf,
        token: &JoinToken,
        node: u64,
        hosts: Vec<String>,
    ) -> Result<Newcomer, TlsError> {
        let key = asking_key(&folder)?;
        let ask = JoinAsk {
            token: Some((token.id.clone(), token.secret.reveal().to_owned())),
            node,
            public_key: key.public_key_raw().to_vec(),
            hosts,
        };
        let config = Tls::pinned(token.authority)?;
        Ok(Newcomer { folder, key, ask, config })
    }

    /// Asks the peers in turn. Nothing, after a pause, if none of them could give a certificate: then ask again.
    pub async fn ask(&self, peers: &[String]) -> Result<Option<Papers>, TlsError> {
        let mut told = Vec::new();
        for peer in peers {
            match ask_one(peer, self.config.clone(), &self.ask).await {
                Ok(JoinAnswer::Given(authority_pem, node_pem)) => {
                    let key_pem = self.key.serialize_pem();
                    store_node(&self.folder, &key_pem, &authority_pem, &node_pem)?;
                    forget_asking_key(&self.folder)?;
                    let papers = Papers::load(&self.folder)?;
                    return papers.map(Some).ok_or(TlsError::Join("it is gone again".to_owned()));
                }
                Ok(JoinAnswer::Refused) => {
                    let node = self.ask.node;
                    return Err(TlsError::Join(format!(
                        "{peer} refuses the join token: it is wrong, used up, over or revoked, or node id {node} belongs to \
                         another key; make another with `ikada join-token create`, with `--node {node}` if this node lost its key"
                    )));
                }
                Ok(JoinAnswer::Later) => {
                    told.push(format!("{peer} cannot tell now; its log says why"));
                }
                Ok(JoinAnswer::NotHere) => told.push(format!("{peer} does not keep the authority")),
                Err(error) => told.push(format!("{peer}: {error}")),
            }
        }
        info!(asked = told.join("; "), "waiting for the node that gives certificates");
        tokio::time::sleep(PAUSE).await;
        Ok(None)
    }
}

/// Renews a node's certificate: by its own authority, or by asking the peers with the one it has.
pub(super) async fn renew(
    papers: &Papers,
    tls: &Tls,
    peers: &[String],
    hosts: &[String],
) -> Result<bool, TlsError> {
    // The same until it has its certificate: an answer that got lost is asked for again.
    let key = asking_key(&papers.folder)?;
    let (node, public_key) = (papers.name.node, key.public_key_raw().to_vec());
    let store = |authority_pem: &str, node_pem: &str| {
        store_node(&papers.folder, &key.serialize_pem(), authority_pem, node_pem)?;
        forget_asking_key(&papers.folder)
    };
    if let Some(authority) = papers.authority()? {
        let serial = JoinTokens::open(&papers.folder)?.hold(node, &public_key)?;
        let node_pem = authority.sign_node((node, serial), &public_key, hosts)?;
        return store(&papers.authority_pem, &node_pem).map(|()| true);
    }
    let ask = JoinAsk { token: None, node, public_key, hosts: hosts.to_vec() };
    for peer in peers {
        let answer = ask_one(peer, tls.joining(), &ask).await;
        if let Ok(JoinAnswer::Given(authority_pem, node_pem)) = answer {
            return store(&authority_pem, &node_pem).map(|()| true);
        }
    }
    Ok(false)
}

async fn ask_one(
    peer: &str,
    config: Arc<ClientConfig>,
    ask: &JoinAsk,
) -> std::io::Result<JoinAnswer> {
    let asking = async {
        let stream = TcpStream::connect(peer).await?;
        let mut stream = TlsConnector::from(config).connect(any_name(), stream).await?;
        write_frame(&mut stream, &minicbor::to_vec(ask).map_err(std::io::Error::other)?).await?;
        let answer = read_frame(&mut stream, BYTES_MAX).await?;
        let answer = answer.ok_or(std::io::ErrorKind::UnexpectedEof)?;
        minicbor::decode(&answer).map_err(std::io::Error::other)
    };
    tokio::time::timeout(PATIENCE, asking).await.map_err(|_| std::io::ErrorKind::TimedOut)?
}

/// Serves one wish on an accepted connection.
pub async fn serve_join(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    desk: Option<Arc<JoinDesk>>,
    shown: Option<ShownNode>,
    from: Option<IpAddr>,
) -> std::io::Result<()> {
    let bytes = read_frame(stream, BYTES_MAX).await?.ok_or(std::io::ErrorKind::UnexpectedEof)?;
    let answer = match (desk, minicbor::decode::<JoinAsk>(&bytes)) {
        (None, _) => JoinAnswer::NotHere,
        (Some(desk), Err(_)) => desk.refuse(None, from, DENIED),
        // Files are locked and written: not on a thread that serves sockets.
        (Some(desk), Ok(ask)) => {
            tokio::task::spawn_blocking(move || desk.answer(&ask, shown, from)).await?
        }
    };
    write_frame(stream, &minicbor::to_vec(&answer).map_err(std::io::Error::other)?).await
}

/// Nodes are known by the URI in their certificates, never by a host's name.
pub fn any_name() -> ServerName<'static> {
    ServerName::IpAddress(std::net::Ipv4Addr::LOCALHOST.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::Name;
    use crate::tls::authority::new_key;

    #[test]
    fn x_3_guessing_a_join_token_is_refused_and_slowed_down() {
        let folder = tempfile::tempdir().unwrap();
        let name = Name { cluster: 7, node: 1 };
        let papers = Papers::found(folder.path(), name, &["127.0.0.1".to_owned()], 2).unwrap();
        let newest = Newest::open(&papers.folder).unwrap();
        let desk = JoinDesk::open(&papers, newest).unwrap().unwrap();
        let text = std::fs::read_to_string(folder.path().join("join-token")).unwrap();
        let token = JoinToken::parse(&text).unwrap();
        let key = new_key().unwrap();
        let ask = |node: u64, secret: &str| JoinAsk {
            token: Some((token.id.clone(), secret.to_owned())),
            node,
            public_key: key.public_key_raw().to_vec(),
            hosts: vec!["10.0.0.2".to_owned()],
        };
        let (one, two) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        for guess in 0..10_000 {
            let answer = desk.answer(&ask(2, &format!("{guess:064x}")), None, Some(one));
            // Nothing that a guess is told says whether it was looked at and near.
            assert!(matches!(answer, JoinAnswer::Refused | JoinAnswer::Later));
        }
        let good = ask(2, token.secret.reveal());
        assert!(matches!(desk.answer(&good, None, Some(one)), JoinAnswer::Later), "must wait");
        assert!(matches!(desk.answer(&good, None, Some(two)), JoinAnswer::Given(..)));
        // Without a token only the node itself renews its certificate.
        let renewal = JoinAsk { token: None, ..ask(2, "") };
        let shown = |cluster, node| {
            let key = key.public_key_raw().to_vec();
            Some(ShownNode { name: Name { cluster, node }, serial: 1, key })
        };
        assert!(matches!(desk.answer(&renewal, shown(7, 2), None), JoinAnswer::Given(..)));
        for other in [None, shown(7, 3), shown(8, 2)] {
            assert!(matches!(desk.answer(&renewal, other, None), JoinAnswer::Refused));
        }
    }

    /// What a certificate says, as the port reads it.
    fn read_node(pem: &str) -> ShownNode {
        node_of(&CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()).unwrap()
    }

    #[test]
    fn x_2_a_key_that_was_replaced_is_good_for_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let name = Name { cluster: 7, node: 1 };
        let papers = Papers::found(folder.path(), name, &[], 1).unwrap();
        let newest = Newest::open(&papers.folder).unwrap();
        let desk = JoinDesk::open(&papers, newest.clone()).unwrap().unwrap();
        let create = |node| {
            let mut tokens = JoinTokens::open(&papers.folder).unwrap();
            tokens.create(&papers.authority_pem, super::super::JoinRole::Node, 1, None, node)
        };
        let ask = |token: Option<&JoinToken>, node, shown: Option<&ShownNode>| {
            let secret = |token: &JoinToken| (token.id.clone(), token.secret.reveal().to_owned());
            let public_key = new_key().unwrap().public_key_raw().to_vec();
            let ask = JoinAsk { token: token.map(secret), node, public_key, hosts: Vec::new() };
            match desk.answer(&ask, shown.cloned(), None) {
                JoinAnswer::Given(_, pem) => Some(read_node(&pem)),
                _ => None,
            }
        };
        let founder = read_node(&papers.node_pem);
        let any = create(None).unwrap();
        assert_eq!(ask(Some(&any), 1, None), None, "the founder's id is taken");
        let old = ask(Some(&any), 2, None).unwrap();
        assert!(founder.serial < old.serial && newest.is_newest(&old));
        let new = ask(Some(&create(Some(2)).unwrap()), 2, None).unwrap();
        assert!(newest.is_newest(&new) && !newest.is_newest(&old), "links are refused");
        assert_eq!(ask(None, 2, Some(&old)), None, "and so is a renewal");
        let renewed = ask(None, 2, Some(&new)).unwrap();
        assert!(newest.is_newest(&new), "until the next one is shown");
        assert!(newest.learn(&renewed) && !newest.is_newest(&new));
    }

    // As the runbook says: with copies of two files another node signs, and keys keep their ids.
    #[test]
    fn x_2_the_authoritys_key_moves_to_another_node() {
        let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let papers = Papers::found(first.path(), Name { cluster: 7, node: 1 }, &[], 2).unwrap();
        let newest = Newest::open(&papers.folder).unwrap();
        let desk = JoinDesk::open(&papers, newest).unwrap().unwrap();
        let text = std::fs::read_to_string(first.path().join("join-token")).unwrap();
        let token = JoinToken::parse(&text).unwrap();
        let wish = |node: u64, key: &rcgen::KeyPair, token: Option<&JoinToken>| JoinAsk {
            token: token.map(|token| (token.id.clone(), token.secret.reveal().to_owned())),
            node,
            public_key: key.public_key_raw().to_vec(),
            hosts: Vec::new(),
        };
        let given = |desk: &JoinDesk, ask: &JoinAsk, shown| match desk.answer(ask, shown, None) {
            JoinAnswer::Given(_, pem) => pem,
            other => panic!("{other:?}"),
        };
        let (two, three) = (new_key().unwrap(), new_key().unwrap());
        let pem_two = given(&desk, &wish(2, &two, Some(&token)), None);
        let pem_three = given(&desk, &wish(3, &three, Some(&token)), None);
        let folder = Papers::folder(second.path());
        store_node(&folder, &two.serialize_pem(), &papers.authority_pem, &pem_two).unwrap();
        for file in ["ca.key", "joins.json"] {
            std::fs::copy(papers.folder.join(file), folder.join(file)).unwrap();
        }
        let moved = Papers::load(&folder).unwrap().unwrap();
        let newest = Newest::open(&folder).unwrap();
        let desk = JoinDesk::open(&moved, newest).unwrap().unwrap();
        let fresh = new_key().unwrap();
        let renewed = given(&desk, &wish(3, &fresh, None), Some(read_node(&pem_three)));
        assert!(read_node(&renewed).serial > read_node(&pem_three).serial);
        let thief = wish(3, &new_key().unwrap(), Some(&token));
        assert!(matches!(desk.answer(&thief, None, None), JoinAnswer::Refused), "the id is taken");
    }

    #[test]
    fn x_3_a_desk_whose_files_fail_asks_to_come_again() {
        let folder = tempfile::tempdir().unwrap();
        let name = Name { cluster: 7, node: 1 };
        let papers = Papers::found(folder.path(), name, &[], 1).unwrap();
        let newest = Newest::open(&papers.folder).unwrap();
        let desk = JoinDesk::open(&papers, newest).unwrap().unwrap();
        let text = std::fs::read_to_string(folder.path().join("join-token")).unwrap();
        let token = JoinToken::parse(&text).unwrap();
        let ask = JoinAsk {
            token: Some((token.id.clone(), token.secret.reveal().to_owned())),
            node: 2,
            public_key: new_key().unwrap().public_key_raw().to_vec(),
            hosts: Vec::new(),
        };
        let file = papers.folder.join("joins.json");
        let good = std::fs::read(&file).unwrap();
        std::fs::write(&file, "{").unwrap();
        assert!(matches!(desk.answer(&ask, None, None), JoinAnswer::Later));
        std::fs::write(&file, good).unwrap();
        assert!(matches!(desk.answer(&ask, None, None), JoinAnswer::Given(..)));
    }

    #[test]
    fn x_3_what_strangers_call_a_token_is_logged_in_few_plain_letters() {
        assert_eq!(shown_id("3f09c2a11b7e"), "3f09c2a11b7e");
        assert_eq!(shown_id(&format!("a\n\u{1b}[2J{}", "b".repeat(999))).len(), ID_CHARS_MAX);
        assert!(!shown_id("a\nb\u{1b}c").contains(['\n', '\u{1b}']));
    }

    #[test]
    fn x_3_the_founder_of_an_older_version_keeps_its_id() {
        let folder = tempfile::tempdir().unwrap();
        let name = Name { cluster: 7, node: 1 };
        let papers = Papers::found(folder.path(), name, &[], 1).unwrap();
        // Then nothing was noted of it, and a token could take its id.
        for noted in ["[]".to_owned(), "[{\"node\":1,\"key\":\"00\"}]".to_owned()] {
            let text = format!("{{\"tokens\":[],\"issued\":{noted}}}");
            std::fs::write(papers.folder.join("joins.json"), text).unwrap();
            let newest = Newest::open(&papers.folder).unwrap();
            let _desk = JoinDesk::open(&papers, newest).unwrap().unwrap();
            let tokens = JoinTokens::open(&papers.folder).unwrap();
            assert!(tokens.holds(1, &read_node(&papers.node_pem).key));
        }
    }
}
