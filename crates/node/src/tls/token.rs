//! Join tokens: what a new node shows to be given a certificate (X3).
//!
//! A token's text is `ikada-join_<digest>_<role>_<id>_<secret>`: the digest of the authority's certificate, so that the
//! newcomer knows whom to believe; the role; and 256 random bits. Where the authority's key is, a file keeps digests of
//! secrets, ends and uses left, and which node ids were given to which keys.
//!
//! A node id belongs to the key that it was given to, the founder's included, whoever else knows a token. Only a token that
//! an operator makes for this very id afterwards gives it to another key: so a node that lost its key comes back. A
//! certificate is renewed for the key that it was given to, and for no key before that.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde::{Deserialize, Serialize};
use tracing::warn;

use super::authority::TlsError;
use super::files::write;
use crate::auth::{Secret, digest, draw_word, is_secret_of};
use crate::watch::wall_ms;
use ikada_api::state::SecretDigest;

const MARK: &str = "ikada-join";
const FILE: &str = "joins.json";
const LOCK: &str = "joins.lock";
/// Life of a token whose maker does not say.
const TTL_MS_DEFAULT: u64 = 24 * 3600 * 1000;
/// Most tokens kept; those that ended make room.
const TOKENS_MAX: usize = 64;
/// Most node ids remembered; more are given to nobody, since one that is forgotten could be taken.
const ISSUED_MAX: usize = 10_000;
/// Most deeds that wait for the audit log; more than a token a minute for a day without a node running.
const DEEDS_MAX: usize = 1_440;

/// What the bearer may become.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JoinRole {
    /// A node of the cluster.
    Node,
}

impl JoinRole {
    /// The role's name.
    pub fn as_str(self) -> &'static str {
        match self {
            JoinRole::Node => "node",
        }
    }
}

/// A join token's parts.
#[derive(Debug, Clone)]
pub struct JoinToken {
    /// Digest of the authority's certificate.
    pub authority: [u8; 32],
    /// What the bearer may become.
    pub role: JoinRole,
    /// Names it.
    pub id: String,
    /// Proves it.
    pub secret: Secret,
}

impl JoinToken {
    /// Reads a token's text.
    pub fn parse(text: &str) -> Option<JoinToken> {
        let mut parts = text.trim().strip_prefix(MARK)?.strip_prefix('_')?.split('_');
        let (authority, role) = (parts.next()?, parts.next()?);
        let (id, secret) = (parts.next()?.to_owned(), parts.next()?.to_owned());
        if parts.next().is_some() || role != JoinRole::Node.as_str() || secret.is_empty() {
            return None;
        }
        let authority = *blake3::Hash::from_hex(authority).ok()?.as_bytes();
        Some(JoinToken { authority, role: JoinRole::Node, id, secret: Secret::new(secret) })
    }

    /// The whole text.
    pub fn reveal(&self) -> Secret {
        let authority = blake3::Hash::from_bytes(self.authority).to_hex();
        let (role, id, secret) = (self.role.as_str(), &self.id, self.secret.reveal());
        Secret::new(format!("{MARK}_{authority}_{role}_{id}_{secret}"))
    }
}

/// What is kept of a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// Names it.
    pub id: String,
    /// What the bearer may become.
    pub role: JoinRole,
    /// Digest of its secret, as hexadecimal digits.
    digest: String,
    /// When it ends, ms since 1970.
    pub expires_ms: u64,
    /// How often it may still be used.
    pub uses_left: u32,
    /// Its place among all that were ever made; 0 for those of older versions.
    #[serde(default)]
    number: u64,
    /// The one node that may use it, whichever key had its id before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<u64>,
}

impl Grant {
    /// Whether it holds for a node now.
    fn check(&self, secret: &Secret, node: u64, now_ms: u64) -> Result<(), Unfit> {
        let same = blake3::Hash::from_hex(&self.digest)
            .is_ok_and(|stored| is_secret_of(secret, &SecretDigest(*stored.as_bytes())));
        match self.node {
            _ if !same => Err(Unfit::WrongSecret),
            Some(only) if only != node => Err(Unfit::ForOther(only)),
            _ if self.expires_ms <= now_ms => Err(Unfit::Expired),
            _ => Ok(()),
        }
    }
}

/// A node id and the key that it was given to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Issued {
    node: u64,
    key: String,
    /// How many tokens had been made by then: a later one for this node frees the id.
    #[serde(default)]
    made: u64,
    /// The key before this one, until this one is renewed: its bearer may not have heard of this one yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    before: Option<String>,
    /// Whether `key` is surely the one in use: older versions did not note renewals.
    #[serde(default)]
    sure: bool,
}

