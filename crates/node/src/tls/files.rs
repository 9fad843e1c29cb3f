//! Certificates and keys on disk: the folder `tls` in the data folder. Keys can be read by their owner only.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::authority::{Authority, TlsError, new_key};
use super::name::Name;
use super::{JoinRole, JoinTokens, Life, life_of, name_of};
use crate::auth::Secret;
use rcgen::KeyPair;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

/// The folder, in the data folder.
pub const TLS_FOLDER: &str = "tls";
/// The join token that the first node writes, in the data folder.
pub const JOIN_TOKEN_FILE: &str = "join-token";
const AUTHORITY_FILE: &str = "ca.pem";
const AUTHORITY_KEY_FILE: &str = "ca.key";
const NODE_FILE: &str = "node.pem";
const NODE_KEY_FILE: &str = "node.key";
/// The key that a newcomer asks with, until it has its certificate.
const ASKING_KEY_FILE: &str = "asking.key";

/// A node's certificate, its key, and the authority that it trusts.
pub struct Papers {
    /// The folder.
    pub folder: PathBuf,
    /// The authority's certificate.
    pub authority_pem: String,
    /// The node's certificate.
    pub node_pem: String,
    /// The node's key.
    pub key: Secret,
    /// Whom the certificate is for.
    pub name: Name,
    /// For how long it holds.
    pub life: Life,
}

impl Papers {
    /// Where they are in a data folder.
    pub fn folder(data: &Path) -> PathBuf {
        data.join(TLS_FOLDER)
    }

    /// Reads them; none if there are none yet.
    pub fn load(folder: &Path) -> Result<Option<Papers>, TlsError> {
        let Some(node_pem) = read(&folder.join(NODE_FILE))? else { return Ok(None) };
        let missing = |file: &str| TlsError::Content {
            path: folder.join(file).display().to_string(),
            why: "it is missing beside the certificate".to_owned(),
        };
        let key = read(&folder.join(NODE_KEY_FILE))?.ok_or_else(|| missing(NODE_KEY_FILE))?;
        let authority =
            read(&folder.join(AUTHORITY_FILE))?.ok_or_else(|| missing(AUTHORITY_FILE))?;
        let path = folder.join(NODE_FILE).display().to_string();
        let certificate = CertificateDer::from_pem_slice(node_pem.as_bytes())
            .map_err(|error| TlsError::Content { path: path.clone(), why: error.to_string() })?;
        let unfit = |why: &str| TlsError::Content { path: path.clone(), why: why.to_owned() };
        let name = name_of(&certificate).ok_or_else(|| unfit("it names no node of any cluster"))?;
        let life = life_of(&certificate).ok_or_else(|| unfit("its dates cannot be read"))?;
        let (folder, key) = (folder.to_owned(), Secret::new(key));
        Ok(Some(Papers { folder, authority_pem: authority, node_pem, key, name, life }))
    }

    /// The authority's key, where it is kept.
    pub fn authority(&self) -> Result<Option<Authority>, TlsError> {
        match read(&self.folder.join(AUTHORITY_KEY_FILE))? {
            Some(key) => Authority::restore(self.name.cluster, &key).map(Some),
            None => Ok(None),
        }
    }

    /// A fresh certificate for the same node, signed here, where the authority is.
    pub fn renew_by(&self, authority: &Authority, hosts: &[String]) -> Result<Papers, TlsError> {
        let key = new_key()?;
        let serial = JoinTokens::open(&self.folder)?.hold(self.name.node, key.public_key_raw())?;
        let node = (self.name.node, serial);
        let node_pem = authority.sign_node(node, key.public_key_raw(), hosts)?;
        store_node(&self.folder, &key.serialize_pem(), &self.authority_pem, &node_pem)?;
        Papers::load(&self.folder)?.ok_or(TlsError::Setup("the new certificate is gone".to_owned()))
    }

