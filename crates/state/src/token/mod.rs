//! Tokens: who may call the cluster, and as what. They live in shard 0.
//!
//! Promise: a token's secret is never stored, only a digest of it. Names and ids are unique among live tokens, expired
//! ones make room, and their number is bounded.
//!
//! Left out: what a role may do (the route table says that), and checking a caller's secret (`node`).

mod add;
mod revoke;
mod store;

pub use add::AddToken;
pub use revoke::RevokeToken;
pub use store::{Role, S3_NAME, SecretDigest, Token};
