//! The tokens at hand, and whether a caller's is among them.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use ikada_api::state::{Role, Token, TokenId};
use tokio::sync::watch;

use super::failures::Failures;
use super::secret::{CERTIFICATE_NAME, S3_NAME, is_secret_of, s3_secret};
use super::{Principal, TokenText};
use crate::metrics::TokenEnds;
use crate::tls::Shown;

/// How often the tokens are looked at.
pub const REFRESH_EVERY: Duration = Duration::from_millis(500);

/// Why a caller is not let in. It is told no more than this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denied {
    /// No token, or none that holds.
    Unknown,
    /// Too many failed tries from its address.
    TooOften,
}

/// What is wrong with what a caller showed: for whoever runs the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// No text of a token of ours.
    #[error("it is no token of Ikada")]
    NoToken,
    /// Nothing of this name is recorded.
    #[error("it is not recorded: it was revoked, or is of another cluster")]
    Unknown,
    /// The id is known, and its secret is another.
    #[error("the id is known, and the secret is wrong")]
    WrongSecret,
    /// Its time is over.
    #[error("it has expired")]
    Expired,
    /// A certificate with another name or role than was recorded, or of another cluster.
    #[error("the certificate's name is not the one that was recorded")]
    OtherName,
}

#[derive(Debug, Default)]
struct Table {
    tokens: Vec<Arc<Token>>,
    known: HashMap<TokenId, (Arc<Token>, Arc<Principal>)>,
    /// Records of certificates by digest.
    certificates: HashMap<[u8; 32], TokenId>,
}

/// Knows callers by their tokens.
#[derive(Debug)]
pub struct Gatekeeper {
    table: RwLock<Arc<Table>>,
    /// Changes whenever the tokens do.
    news: watch::Sender<u64>,
    failures: Mutex<Failures>,
}

impl Default for Gatekeeper {
    fn default() -> Self {
        Gatekeeper {
            table: RwLock::default(),
            news: watch::Sender::new(0),
            failures: Mutex::default(),
        }
    }
}

impl Gatekeeper {
    /// Takes the tokens as they are now.
    pub fn learn(&self, tokens: Vec<Arc<Token>>) {
        if self.table().tokens == tokens {
            return;
        }
        let known = tokens.iter().map(|token| {
            let principal = Arc::new(Principal::of_token(token));
            (token.id.clone(), (token.clone(), principal))
        });
        let of_certificates =
            tokens.iter().filter(|token| token.name.as_str().starts_with(CERTIFICATE_NAME));
        let certificates = of_certificates.map(|token| (token.digest.0, token.id.clone()));
        let table = Table { known: known.collect(), certificates: certificates.collect(), tokens };
        *self.table.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(table);
        self.news.send_modify(|version| *version += 1);
    }

    /// Whether a token of this id is at hand.
    pub fn knows(&self, id: &TokenId) -> bool {
        self.table().known.contains_key(id)
    }

    /// The caller that a token stands for, if it holds now.
    pub fn check(&self, token: &TokenText, now_ms: u64) -> Result<Arc<Principal>, Flaw> {
        let table = self.table();
        let (stored, principal) = table.known.get(&token.id).ok_or(Flaw::Unknown)?;
        match is_secret_of(&token.secret, &stored.digest) {
            false => Err(Flaw::WrongSecret),
            true if stored.is_over(now_ms) => Err(Flaw::Expired),
            true => Ok(principal.clone()),
        }
    }

    /// The caller that an S3 key stands for, with its secret key, if it holds now. Other tokens are none.
    pub fn s3_key(&self, id: &str, now_ms: u64) -> Option<(Arc<Principal>, String)> {
        let table = self.table();
        let (stored, principal) = table.known.get(&TokenId::parse(id).ok()?)?;
        let holds = stored.name.as_str().starts_with(S3_NAME) && !stored.is_over(now_ms);
        holds.then(|| (principal.clone(), s3_secret(&stored.digest)))
    }

    /// Whether a certificate is recorded.
    pub fn knows_certificate(&self, shown: &Shown) -> bool {
        self.table().certificates.contains_key(&shown.digest.0)
    }

    /// The caller that a certificate stands for: recorded under the name and role that it bears, and not over. The
    /// handshake has proved that the caller has its key, and that the cluster's authority signed it.
    pub fn check_certificate(
        &self,
        shown: &Shown,
        cluster: u64,
        now_ms: u64,
    ) -> Result<Arc<Principal>, Flaw> {
        let named = shown.name.as_ref().filter(|name| name.cluster == cluster);
        let name = named.ok_or(Flaw::OtherName)?;
        let table = self.table();
        let id = table.certificates.get(&shown.digest.0);
        let (stored, principal) = id.and_then(|id| table.known.get(id)).ok_or(Flaw::Unknown)?;
        let recorded = stored.name.as_str().strip_prefix(CERTIFICATE_NAME);
        match recorded == Some(name.name.as_str()) && stored.role == name.role {
            false => Err(Flaw::OtherName),
            true if stored.is_over(now_ms) => Err(Flaw::Expired),
            true => Ok(principal.clone()),
        }
    }

    /// Whether a caller that was let in would be let in again.
    pub fn still_holds(&self, principal: &Principal, now_ms: u64) -> bool {
        let Some(id) = &principal.token else { return false };
        let table = self.table();
        table
            .known
            .get(id)
            .is_some_and(|(token, known)| **known == *principal && !token.is_over(now_ms))
    }

