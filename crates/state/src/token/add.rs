//! `AddToken`: makes a token.

use minicbor::{Decode, Encode};

use super::{Role, SecretDigest, Token};
use crate::limits::{TOKEN_NAMESPACES_MAX, TOKEN_TTL_MS_MAX, TOKENS_MAX};
use crate::shard::Shard;
use crate::{Namespace, PrincipalName, RefusalCode, Reply, TokenId};

/// A new token.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct AddToken {
    /// Drawn by whoever makes it.
    #[n(0)]
    pub id: TokenId,
    /// Whom it stands for.
    #[n(1)]
    pub name: PrincipalName,
    /// Digest of its secret.
    #[n(2)]
    pub digest: SecretDigest,
    /// What it may do.
    #[n(3)]
    pub role: Role,
    /// Where it may do it; empty means everywhere.
    #[n(4)]
    pub namespaces: Vec<Namespace>,
    /// How long it lasts; 0 is for ever.
    #[n(5)]
    pub ttl_ms: u64,
    /// Refuse if any token exists: the first one is made once.
    #[n(6)]
    pub first: bool,
}

impl Shard {
    pub(crate) fn apply_add_token(&mut self, order: AddToken) -> Reply {
        match self.add_token(order) {
            Ok(fresh) => Reply::TokenAdded { fresh },
            Err(code) => Reply::refused(code),
        }
    }

    fn add_token(&mut self, order: AddToken) -> Result<bool, RefusalCode> {
        if self.core.shard != 0 {
            return Err(RefusalCode::WrongShard);
        }
        if order.namespaces.len() > TOKEN_NAMESPACES_MAX || order.ttl_ms > TOKEN_TTL_MS_MAX {
            return Err(RefusalCode::BadValue);
        }
        if let Some(known) = self.core.tokens.get(&order.id) {
            // A resend; another token under the same id would be somebody's forgery or a broken generator.
            return match known.digest == order.digest {
                true => Ok(false),
                false => Err(RefusalCode::Conflict),
            };
        }
        if order.first && !self.core.tokens.is_empty() {
            return Err(RefusalCode::TokensExist);
        }
        if self.core.tokens.len() >= TOKENS_MAX {
            self.remove_ended_tokens();
        }
        if self.core.tokens.len() >= TOKENS_MAX {
            return Err(RefusalCode::TooManyTokens);
        }
        let mut namespaces = order.namespaces;
        namespaces.sort();
        namespaces.dedup();
        let now_ms = self.core.time_ms;
        let expires_ms = if order.ttl_ms == 0 { 0 } else { now_ms + order.ttl_ms };
        let (id, name, digest, role) = (order.id, order.name, order.digest, order.role);
        let created_ms = now_ms;
        self.put_token(Token { id, name, digest, role, namespaces, created_ms, expires_ms });
        Ok(true)
    }

    fn remove_ended_tokens(&mut self) {
        let now_ms = self.core.time_ms;
        let tokens = self.core.tokens.values();
        let ended: Vec<TokenId> =
            tokens.filter(|token| token.is_over(now_ms)).map(|token| token.id.clone()).collect();
        for id in &ended {
            self.remove_token(id);
        }
    }
}
