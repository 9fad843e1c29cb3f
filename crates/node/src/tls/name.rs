//! The one name in a certificate that counts.

use std::fmt;

use ikada_api::state::{PrincipalName, Role};
use rustls::pki_types::CertificateDer;
use webpki::EndEntityCert;

use super::authority::KEY_BYTES;

const SCHEME: &str = "ikada://";
const NODE: &str = "node";
const CLIENT: &str = "client";
/// Longest serial number of ours: a number of 64 bits. Those of older versions are digests of 20 bytes.
const SERIAL_BYTES_MAX: usize = 8;

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

/// Whom a client's certificate is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientName {
    /// The cluster.
    pub cluster: u64,
    /// What it may do.
    pub role: Role,
    /// Whom it stands for.
    pub name: PrincipalName,
}

impl fmt::Display for ClientName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (role, name) = (self.role.as_str(), &self.name);
        write!(formatter, "{SCHEME}{:016x}/{CLIENT}/{role}/{name}", self.cluster)
    }
}

impl ClientName {
    /// Reads a URI; none if it is not exactly a client's name.
    pub fn parse(text: &str) -> Option<ClientName> {
        let mut parts = text.strip_prefix(SCHEME)?.split('/');
        let (cluster, kind, role, name) =
            (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        if parts.next().is_some() || kind != CLIENT || cluster.len() != 16 {
            return None;
        }
        let name = ClientName {
            cluster: u64::from_str_radix(cluster, 16).ok()?,
            role: Role::parse(role)?,
            name: PrincipalName::parse(name).ok()?,
        };
        (name.to_string() == text).then_some(name)
    }
}

/// The node that a certificate names: exactly one URI, and that one ours.
pub fn name_of(certificate: &CertificateDer<'_>) -> Option<Name> {
    only_uri(certificate, Name::parse)
}

/// What a node's certificate says of it, beyond its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownNode {
    /// Whom it names.
    pub name: Name,
    /// Its place among the certificates of the cluster; 0 for those of older versions, which had none.
    pub serial: u64,
    /// The node's public key.
    pub key: Vec<u8>,
}

/// The node that a certificate names, and with which key; by the same rule.
pub fn node_of(certificate: &CertificateDer<'_>) -> Option<ShownNode> {
    let name = name_of(certificate)?;
    let parsed = EndEntityCert::try_from(certificate).ok()?;
    let serial = match parsed.serial() {
        short if short.len() <= SERIAL_BYTES_MAX => {
            short.iter().fold(0, |sum, byte| (sum << 8) | u64::from(*byte))
        }
        _ => 0,
    };
    // What goes before the key itself says of which kind it is, and is the same for all.
    let info = parsed.subject_public_key_info();
    let key = info.get(info.len().checked_sub(KEY_BYTES)?..)?.to_vec();
    Some(ShownNode { name, serial, key })
}

/// The client that a certificate names, by the same rule.
pub fn client_of(certificate: &CertificateDer<'_>) -> Option<ClientName> {
    only_uri(certificate, ClientName::parse)
}

fn only_uri<T>(
    certificate: &CertificateDer<'_>,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Option<T> {
    let parsed = EndEntityCert::try_from(certificate).ok()?;
    let mut uris = parsed.valid_uri_names();
    let name = parse(uris.next()?)?;
    uris.next().is_none().then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x_2_clients_and_nodes_are_never_taken_for_each_other() {
        let name = PrincipalName::parse("ann").unwrap();
        let client = ClientName { cluster: 0xabc, role: Role::Viewer, name };
        assert_eq!(client.to_string(), "ikada://0000000000000abc/client/viewer/ann");
        assert_eq!(ClientName::parse(&client.to_string()), Some(client.clone()));
        assert_eq!(Name::parse(&client.to_string()), None);
        for text in [
            "ikada://0000000000000abc/node/7",
            "ikada://0000000000000abc/client/viewer",
            "ikada://0000000000000abc/client/viewer/ann/x",
            "ikada://0000000000000abc/client/Viewer/ann",
            "ikada://0000000000000abc/client/root/ann",
            "ikada://0000000000000ABC/client/viewer/ann",
            "ikada://0000000000000abc/client/viewer/",
            "ikada://0000000000000abc/client/viewer/a.b",
        ] {
            assert_eq!(ClientName::parse(text), None, "{text}");
        }
    }

    #[test]
    fn x_2_names_return_and_others_are_none() {
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
