//! Certificates of clients: made where the authority's key is, known to the cluster by their digests, and recognised at
//! the client door.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use super::authority::{TlsError, new_key};
use super::files::write;
use super::name::{ClientName, client_of};
use super::{Authority, Papers};
use crate::auth::{Secret, certificate_digest};
use ikada_api::state::SecretDigest;

/// What a caller showed in the handshake; the authority signed it, and its time is not over.
#[derive(Debug)]
pub struct Shown {
    /// Whom it names; none if it is not a client's.
    pub name: Option<ClientName>,
    /// By which the cluster knows it.
    pub digest: SecretDigest,
}

impl Shown {
    /// Reads a certificate.
    pub fn of(certificate: &CertificateDer<'_>) -> Shown {
        Shown { name: client_of(certificate), digest: certificate_digest(certificate) }
    }
}

/// A client's certificate with its key, fresh.
pub struct ClientPapers {
    certificate_pem: String,
    key: Secret,
    /// By which the cluster knows it.
    pub digest: SecretDigest,
}

impl ClientPapers {
    /// Makes them.
    pub fn make(
        authority: &Authority,
        name: &ClientName,
        until: SystemTime,
    ) -> Result<ClientPapers, TlsError> {
        let key = new_key()?;
        let certificate_pem = authority.sign_client(name, key.public_key_raw(), until)?;
        let certificate = CertificateDer::from_pem_slice(certificate_pem.as_bytes());
        let certificate = certificate.map_err(|error| TlsError::Setup(error.to_string()))?;
        let digest = certificate_digest(&certificate);
        Ok(ClientPapers { certificate_pem, key: Secret::new(key.serialize_pem()), digest })
    }

    /// Writes certificate, key and authority to a folder, `<name>.pem`, `<name>.key` and `ca.pem`; gives the first two.
    pub fn store(
        &self,
        folder: &Path,
        name: &str,
        papers: &Papers,
    ) -> Result<(PathBuf, PathBuf), TlsError> {
        let made = std::fs::create_dir_all(folder);
        made.map_err(|source| TlsError::File { path: folder.display().to_string(), source })?;
        let (certificate, key) =
            (folder.join(format!("{name}.pem")), folder.join(format!("{name}.key")));
        write(&key, self.key.reveal(), 0o600)?;
        write(&folder.join("ca.pem"), &papers.authority_pem, 0o644)?;
        write(&certificate, &self.certificate_pem, 0o644)?;
        Ok((certificate, key))
    }

    /// Certificate and key as PEM, for whoever shows them.
    pub fn reveal(&self) -> (&str, &str) {
        (&self.certificate_pem, self.key.reveal())
    }
}
