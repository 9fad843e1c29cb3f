//! One piece, from wherever it is: memory, this node's disk, a peer.

use bytes::Bytes;
use ikada_replica::state::Digest;
use ikada_store::blob::digest as digest_of;
use tracing::{debug, warn};

use super::Shelf;
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

    /// A piece that this node lacks; it keeps a copy. Peers are asked in an order that depends on the piece, so that
    /// not all ask the same one.
    pub(super) async fn fetch_from_peers(&self, digest: Digest) -> Result<Bytes, FetchError> {
        let peers = self.peers();
        let first = usize::from(digest.0[1]) % peers.len().max(1);
        for peer in peers[first..].iter().chain(&peers[..first]) {
            match peer.fetch(digest).await {
                Ok(Some(bytes)) if digest_of(&bytes) == digest.0 => {
                    Cells::add(&self.0.cells.fetched, 1);
                    if let Err(error) = self.store_here(digest, bytes.clone()).await {
                        warn!(%error, "a fetched piece could not be kept");
                    }
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