    /// Makes an authority and a first certificate, and a join token for the other nodes if there are to be any.
    pub fn found(
        data: &Path,
        name: Name,
        hosts: &[String],
        others: u32,
    ) -> Result<Papers, TlsError> {
        let folder = Papers::folder(data);
        make_folder(&folder)?;
        let (authority, authority_pem, authority_key) = Authority::make(name.cluster)?;
        write(&folder.join(AUTHORITY_KEY_FILE), &authority_key, 0o600)?;
        write(&folder.join(AUTHORITY_FILE), &authority_pem, 0o644)?;
        let key = new_key()?;
        let mut tokens = JoinTokens::open(&folder)?;
        // The founder's id is taken like any other: no join token gives it to anybody else.
        let serial = tokens.hold(name.node, key.public_key_raw())?;
        let node_pem = authority.sign_node((name.node, serial), key.public_key_raw(), hosts)?;
        if others > 0 {
            let token = tokens.create(&authority_pem, JoinRole::Node, others, None, None)?;
            write(&data.join(JOIN_TOKEN_FILE), &format!("{}\n", token.reveal().reveal()), 0o600)?;
        }
        store_node(&folder, &key.serialize_pem(), &authority_pem, &node_pem)?;
        Papers::load(&folder)?.ok_or(TlsError::Setup("the new certificate is gone".to_owned()))
    }
}

/// Stores a certificate with its key; the certificate last, since its presence says that the rest is there.
pub(super) fn store_node(
    folder: &Path,
    key_pem: &str,
    authority_pem: &str,
    node_pem: &str,
) -> Result<(), TlsError> {
    make_folder(folder)?;
    write(&folder.join(AUTHORITY_FILE), authority_pem, 0o644)?;
    write(&folder.join(NODE_KEY_FILE), key_pem, 0o600)?;
    write(&folder.join(NODE_FILE), node_pem, 0o644)
}

/// The key that a newcomer asks with: the same until it has its certificate, so that an answer that got lost can be asked
/// for again.
pub(super) fn asking_key(folder: &Path) -> Result<KeyPair, TlsError> {
    let path = folder.join(ASKING_KEY_FILE);
    if let Some(key) = read(&path)?.and_then(|pem| KeyPair::from_pem(&pem).ok()) {
        return Ok(key);
    }
    make_folder(folder)?;
    let key = new_key()?;
    write(&path, &key.serialize_pem(), 0o600)?;
    Ok(key)
}

/// The certificate is here: the next one is asked for with another key.
pub(super) fn forget_asking_key(folder: &Path) -> Result<(), TlsError> {
    let path = folder.join(ASKING_KEY_FILE);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(TlsError::File { path: path.display().to_string(), source: error })
        }
        _ => Ok(()),
    }
}

/// When the certificate was stored.
pub(super) fn stored_at(folder: &Path) -> Option<std::time::SystemTime> {
    fs::metadata(folder.join(NODE_FILE)).ok()?.modified().ok()
}

fn make_folder(folder: &Path) -> Result<(), TlsError> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|source| TlsError::File { path: folder.display().to_string(), source })
}

pub(super) fn read(path: &Path) -> Result<Option<String>, TlsError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(TlsError::File { path: path.display().to_string(), source }),
    }
}

/// Replaces a file durably.
pub(super) fn write(path: &Path, text: &str, mode: u32) -> Result<(), TlsError> {
    let replace = || {
        let mut fresh = path.as_os_str().to_owned();
        fresh.push(".new");
        let fresh = PathBuf::from(fresh);
        let _ = fs::remove_file(&fresh);
        let mut file =
            fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&fresh)?;
        io::Write::write_all(&mut file, text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&fresh, path)?;
        match path.parent() {
            Some(folder) => fs::File::open(folder)?.sync_all(),
            None => Ok(()),
        }
    };
    replace().map_err(|source| TlsError::File { path: path.display().to_string(), source })
}
