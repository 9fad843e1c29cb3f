//! One line of the audit log.

use serde::{Deserialize, Serialize};

/// What is kept of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// When it was answered, ms since 1970.
    pub time_ms: u64,
    /// The caller's name; absent for strangers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// The id of its token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// Its role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// What was asked for: the operation of the route, or `unknown`.
    pub action: String,
    /// What it was asked of, as named in the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// The status of the answer.
    pub status: u16,
    /// The request id, if the caller gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// Where it came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Lines that are missing before this one because too many came at once.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missing: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}
