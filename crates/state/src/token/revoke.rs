//! `RevokeToken`: ends a token for good.

use minicbor::{Decode, Encode};

use crate::shard::Shard;
use crate::{RefusalCode, Reply, TokenId};

/// Ends one token.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct RevokeToken {
    /// Which.
    #[n(0)]
    pub id: TokenId,
}

impl Shard {
    /// The last admin token that is not over stays: without it nobody could make another.
    pub(crate) fn apply_revoke_token(&mut self, order: &RevokeToken) -> Reply {
        if self.core.shard != 0 {
            return Reply::refused(RefusalCode::WrongShard);
        }
        let now_ms = self.core.time_ms;
        let is_admin = |token: &super::Token| {
            token.role == super::Role::Admin
                && !token.is_over(now_ms)
                && token.namespaces.is_empty()
        };
        let Some(known) = self.core.tokens.get(&order.id) else {
            return Reply::refused(RefusalCode::TokenNotFound);
        };
        let admins = self.core.tokens.values().filter(|token| is_admin(token)).count();
        if is_admin(known) && admins == 1 {
            return Reply::refused(RefusalCode::LastAdmin);
        }
        self.remove_token(&order.id);
        Reply::TokenRevoked
    }
}
