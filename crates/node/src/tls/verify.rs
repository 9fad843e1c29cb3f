//! Whom a dialling node believes: its own cluster's nodes; or, when it joins, whoever shows the authority that its token
//! names.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::{CryptoProvider, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use super::name_of;

/// Whom to believe.
#[derive(Debug)]
pub(super) enum Trust {
    /// Nodes of a cluster, by its authority.
    Cluster {
        /// The authority.
        roots: Arc<RootCertStore>,
        /// The cluster.
        cluster: u64,
    },
    /// Whoever shows an authority with this digest.
    Pinned([u8; 32]),
}

#[derive(Debug)]
pub(super) struct NodeVerifier {
    pub(super) trust: Trust,
    pub(super) provider: Arc<CryptoProvider>,
}

impl NodeVerifier {
    fn check(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), Error> {
        let parsed = ParsedCertificate::try_from(end_entity)?;
        let name = name_of(end_entity).ok_or(CertificateError::NotValidForName)?;
        let algorithms = self.provider.signature_verification_algorithms.all;
        match &self.trust {
            Trust::Cluster { roots, cluster } => {
                verify_server_cert_signed_by_trust_anchor(&parsed, roots, &[], now, algorithms)?;
                match name.cluster == *cluster {
                    true => Ok(()),
                    false => Err(CertificateError::NotValidForName.into()),
                }
            }
            Trust::Pinned(digest) => {
                let shown = intermediates
                    .iter()
                    .find(|shown| blake3::hash(shown) == blake3::Hash::from_bytes(*digest))
                    .ok_or(CertificateError::UnknownIssuer)?;
                let mut roots = RootCertStore::empty();
                roots.add(shown.clone().into_owned())?;
                verify_server_cert_signed_by_trust_anchor(&parsed, &roots, &[], now, algorithms)
            }
        }
    }
}

impl ServerCertVerifier for NodeVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.check(end_entity, intermediates, now)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("only TLS 1.3 is spoken".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
