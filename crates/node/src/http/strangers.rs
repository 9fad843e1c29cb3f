//! What whoever runs the node hears of those who were not let in, and they do not: which token, from where, and why.
//!
//! Promise: no stranger fills the log. What is known of by its id is told apart from what anybody could send, so that a
//! flood of guesses does not hide the worker whose token has expired.

use std::net::IpAddr;
use std::time::Instant;

use crate::auth::Flaw;
use crate::seldom::Seldom;

/// What is said seldom.
#[derive(Debug, Default)]
pub(super) struct Strangers {
    /// Of tokens and certificates that are recorded.
    known: Seldom,
    /// Of all others.
    unknown: Seldom,
    handshakes: Seldom,
}

impl Strangers {
    /// A caller showed something that does not hold.
    pub(super) fn denied(&self, from: Option<IpAddr>, token: Option<&str>, flaw: Flaw) {
        let seldom = match flaw {
            Flaw::Expired | Flaw::WrongSecret | Flaw::OtherName => &self.known,
            Flaw::Unknown | Flaw::NoToken => &self.unknown,
        };
        if let Some(unsaid) = seldom.turn(Instant::now()) {
            tracing::warn!(?from, token, why = %flaw, unsaid, "a caller was not let in");
        }
    }

    /// A connection did not come to TLS.
    pub(super) fn no_handshake(&self, from: IpAddr, why: &str) {
        if let Some(unsaid) = self.handshakes.turn(Instant::now()) {
            tracing::warn!(%from, why, unsaid, "a client's handshake failed");
        }
    }
}
