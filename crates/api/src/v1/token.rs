//! Tokens and who one is.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A token to make.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    /// Whom it stands for: letters, digits and hyphens, 1 to 32. Several tokens may stand for one.
    pub name: String,
    /// `admin`, `operator`, `submitter`, `worker` or `viewer`.
    pub role: String,
    /// Namespaces it is bound to, at most 16; everywhere when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
    /// How long it lasts; 30 days when absent, 0 is for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// `true`: a key for the S3 door instead. Its principal is named `s3-` and the name; it opens no other door.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub s3: bool,
    /// Records a client certificate instead: 64 hex digits, its digest. Its principal is named `cert-` and the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<String>,
}

/// A token as it is listed; its secret is not stored anywhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenInfo {
    /// What names it; also the second part of its text.
    pub id: String,
    /// Whom it stands for.
    pub name: String,
    /// What it may do.
    pub role: String,
    /// Where it may do it; everywhere when empty.
    pub namespaces: Vec<String>,
    /// When it was made, ms since 1970.
    pub created_ms: u64,
    /// When it ends, ms since 1970; absent if it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<u64>,
}

/// All tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenPage {
    /// In order of their ids.
    pub tokens: Vec<TokenInfo>,
}

/// A token that was just made.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenMade {
    /// The whole text, shown this once; of an S3 key the secret key, of a certificate nothing.
    pub token: String,
    /// What names it; of an S3 key the access key.
    pub id: String,
}

impl std::fmt::Debug for TokenMade {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("TokenMade").field("id", &self.id).finish_non_exhaustive()
    }
}

/// A token that is no more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenRevoked {
    /// Its id.
    pub id: String,
}

/// Who the caller is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Whoami {
    /// Whom its token stands for; `anyone` where no token is asked for.
    pub name: String,
    /// What it may do.
    pub role: String,
    /// Where; everywhere when empty.
    pub namespaces: Vec<String>,
    /// The token's id; absent where none is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// When it ends, ms since 1970; absent if it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<u64>,
}