    /// When tokens end: all of them, and those that may make others.
    pub fn ends(&self, now_ms: u64) -> TokenEnds {
        let table = self.table();
        let alive = || table.tokens.iter().filter(|token| !token.is_over(now_ms));
        let left = |token: &Token| {
            let ends = token.expires_ms != 0;
            ends.then(|| token.expires_ms.saturating_sub(now_ms) / 1_000)
        };
        let rules = |token: &&Arc<Token>| {
            let opens_s3_alone = token.name.as_str().starts_with(S3_NAME);
            token.role == Role::Admin && token.namespaces.is_empty() && !opens_s3_alone
        };
        let next_s = alive().filter_map(|token| left(token)).min();
        // One that never ends leaves nothing to tell; before tokens are known there is nothing either.
        let admins: Option<Vec<u64>> = alive().filter(rules).map(|token| left(token)).collect();
        let known = !table.tokens.is_empty();
        let admin_s = admins.filter(|_| known).map(|left| left.into_iter().max().unwrap_or(0));
        TokenEnds { next_s, admin_s }
    }

    /// Done when a caller's token no longer holds.
    pub async fn revoked(&self, principal: &Principal, now_ms: fn() -> u64) {
        let mut news = self.news.subscribe();
        while self.still_holds(principal, now_ms()) {
            // The end of a token's time is no news.
            let _ = tokio::time::timeout(REFRESH_EVERY, news.changed()).await;
        }
    }

    /// Notes a failed try.
    pub fn failed(&self, address: Option<IpAddr>, now_ms: u64) -> Denied {
        let Some(address) = address else { return Denied::Unknown };
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        match failures.count(address, now_ms) {
            true => Denied::Unknown,
            false => Denied::TooOften,
        }
    }

    /// Whether an address has failed so often that it is not even listened to.
    pub fn must_wait(&self, address: Option<IpAddr>, now_ms: u64) -> bool {
        let failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        address.is_some_and(|address| failures.must_wait(address, now_ms))
    }

    fn table(&self) -> Arc<Table> {
        self.table.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use ikada_api::state::PrincipalName;

    use super::*;
    use crate::auth::secret::digest;

    fn stored(text: &TokenText, expires_ms: u64) -> Arc<Token> {
        Arc::new(Token {
            id: text.id.clone(),
            name: PrincipalName::parse("ann").unwrap(),
            digest: digest(&text.secret),
            role: Role::Viewer,
            namespaces: Vec::new(),
            created_ms: 0,
            expires_ms,
        })
    }

    #[test]
    fn x_17_only_the_right_secret_in_its_time_is_known() {
        let (ann, other) = (TokenText::draw().unwrap(), TokenText::draw().unwrap());
        let gatekeeper = Gatekeeper::default();
        assert_eq!(gatekeeper.check(&ann, 0), Err(Flaw::Unknown), "nothing is known yet");
        gatekeeper.learn(vec![stored(&ann, 100)]);
        let principal = gatekeeper.check(&ann, 99).unwrap();
        assert_eq!((principal.name.as_str(), principal.role), ("ann", Role::Viewer));
        assert_eq!(gatekeeper.check(&ann, 100), Err(Flaw::Expired));
        let forged = TokenText { id: ann.id, secret: other.secret.clone() };
        // Whoever has not the secret is not told that the time is over, either.
        assert_eq!(gatekeeper.check(&forged, 100), Err(Flaw::WrongSecret));
        assert_eq!(gatekeeper.check(&other, 0), Err(Flaw::Unknown));
    }

    #[test]
    fn x_17_when_tokens_end_is_known_before_they_do() {
        let gatekeeper = Gatekeeper::default();
        assert_eq!(gatekeeper.ends(0), TokenEnds::default(), "nothing is known yet");
        let token = |name: &str, role, expires_ms| {
            let text = TokenText::draw().unwrap();
            let name = PrincipalName::parse(name).unwrap();
            Arc::new(Token { name, role, ..(*stored(&text, expires_ms)).clone() })
        };
        let over = token("old", Role::Admin, 5_000);
        let worker = token("pool", Role::Worker, 90_000);
        let brief = token("brief", Role::Admin, 110_000);
        let key = token("s3-root", Role::Admin, 0);
        let mut all = vec![over, worker, key];
        gatekeeper.learn(all.clone());
        let ends = |next_s, admin_s| TokenEnds { next_s, admin_s };
        assert_eq!(gatekeeper.ends(10_000), ends(Some(80), Some(0)), "nobody may make others");
        all.push(brief);
        gatekeeper.learn(all.clone());
        assert_eq!(gatekeeper.ends(10_000), ends(Some(80), Some(100)));
        all.push(token("ann", Role::Admin, 0));
        gatekeeper.learn(all);
        assert_eq!(gatekeeper.ends(10_000), ends(Some(80), None), "one stays");
    }

    #[tokio::test]
    async fn x_17_whoever_waits_hears_of_the_revocation() {
        let ann = TokenText::draw().unwrap();
        let gatekeeper = Gatekeeper::default();
        gatekeeper.learn(vec![stored(&ann, 0)]);
        let principal = gatekeeper.check(&ann, 0).unwrap();
        assert!(gatekeeper.still_holds(&principal, 0));
        let waiting = gatekeeper.revoked(&principal, || 0);
        tokio::join!(waiting, async { gatekeeper.learn(Vec::new()) });
        assert!(!gatekeeper.still_holds(&principal, 0));
    }
}
