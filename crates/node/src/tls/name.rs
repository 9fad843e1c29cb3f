//! The one name in a certificate that counts.

use std::fmt;

use rustls::pki_types::CertificateDer;
use webpki::EndEntityCert;

const SCHEME: &str = "ikada://";
const NODE: &str = "node";

/// Whom a node's certificate is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Name {
    /// The cluster.
    pub cluster: u64,
    /// The node.
    pub node: u64,
}

impl fmt::Display for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{SCHEME}{:016x}/{NODE}/{}", self.cluster, self.node)
    }
}

impl Name {
    /// Reads a URI; none if it is not exactly a node's name.
    pub fn parse(text: &str) -> Option<Name> {
        let mut parts = text.strip_prefix(SCHEME)?.split('/');
        let (cluster, role, node) = (parts.next()?, parts.next()?, parts.next()?);
        if parts.next().is_some() || role != NODE || cluster.len() != 16 {
            return None;
        }
        let name =
            Name { cluster: u64::from_str_radix(cluster, 16).ok()?, node: node.parse().ok()? };
        // One node, one text: no signs, no leading zeros, no capitals.
        (name.to_string() == text).then_some(name)
    }
}

/// The node that a certificate names: exactly one URI, and that one ours.
pub fn name_of(certificate: &CertificateDer<'_>) -> Option<Name> {
    let parsed = EndEntityCert::try_from(certificate).ok()?;
    let mut uris = parsed.valid_uri_names();
    let name = Name::parse(uris.next()?)?;
    uris.next().is_none().then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x2_names_return_and_others_are_none() {
        let name = Name { cluster: 0xabc, node: 7 };
        assert_eq!(name.to_string(), "ikada://0000000000000abc/node/7");
        assert_eq!(Name::parse(&name.to_string()), Some(name));
        for text in [
            "ikada://0000000000000abc/worker/7",
            "ikada://0000000000000ABC/node/7",
            "ikada://abc/node/7",
            "ikada://0000000000000abc/node/+7",
            "ikada://0000000000000abc/node/07",
            "ikada://0000000000000abc/node/7/x",
            "ikada://0000000000000abc/node/",
            "https://0000000000000abc/node/7",
            "",
        ] {
            assert_eq!(Name::parse(text), None, "{text}");
        }
    }
}
