//! What is stored about one token.

use std::fmt;
use std::sync::Arc;

use minicbor::{Decode, Encode};

use crate::hash::{RecordKind, digest_record};
use crate::limits::TOKEN_NAMESPACES_MAX;
use crate::shard::Shard;
use crate::{Namespace, PrincipalName, TokenId};

/// How the names of keys of the S3 door begin; those of other tokens never do.
pub const S3_NAME: &str = "s3-";

/// What a caller may be. Roles do not contain each other; a route lists those it lets in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
#[cbor(index_only)]
pub enum Role {
    /// Everything, tokens and members included.
    #[n(1)]
    Admin,
    /// Runs the queues: settings, pauses, schedules, retries, leadership.
    #[n(2)]
    Operator,
    /// Submits tasks and follows them.
    #[n(3)]
    Submitter,
    /// Claims tasks and reports on them.
    #[n(4)]
    Worker,
    /// Looks.
    #[n(5)]
    Viewer,
}

impl Role {
    /// All roles.
    pub const ALL: [Role; 5] =
        [Role::Admin, Role::Operator, Role::Submitter, Role::Worker, Role::Viewer];

    /// The role's public name.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Admin => "admin",
            Role::Operator => "operator",
            Role::Submitter => "submitter",
            Role::Worker => "worker",
            Role::Viewer => "viewer",
        }
    }

    /// The role of a name.
    pub fn parse(text: &str) -> Option<Role> {
        Role::ALL.into_iter().find(|role| role.as_str() == text)
    }
}

/// Digest of a secret. Never printed: whoever has it could try secrets in peace.
#[derive(Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct SecretDigest(#[cbor(n(0), with = "minicbor::bytes")] pub [u8; 32]);

impl fmt::Debug for SecretDigest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SecretDigest(..)")
    }
}

/// One token as stored.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Token {
    /// What names it in lists and in the token's own text.
    #[n(0)]
    pub id: TokenId,
    /// Whom it stands for; several tokens may stand for one.
    #[n(1)]
    pub name: PrincipalName,
    /// Digest of its secret.
    #[n(2)]
    pub digest: SecretDigest,
    /// What it may do.
    #[n(3)]
    pub role: Role,
    /// Where it may do it, in order; empty means everywhere.
    #[n(4)]
    pub namespaces: Vec<Namespace>,
    /// Log time at which it was made.
    #[n(5)]
    pub created_ms: u64,
    /// Log time at which it ends; 0 if it does not.
    #[n(6)]
    pub expires_ms: u64,
}

impl Token {
    /// Whether it has ended at a time.
    pub fn is_over(&self, now_ms: u64) -> bool {
        self.expires_ms != 0 && self.expires_ms <= now_ms
    }

    /// Whether a decoded record obeys the rules that the verbs rely on.
    pub(crate) fn is_valid(&self) -> bool {
        self.namespaces.len() <= TOKEN_NAMESPACES_MAX
            && self.namespaces.is_sorted_by(|left, right| left < right)
    }
}

impl Shard {
    /// All tokens in order of their ids, those that have ended included.
    pub fn tokens(&self) -> impl Iterator<Item = &Arc<Token>> + '_ {
        self.core.tokens.values()
    }

    pub(crate) fn put_token(&mut self, token: Token) {
        self.core.hash.add(digest_record(RecordKind::Token, &token));
        let before = self.core.tokens.insert(token.id.clone(), Arc::new(token));
        if let Some(before) = before {
            self.core.hash.remove(digest_record(RecordKind::Token, &*before));
        }
    }

    /// Removes a token; false if there is none.
    pub(crate) fn remove_token(&mut self, id: &TokenId) -> bool {
        let before = self.core.tokens.remove(id);
        if let Some(before) = &before {
            self.core.hash.remove(digest_record(RecordKind::Token, &**before));
        }
        before.is_some()
    }
}
