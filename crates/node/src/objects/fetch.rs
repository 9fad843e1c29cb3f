//! One piece, from wherever it is: memory, this node's disk, a peer.

use std::sync::Arc;

use bytes::Bytes;
use ikada_replica::state::Digest;
use ikada_store::blob::digest as digest_of;
use tracing::{debug, warn};

use super::Shelf;
use super::ask::Peer;
use super::counters::Cells;

/// Why a piece cannot be had now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("piece {digest} is on no node that can be reached")]
pub struct FetchError {
    /// Which piece.
    pub digest: Digest,
}

impl Shelf {
    /// The bytes of a piece, checked; they stay in memory if `keep` says so.
    pub async fn fetch(&self, digest: Digest, keep: bool) -> Result<Bytes, FetchError> {
        if let Some(bytes) = self.0.cache.get(&digest) {
            Cells::add(&self.0.cells.cache_hits, 1);
            return Ok(self.count_served(bytes));
        }
        Cells::add(&self.0.cells.cache_misses, 1);
        let here = self.read_here(digest).await;
        if let Err(error) = &here {
            warn!(%error, "a piece could not be read; its copy on a peer is used");
        }
        let bytes = match here {
            Ok(Some(bytes)) => bytes,
            Ok(None) | Err(_) => self.fetch_from_peers(digest).await?,
        };
        if keep {
            self.0.cache.put(digest, bytes.clone());
        }
        Ok(self.count_served(bytes))
    }

    /// Empties the memory, so that a test meets the disk.
    #[cfg(test)]
    pub(crate) fn forget_all(&self) {
        self.0.cache.clear();
    }

    /// Whether a piece is in memory.
    pub(crate) fn in_memory(&self, digest: &Digest) -> bool {
        self.0.cache.holds(digest)
    }

    fn count_served(&self, bytes: Bytes) -> Bytes {
        Cells::add(&self.0.cells.served, 1);
        Cells::add(&self.0.cells.served_bytes, bytes.len() as u64);
        bytes
    }

    /// A piece that this node lacks; it keeps a copy if it can. One that cannot be kept is handed on all the same: a full
    /// disk hides no object.
    async fn fetch_from_peers(&self, digest: Digest) -> Result<Bytes, FetchError> {
        let bytes = self.ask_peers(digest).await?;
        match self.store_here(digest, bytes.clone()).await {
            Ok(()) => {}
            Err(error) if error.is_disk_full() => debug!(%error, "a fetched piece finds no room"),
            Err(error) => warn!(%error, "a fetched piece could not be kept"),
        }
        Ok(bytes)
    }

    /// A piece from whichever peer has it, checked.
    pub(super) async fn ask_peers(&self, digest: Digest) -> Result<Bytes, FetchError> {
        for peer in in_order(self.peers(), digest) {
            match peer.fetch(digest).await {
                Ok(Some(bytes)) if digest_of(&bytes) == digest.0 => {
                    Cells::add(&self.0.cells.fetched, 1);
                    return Ok(bytes);
                }
                Ok(Some(_)) => warn!(node = peer.node, %digest, "a peer sent other bytes"),
                Ok(None) => {}
                Err(error) => debug!(%error, %digest, "a peer could not be asked for a piece"),
            }
        }
        Err(FetchError { digest })
    }
}

/// Who is asked first depends on the piece, so that not all ask the same one. Whoever was silent a short while ago comes
/// last: its answer would be waited for.
fn in_order(mut peers: Vec<Arc<Peer>>, digest: Digest) -> Vec<Arc<Peer>> {
    let first = usize::from(digest.0[1]) % peers.len().max(1);
    peers.rotate_left(first);
    peers.sort_by_key(|peer| peer.is_silent());
    peers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::{BlobDialling, Directory, link_hello};

    // CH-5: a node that went without a word holds up one piece, and not each.
    #[tokio::test]
    async fn ch_5_a_silent_peer_is_asked_last() {
        let reach = BlobDialling::new(link_hello(1, 1, 1), None, Directory::default());
        let peer = |node| Arc::new(Peer::new(node, "127.0.0.1:1".to_owned(), reach.clone()));
        let peers = vec![peer(2), peer(3), peer(4)];
        let order = |digest| {
            let peers = in_order(peers.clone(), digest);
            peers.iter().map(|peer| peer.node).collect::<Vec<_>>()
        };
        assert_eq!(order(Digest([0; 32])), [2, 3, 4]);
        assert_eq!(order(Digest([1; 32])), [3, 4, 2]);
        assert!(peers[1].fetch(Digest([1; 32])).await.is_err(), "nobody is there");
        assert_eq!(order(Digest([0; 32])), [2, 4, 3]);
        assert_eq!(order(Digest([1; 32])), [4, 2, 3]);
    }
}
