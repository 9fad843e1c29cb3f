//! `RevokeToken`: ends a token for good.

use minicbor::{Decode, Encode};

use super::{Role, S3_NAME, Token};
use crate::shard::Shard;
use crate::{RefusalCode, Reply, TokenId};

/// Ends one token.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct RevokeToken {
    /// Which.
    #[n(0)]
    pub id: TokenId,
    /// Whether the admin who stays must be one who can make others, for at least as long as this one could. Absent in what
    /// older versions write: then any admin counts that is bound to no namespace, however soon it ends.
    #[n(1)]
    pub lasting: Option<bool>,
}

impl RevokeToken {
    pub(crate) fn level(&self) -> u32 {
        u32::from(self.lasting.is_some())
    }
}

impl Shard {
    /// The last admin token that is not over stays: without it nobody could make another.
    pub(crate) fn apply_revoke_token(&mut self, order: &RevokeToken) -> Reply {
        if self.core.shard != 0 {
            return Reply::refused(RefusalCode::WrongShard);
        }
        let Some(known) = self.core.tokens.get(&order.id) else {
            return Reply::refused(RefusalCode::TokenNotFound);
        };
        let (now_ms, lasting) = (self.core.time_ms, order.lasting == Some(true));
        let can_rule = |token: &Token| is_ruler(token, now_ms) && !(lasting && is_s3(token));
        let stays = |token: &Token| {
            token.id != known.id && can_rule(token) && (!lasting || outlasts(token, known))
        };
        if can_rule(known) && !self.core.tokens.values().any(|token| stays(token)) {
            return Reply::refused(RefusalCode::LastAdmin);
        }
        self.remove_token(&order.id);
        Reply::TokenRevoked
    }
}

/// Whether it may do everything now, everywhere.
fn is_ruler(token: &Token, now_ms: u64) -> bool {
    token.role == Role::Admin && !token.is_over(now_ms) && token.namespaces.is_empty()
}

/// Whether it opens the S3 door alone, where no tokens are made.
fn is_s3(token: &Token) -> bool {
    token.name.as_str().starts_with(S3_NAME)
}

/// Whether one lasts at least as long as another.
fn outlasts(one: &Token, other: &Token) -> bool {
    one.expires_ms == 0 || (other.expires_ms != 0 && one.expires_ms >= other.expires_ms)
}
