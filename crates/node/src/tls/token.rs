//! Join tokens: what a new node shows to be given a certificate (X3).
//!
//! A token's text is `ikada-join_<digest>_<role>_<id>_<secret>`: the digest of the authority's certificate, so that the
//! newcomer knows whom to believe; the role; and 256 random bits. Where the authority's key is, a file keeps digests of
//! secrets, ends and uses left, and which node ids were given to which keys.
//!
//! A node id belongs to the key that it was given to, whoever else knows the same token. Only a token that an operator
//! makes afterwards gives it to another key: so a node that lost its key comes back.

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
/// Most node ids remembered.
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
}

/// A node id and the key that it was given to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Issued {
    node: u64,
    key: String,
    /// How many tokens had been made by then: a later one frees the id.
    #[serde(default)]
    made: u64,
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

    /// Makes a token for so many uses; it lasts a day unless said otherwise.
    pub fn create(
        &mut self,
        authority_pem: &str,
        role: JoinRole,
        uses: u32,
        ttl_ms: Option<u64>,
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
        self.content.tokens.push(Grant { id, role, digest, expires_ms, uses_left: uses, number });
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

    /// Uses a token once for a node; false if it does not hold, which is all that a stranger learns.
    pub fn spend(
        &mut self,
        id: &str,
        secret: &Secret,
        node: u64,
        public_key: &[u8],
        now_ms: u64,
    ) -> Result<bool, TlsError> {
        let key = blake3::hash(public_key).to_hex().to_string();
        let found = self.content.tokens.iter_mut().find(|grant| grant.id == id);
        let Some(grant) = found else { return Ok(false) };
        let same = blake3::Hash::from_hex(&grant.digest)
            .is_ok_and(|stored| is_secret_of(secret, &SecretDigest(*stored.as_bytes())));
        if !same || grant.expires_ms <= now_ms {
            return Ok(false);
        }
        let taken = self.content.issued.iter().position(|issued| issued.node == node);
        if let Some(place) = taken {
            let issued = &self.content.issued[place];
            if issued.key == key {
                // The same node with the same key asks again because an answer got lost.
                return Ok(true);
            }
            if grant.number <= issued.made {
                return Ok(false);
            }
        }
        if grant.uses_left == 0 {
            return Ok(false);
        }
        grant.uses_left -= 1;
        if let Some(place) = taken {
            self.content.issued.remove(place);
            warn!(node, "the id of this node was given to another key, by a newer join token");
        }
        if self.content.issued.len() >= ISSUED_MAX {
            self.content.issued.remove(0);
        }
        self.content.issued.push(Issued { node, key, made: self.content.made });
        self.store()?;
        Ok(true)
    }

    fn store(&self) -> Result<(), TlsError> {
        let text = serde_json::to_string(&self.content)
            .map_err(|error| TlsError::Setup(error.to_string()))?;
        write(&self.path, &text, 0o600)
    }
}