/// Why a node is given no certificate: for whoever runs the cluster. Strangers are not told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// No token, and no certificate of this node.
    #[error("it showed neither a join token nor a certificate of this node")]
    NothingShown,
    /// No such token.
    #[error("there is no such join token: it was revoked, or is of another cluster")]
    Unknown,
    /// Another secret than the token's.
    #[error("the join token's secret is wrong")]
    WrongSecret,
    /// The token is for one node.
    #[error("the join token is for node {0} alone")]
    ForOther(u64),
    /// Its time is over.
    #[error("the join token has expired")]
    Expired,
    /// It was used as often as it may be.
    #[error("the join token is used up")]
    UsedUp,
    /// The id belongs to another key.
    #[error("the node id belongs to another key; `ikada join-token create --node` frees it")]
    Taken,
    /// A newer key took the place of the one that asks.
    #[error("the key was replaced by a newer one of this node")]
    Replaced,
    /// As many ids were given as may be.
    #[error("{ISSUED_MAX} node ids were given, and no more are")]
    Full,
}

/// What was done to the tokens by an operator, kept until a node has put it into its audit log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deed {
    /// When, ms since 1970.
    pub time_ms: u64,
    /// Whether a token was made; otherwise one was revoked.
    pub made: bool,
    /// The token.
    pub id: String,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Content {
    tokens: Vec<Grant>,
    issued: Vec<Issued>,
    /// How many tokens were ever made.
    #[serde(default)]
    made: u64,
    /// The newest certificate's serial number.
    #[serde(default)]
    serial: u64,
    /// Not in the audit log yet, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    deeds: Vec<Deed>,
}

/// All join tokens of a cluster, locked while open.
#[derive(Debug)]
pub struct JoinTokens {
    path: PathBuf,
    content: Content,
    _lock: File,
}

