//! Who is calling: tokens, certificates, principals, and what a failed try costs.
//!
//! Promise: a secret is compared by its digest in constant time, in one function, and never kept, printed or logged. The
//! tokens at hand are those of this node's own replica of shard 0, looked at twice a second, so that a revoked token is
//! refused within 5 s of its revocation by every node that hears from the majority (X17); calls that wait are ended by the
//! same news. A node that is cut off writes for nobody, and may serve stale reads to a token that was revoked meanwhile.
//!
//! Leaves out: what a role may do (`api::routes::policy`) and how a refusal is told (`http::problems`).

mod failures;
mod first;
mod gatekeeper;
mod principal;
mod secret;

pub use first::{FIRST_TOKEN_FILE, make_first_token};
pub use gatekeeper::{Denied, Flaw, Gatekeeper, REFRESH_EVERY};
pub use principal::Principal;
pub use secret::{
    CERTIFICATE_NAME, S3_NAME, Secret, TokenText, certificate_digest, digest, draw_s3_key,
    draw_word, is_secret_of, s3_secret,
};