fn hex(secret: &Secret) -> String {
    blake3::Hash::from_bytes(digest(secret).0).to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::Authority;

    fn opened(folder: &Path) -> (JoinTokens, String) {
        let (_, pem, _) = Authority::make(7).unwrap();
        (JoinTokens::open(folder).unwrap(), pem)
    }

    #[test]
    fn x_3_a_token_is_spent_revoked_and_ends() {
        let folder = tempfile::tempdir().unwrap();
        let (mut tokens, pem) = opened(folder.path());
        let token = tokens.create(&pem, JoinRole::Node, 1, Some(1_000)).unwrap();
        let now_ms = wall_ms();
        let mut spend = |token: &JoinToken, node, key: &[u8], now_ms| {
            tokens.spend(&token.id, &token.secret, node, key, now_ms).unwrap()
        };
        let forged = JoinToken { secret: Secret::draw().unwrap(), ..token.clone() };
        assert!(!spend(&forged, 2, b"k", now_ms), "wrong secret");
        assert!(!spend(&token, 2, b"k", now_ms + 10_000), "ended");
        assert!(spend(&token, 2, b"k", now_ms));
        assert!(spend(&token, 2, b"k", now_ms), "a lost answer is asked for again");
        assert!(!spend(&token, 2, b"other", now_ms), "the id is taken");
        assert!(!spend(&token, 3, b"k3", now_ms), "used up");
        let second = tokens.create(&pem, JoinRole::Node, 5, None).unwrap();
        assert!(tokens.revoke(&second.id).unwrap() && !tokens.revoke(&second.id).unwrap());
        assert!(!tokens.spend(&second.id, &second.secret, 9, b"k9", now_ms).unwrap());
    }

    #[test]
    fn x_3_a_lost_key_is_replaced_by_a_newer_token_alone() {
        let folder = tempfile::tempdir().unwrap();
        let (mut tokens, pem) = opened(folder.path());
        let first = tokens.create(&pem, JoinRole::Node, 5, None).unwrap();
        let spend = |tokens: &mut JoinTokens, token: &JoinToken, node, key: &[u8]| {
            tokens.spend(&token.id, &token.secret, node, key, wall_ms()).unwrap()
        };
        assert!(spend(&mut tokens, &first, 2, b"old") && spend(&mut tokens, &first, 3, b"k3"));
        assert!(!spend(&mut tokens, &first, 2, b"new"), "whoever knows the token is not node 2");
        let second = tokens.create(&pem, JoinRole::Node, 2, None).unwrap();
        // Files of before had no numbers.
        drop(tokens);
        let mut tokens = JoinTokens::open(folder.path()).unwrap();
        assert!(spend(&mut tokens, &second, 2, b"new"));
        assert!(spend(&mut tokens, &second, 2, b"new"), "a lost answer is asked for again");
        assert!(!spend(&mut tokens, &second, 2, b"third"), "and the id is taken again");
        assert!(!spend(&mut tokens, &first, 2, b"old"), "the old key is not node 2 any more");
        assert!(spend(&mut tokens, &second, 4, b"k4"));
        assert!(!spend(&mut tokens, &second, 3, b"k33"), "used up");
    }

    #[test]
    fn x_3_a_file_of_an_older_version_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let key = blake3::hash(b"old").to_hex();
        let text = format!("{{\"tokens\":[],\"issued\":[{{\"node\":2,\"key\":\"{key}\"}}]}}");
        std::fs::write(folder.path().join(FILE), text).unwrap();
        let (mut tokens, pem) = opened(folder.path());
        let token = tokens.create(&pem, JoinRole::Node, 1, None).unwrap();
        assert!(tokens.spend(&token.id, &token.secret, 2, b"new", wall_ms()).unwrap());
    }

    #[test]
    fn x_15_what_operators_did_waits_for_the_audit_log() {
        let folder = tempfile::tempdir().unwrap();
        let (mut tokens, pem) = opened(folder.path());
        let (_, looked) = JoinTokens::changed(folder.path(), None);
        let token = tokens.create(&pem, JoinRole::Node, 1, None).unwrap();
        assert!(JoinTokens::changed(folder.path(), looked).0);
        tokens.revoke(&token.id).unwrap();
        tokens.revoke("nothing").unwrap();
        drop(tokens);
        let mut tokens = JoinTokens::open(folder.path()).unwrap();
        let deeds = tokens.take_deeds().unwrap();
        let told: Vec<_> = deeds.iter().map(|deed| (deed.made, deed.id.as_str())).collect();
        assert_eq!(told, [(true, token.id.as_str()), (false, token.id.as_str())]);
        assert!(tokens.take_deeds().unwrap().is_empty());
    }

    #[test]
    fn x_3_a_token_is_stored_hashed_and_returns_from_its_text() {
        let folder = tempfile::tempdir().unwrap();
        let (mut tokens, pem) = opened(folder.path());
        let token = tokens.create(&pem, JoinRole::Node, 1, None).unwrap();
        let stored = std::fs::read_to_string(folder.path().join(FILE)).unwrap();
        assert!(!stored.contains(token.secret.reveal()));
        let text = token.reveal();
        let again = JoinToken::parse(text.reveal()).unwrap();
        assert_eq!((again.authority, &again.id), (token.authority, &token.id));
        assert!(JoinToken::parse("ikada-join_00_node_a_b").is_none());
        assert!(JoinToken::parse(&text.reveal().replace("_node_", "_worker_")).is_none());
        assert!(!format!("{token:?}").contains(token.secret.reveal()));
    }
}