impl JoinTokens {
    /// Opens them in the folder of the authority's key.
    pub fn open(folder: &Path) -> Result<JoinTokens, TlsError> {
        let path = folder.join(FILE);
        let file = |source| TlsError::File { path: path.display().to_string(), source };
        let lock = File::create(folder.join(LOCK)).map_err(file)?;
        lock.lock().map_err(file)?;
        let content = match std::fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| TlsError::Content {
                path: path.display().to_string(),
                why: error.to_string(),
            })?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Content::default(),
            Err(error) => return Err(file(error)),
        };
        Ok(JoinTokens { path, content, _lock: lock })
    }

    /// The tokens, those that ended included.
    pub fn list(&self) -> &[Grant] {
        &self.content.tokens
    }

    /// Makes a token for so many uses, or for one node alone; it lasts a day unless said otherwise.
    pub fn create(
        &mut self,
        authority_pem: &str,
        role: JoinRole,
        uses: u32,
        ttl_ms: Option<u64>,
        node: Option<u64>,
    ) -> Result<JoinToken, TlsError> {
        let certificate = CertificateDer::from_pem_slice(authority_pem.as_bytes())
            .map_err(|error| TlsError::Setup(format!("authority: {error}")))?;
        let random = |source| TlsError::File { path: "random numbers".to_owned(), source };
        let token = JoinToken {
            authority: *blake3::hash(&certificate).as_bytes(),
            role,
            id: draw_word().map_err(random)?,
            secret: Secret::draw().map_err(random)?,
        };
        let now_ms = wall_ms();
        self.content.tokens.retain(|grant| grant.expires_ms > now_ms && grant.uses_left > 0);
        if self.content.tokens.len() >= TOKENS_MAX {
            return Err(TlsError::Join(format!("{TOKENS_MAX} join tokens exist; revoke some")));
        }
        let expires_ms = now_ms.saturating_add(ttl_ms.unwrap_or(TTL_MS_DEFAULT));
        let digest = hex(&token.secret);
        let id = token.id.clone();
        self.content.made += 1;
        let number = self.content.made;
        let grant = Grant { id, role, digest, expires_ms, uses_left: uses, number, node };
        self.content.tokens.push(grant);
        self.note(true, &token.id);
        self.store()?;
        Ok(token)
    }

    /// Ends a token; false if there is none.
    pub fn revoke(&mut self, id: &str) -> Result<bool, TlsError> {
        let before = self.content.tokens.len();
        self.content.tokens.retain(|grant| grant.id != id);
        let is_gone = self.content.tokens.len() < before;
        if is_gone {
            self.note(false, id);
        }
        self.store()?;
        Ok(is_gone)
    }

    fn note(&mut self, made: bool, id: &str) {
        if self.content.deeds.len() < DEEDS_MAX {
            self.content.deeds.push(Deed { time_ms: wall_ms(), made, id: id.to_owned() });
        }
    }

    /// What operators did since this was last asked.
    pub fn take_deeds(&mut self) -> Result<Vec<Deed>, TlsError> {
        let deeds = std::mem::take(&mut self.content.deeds);
        if !deeds.is_empty() {
            self.store()?;
        }
        Ok(deeds)
    }

    /// Whether operators may have done something since a look at the file; with what to look with next time.
    pub fn changed(folder: &Path, before: Option<SystemTime>) -> (bool, Option<SystemTime>) {
        let now = std::fs::metadata(folder.join(FILE)).and_then(|file| file.modified()).ok();
        (now != before, now)
    }

    /// Uses a token once for a node; gives the serial number of its certificate, or why the token does not hold.
    pub fn spend(
        &mut self,
        id: &str,
        secret: &Secret,
        node: u64,
        public_key: &[u8],
        now_ms: u64,
    ) -> Result<Result<u64, Unfit>, TlsError> {
        let key = print_of(public_key);
        let found = self.content.tokens.iter_mut().find(|grant| grant.id == id);
        let Some(grant) = found else { return Ok(Err(Unfit::Unknown)) };
        if let Err(unfit) = grant.check(secret, node, now_ms) {
            return Ok(Err(unfit));
        }
        let taken = self.content.issued.iter().find(|issued| issued.node == node);
        // The same node with the same key asks again because an answer got lost.
        let again = taken.is_some_and(|issued| issued.key == key);
        let frees = |issued: &Issued| grant.node.is_some() && grant.number > issued.made;
        if !again && taken.is_some_and(|issued| !frees(issued)) {
            return Ok(Err(Unfit::Taken));
        }
        if !again && grant.uses_left == 0 {
            return Ok(Err(Unfit::UsedUp));
        }
        if !again {
            grant.uses_left -= 1;
            if taken.is_some() {
                warn!(node, "the id of this node was given to another key, by a join token for it");
            }
            let made = self.content.made;
            let issued = Issued { node, key, made, before: None, sure: true };
            if !self.record(issued) {
                return Ok(Err(Unfit::Full));
            }
        }
        self.next_serial(now_ms).map(Ok)
    }

    /// The certificate of this key is renewed for another one; gives the serial number. Not if the key is not the one that
    /// the node's id was last given to.
    pub fn renew(
        &mut self,
        node: u64,
        shown_key: &[u8],
        public_key: &[u8],
        now_ms: u64,
    ) -> Result<Result<u64, Unfit>, TlsError> {
        let (shown, key) = (print_of(shown_key), print_of(public_key));
        let made = self.content.made;
        let issued = self.content.issued.iter().find(|issued| issued.node == node);
        let good = match issued {
            Some(issued) if issued.sure && issued.key != shown => {
                // An answer got lost: it asks again, with the same keys.
                issued.key == key && issued.before.as_ref() == Some(&shown)
            }
            // Its certificate is good, and nothing else is known.
            _ => true,
        };
        let made = issued.map_or(made, |issued| issued.made);
        let issued = Issued { node, key, made, before: Some(shown), sure: true };
        match (good, good && self.record(issued)) {
            (_, true) => self.next_serial(now_ms).map(Ok),
            (true, false) => Ok(Err(Unfit::Full)),
            (false, _) => Ok(Err(Unfit::Replaced)),
        }
    }

    /// The id of the node that keeps the authority belongs to this key; gives the serial number of its next certificate.
    pub fn hold(&mut self, node: u64, public_key: &[u8]) -> Result<u64, TlsError> {
        let (key, made) = (print_of(public_key), self.content.made);
        self.record(Issued { node, key, made, before: None, sure: true });
        self.next_serial(wall_ms())
    }

    /// Whether a node's id belongs to this key.
    pub fn holds(&self, node: u64, public_key: &[u8]) -> bool {
        let key = print_of(public_key);
        self.content.issued.iter().any(|issued| issued.node == node && issued.key == key)
    }

    /// Notes whom an id belongs to; false if there is no room for another id.
    fn record(&mut self, issued: Issued) -> bool {
        let place = self.content.issued.iter().position(|known| known.node == issued.node);
        match place {
            Some(place) => self.content.issued[place] = issued,
            None if self.content.issued.len() >= ISSUED_MAX => {
                warn!(node = issued.node, "{ISSUED_MAX} node ids were given: no other is");
                return false;
            }
            None => self.content.issued.push(issued),
        }
        true
    }

    /// A number larger than all before it, also if the file was lost or the clock set back; stores everything.
    fn next_serial(&mut self, now_ms: u64) -> Result<u64, TlsError> {
        self.content.serial = now_ms.max(self.content.serial + 1);
        self.store()?;
        Ok(self.content.serial)
    }

    fn store(&self) -> Result<(), TlsError> {
        let text = serde_json::to_string(&self.content)
            .map_err(|error| TlsError::Setup(error.to_string()))?;
        write(&self.path, &text, 0o600)
    }
}

/// By which a key is known here.
fn print_of(public_key: &[u8]) -> String {
    blake3::hash(public_key).to_hex().to_string()
}

fn hex(secret: &Secret) -> String {
    blake3::Hash::from_bytes(digest(secret).0).to_hex().to_string()
}

#[cfg(test)]
#[path = "token_test.rs"]
mod token_test;
