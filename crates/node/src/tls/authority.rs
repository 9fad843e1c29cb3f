//! The cluster's own authority: made once, signs the certificates of nodes.

use std::net::IpAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PublicKeyData, SanType, SignatureAlgorithm,
    date_time_ymd,
};

use super::{ClientName, Name};

/// Life of the authority: as long as a cluster is likely to live.
const AUTHORITY_LIFE: Duration = Duration::from_secs(20 * 366 * 24 * 3600);
/// Life of a node's certificate. Renewed by itself long before.
const NODE_LIFE: Duration = Duration::from_secs(90 * 24 * 3600);
/// Clocks of nodes may differ a little.
const CLOCK_SLACK: Duration = Duration::from_secs(3600);
/// Longest host name in a certificate.
const HOST_BYTES_MAX: usize = 253;
/// Most host names in a certificate.
const HOSTS_MAX: usize = 16;
/// Bytes of a public key on this curve: a mark and two coordinates.
pub(super) const KEY_BYTES: usize = 65;

/// Why certificates cannot be made, read or used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file.
    #[error("{path}: {source}")]
    File {
        /// Its name.
        path: String,
        /// The system's answer.
        source: std::io::Error,
    },
    /// A file holds something else.
    #[error("{path} cannot be used: {why}")]
    Content {
        /// Its name.
        path: String,
        /// What is wrong.
        why: String,
    },
    /// A certificate could not be made.
    #[error("a certificate could not be made: {0}")]
    Make(#[from] rcgen::Error),
    /// A configuration was refused.
    #[error("TLS cannot be set up: {0}")]
    Setup(String),
    /// A host name that cannot stand in a certificate.
    #[error("host {0:?} cannot stand in a certificate")]
    Host(String),
    /// A public key of another kind.
    #[error("the public key is not one of this kind")]
    Key,
    /// No node gave a certificate.
    #[error("no certificate was given: {0}")]
    Join(String),
}

/// Signs certificates.
pub struct Authority {
    cluster: u64,
    issuer: Issuer<'static, KeyPair>,
}

/// A public key that came from elsewhere.
struct ForeignKey(Vec<u8>);

impl PublicKeyData for ForeignKey {
    fn der_bytes(&self) -> &[u8] {
        &self.0
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &PKCS_ECDSA_P256_SHA256
    }
}

impl Authority {
    /// Makes an authority; gives its certificate and key as PEM too.
    pub fn make(cluster: u64) -> Result<(Authority, String, String), TlsError> {
        let key = new_key()?;
        let (params, key_pem) = (authority_params(cluster)?, key.serialize_pem());
        let certificate = params.self_signed(&key)?;
        let authority = Authority { cluster, issuer: Issuer::new(params, key) };
        Ok((authority, certificate.pem(), key_pem))
    }

    /// An authority from its stored key.
    pub fn restore(cluster: u64, key_pem: &str) -> Result<Authority, TlsError> {
        let key = KeyPair::from_pem(key_pem)?;
        Ok(Authority { cluster, issuer: Issuer::new(authority_params(cluster)?, key) })
    }

    /// The cluster it signs for.
    pub fn cluster(&self) -> u64 {
        self.cluster
    }

    /// A certificate for a node with this public key, reached under these hosts; as PEM. Its serial number is larger than
    /// those of all before it.
    pub fn sign_node(
        &self,
        (node, serial): (u64, u64),
        public_key: &[u8],
        hosts: &[String],
    ) -> Result<String, TlsError> {
        let uri = Name { cluster: self.cluster, node }.to_string();
        let mut params = node_params(&uri, hosts)?;
        params.serial_number = Some(serial.into());
        self.issue(params, public_key, SystemTime::now() + NODE_LIFE)
    }

    /// One with an end of one's own choice, and no place among the others.
    pub fn sign_until(
        &self,
        node: u64,
        public_key: &[u8],
        hosts: &[String],
        until: SystemTime,
    ) -> Result<String, TlsError> {
        let uri = Name { cluster: self.cluster, node }.to_string();
        self.sign(&uri, public_key, hosts, until)
    }

    /// A certificate for a client with this public key; as PEM. It serves nobody: no host is in it.
    pub fn sign_client(
        &self,
        name: &ClientName,
        public_key: &[u8],
        until: SystemTime,
    ) -> Result<String, TlsError> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "ikada client");
        params.subject_alt_names = vec![SanType::URI(name.to_string().as_str().try_into()?)];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.issue(params, public_key, until)
    }

    /// A certificate that bears any URI.
    pub(crate) fn sign(
        &self,
        uri: &str,
        public_key: &[u8],
        hosts: &[String],
        until: SystemTime,
    ) -> Result<String, TlsError> {
        self.issue(node_params(uri, hosts)?, public_key, until)
    }

    fn issue(
        &self,
        mut params: CertificateParams,
        public_key: &[u8],
        until: SystemTime,
    ) -> Result<String, TlsError> {
        if public_key.len() != KEY_BYTES || public_key[0] != 4 {
            return Err(TlsError::Key);
        }
        set_life(&mut params, until);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        Ok(params.signed_by(&ForeignKey(public_key.to_vec()), &self.issuer)?.pem())
    }
}

/// A fresh key of the kind used throughout.
pub(crate) fn new_key() -> Result<KeyPair, TlsError> {
    Ok(KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?)
}

fn node_params(uri: &str, hosts: &[String]) -> Result<CertificateParams, TlsError> {
    if hosts.len() > HOSTS_MAX {
        return Err(TlsError::Host(format!("{} of them", hosts.len())));
    }
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "ikada node");
    params.subject_alt_names = vec![SanType::URI(uri.try_into()?)];
    for host in hosts {
        params.subject_alt_names.push(host_name(host)?);
    }
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    Ok(params)
}

fn authority_params(cluster: u64) -> Result<CertificateParams, TlsError> {
    let mut params = CertificateParams::default();
    let name = format!("ikada cluster {cluster:016x}");
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    set_life(&mut params, SystemTime::now() + AUTHORITY_LIFE);
    Ok(params)
}

fn host_name(host: &str) -> Result<SanType, TlsError> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(SanType::IpAddress(address));
    }
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    if host.is_empty() || host.len() > HOST_BYTES_MAX || !host.bytes().all(plain) {
        return Err(TlsError::Host(host.chars().take(HOST_BYTES_MAX).collect()));
    }
    Ok(SanType::DnsName(host.try_into()?))
}

/// Valid from a little before now.
fn set_life(params: &mut CertificateParams, until: SystemTime) {
    let epoch = date_time_ymd(1970, 1, 1);
    let since = |time: SystemTime| time.duration_since(UNIX_EPOCH).unwrap_or_default();
    params.not_before = epoch + since(SystemTime::now() - CLOCK_SLACK);
    params.not_after = epoch + since(until);
}
