//! The newest certificate of each node that this node has seen: what is older is of a key that was replaced, and proves
//! nothing any more (X2).
//!
//! Promise: remembered across restarts. Leaves out: what no node has seen yet. A new key counts from the moment at which its
//! node links to this one; where the authority's key is, from the moment at which it is given.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use tracing::warn;

use super::authority::TlsError;
use super::files::{read, write};
use super::name::ShownNode;

const FILE: &str = "newest.json";

/// Serial numbers by node. Cloning it shares them.
#[derive(Debug, Clone)]
pub struct Newest(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    serials: Mutex<BTreeMap<u64, u64>>,
    /// Those by which nodes linked to us. A node that renewed its certificate keeps its open links, so this may lag behind.
    linked: RwLock<BTreeMap<u64, u64>>,
    one_at_a_time: Mutex<()>,
}

impl Newest {
    /// What was remembered in the folder of the certificates.
    pub fn open(folder: &Path) -> Result<Newest, TlsError> {
        let path = folder.join(FILE);
        let serials = match read(&path)? {
            None => BTreeMap::new(),
            Some(text) => serde_json::from_str(&text).map_err(|error| TlsError::Content {
                path: path.display().to_string(),
                why: error.to_string(),
            })?,
        };
        let (serials, linked) = (Mutex::new(serials), RwLock::default());
        Ok(Newest(Arc::new(Inner { path, serials, linked, one_at_a_time: Mutex::default() })))
    }

    /// Whether no newer certificate of this node is known.
    pub fn is_newest(&self, shown: &ShownNode) -> bool {
        self.serials().get(&shown.name.node).is_none_or(|newest| *newest <= shown.serial)
    }

    /// Learns of a certificate that the authority signed; true if it is the newest of its node. Those from before serial
    /// numbers are told from each other by nothing.
    pub fn learn(&self, shown: &ShownNode) -> bool {
        self.raise(shown.name.node, shown.serial)
    }

    /// Learns that a node has a certificate of this number; false if it has a newer one.
    pub fn raise(&self, node: u64, serial: u64) -> bool {
        let mut serials = self.serials();
        let known = serials.get(&node).copied().unwrap_or(0);
        if serial <= known {
            return serial == known;
        }
        serials.insert(node, serial);
        drop(serials);
        let this = self.clone();
        // Files are locked and written: not on a thread that serves sockets, where there is one.
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(move || this.store())),
            Err(_) => this.store(),
        }
        true
    }

    /// A node linked to us by this certificate.
    pub fn link(&self, shown: &ShownNode) {
        let mut linked = self.0.linked.write().unwrap_or_else(PoisonError::into_inner);
        let newest = linked.entry(shown.name.node).or_default();
        *newest = shown.serial.max(*newest);
    }

    /// Whether its node linked to us by a newer certificate since.
    pub fn is_replaced(&self, shown: &ShownNode) -> bool {
        let linked = self.0.linked.read().unwrap_or_else(PoisonError::into_inner);
        linked.get(&shown.name.node).is_some_and(|newest| *newest > shown.serial)
    }

    fn store(&self) {
        let _turn = self.0.one_at_a_time.lock().unwrap_or_else(PoisonError::into_inner);
        // What is newest now, whichever change brought us here.
        let text = serde_json::to_string(&*self.serials());
        let stored = text
            .map_err(|error| TlsError::Setup(error.to_string()))
            .and_then(|text| write(&self.0.path, &text, 0o600));
        if let Err(error) = stored {
            warn!(%error, "the newest certificates of other nodes are not remembered");
        }
    }

    fn serials(&self) -> MutexGuard<'_, BTreeMap<u64, u64>> {
        self.0.serials.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::Name;

    #[test]
    fn x_2_an_older_certificate_is_known_as_such_after_a_restart_too() {
        let folder = tempfile::tempdir().unwrap();
        let shown =
            |node, serial| ShownNode { name: Name { cluster: 7, node }, serial, key: Vec::new() };
        let newest = Newest::open(folder.path()).unwrap();
        assert!(newest.learn(&shown(2, 0)) && newest.learn(&shown(2, 5)));
        for newest in [newest, Newest::open(folder.path()).unwrap()] {
            assert!(!newest.is_newest(&shown(2, 4)) && !newest.learn(&shown(2, 0)));
            assert!(newest.is_newest(&shown(2, 5)) && newest.learn(&shown(2, 5)));
            assert!(newest.is_newest(&shown(3, 0)));
            // Open links end when their node links anew, not when it shows a newer certificate elsewhere.
            newest.link(&shown(2, 4));
            assert!(!newest.is_replaced(&shown(2, 4)) && !newest.is_replaced(&shown(3, 0)));
            newest.link(&shown(2, 5));
            assert!(newest.is_replaced(&shown(2, 4)) && !newest.is_replaced(&shown(2, 5)));
        }
    }
}
