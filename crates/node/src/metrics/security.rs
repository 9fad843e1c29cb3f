//! Figures of what stands before the ports.

use super::render::Page;

/// What an operator watches, beside what the doors count themselves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SecurityFigures {
    /// Seconds until this node's certificate ends; none without TLS.
    pub certificate_left_s: Option<u64>,
    /// Wishes for a certificate that were refused; none where the authority's key is not.
    pub joins_refused: Option<u64>,
    /// Lines that are not in the audit log; none where there is no such log.
    pub audit_lost: Option<u64>,
    /// When tokens end.
    pub tokens: TokenEnds,
}

/// Seconds until tokens end; none where there are none that do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TokenEnds {
    /// The next one, keys and certificates included.
    pub next_s: Option<u64>,
    /// The last one that may make others; 0 if there is none.
    pub admin_s: Option<u64>,
}

/// Writes the figures that there are.
pub(super) fn security(page: &mut Page, figures: &SecurityFigures) {
    let families = [
        (
            "ikada_tls_certificate_expiry_seconds",
            "gauge",
            "Seconds until this node's certificate ends; it is renewed by itself long before.",
            figures.certificate_left_s,
        ),
        (
            "ikada_joins_refused_total",
            "counter",
            "Wishes for a certificate that were refused: the join token did not hold.",
            figures.joins_refused,
        ),
        (
            "ikada_audit_lost_total",
            "counter",
            "Lines missing in the audit log: too many at once, or not written.",
            figures.audit_lost,
        ),
        (
            "ikada_token_expiry_seconds",
            "gauge",
            "Seconds until the next token, key or client certificate ends.",
            figures.tokens.next_s,
        ),
        (
            "ikada_admin_expiry_seconds",
            "gauge",
            "Seconds until no admin token is left that may make others.",
            figures.tokens.admin_s,
        ),
    ];
    for (name, kind, about, value) in families {
        if let Some(value) = value {
            page.one(name, kind, about, value);
        }
    }
}
