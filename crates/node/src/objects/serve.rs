//! Answering a peer's questions about blobs, one connection at a time.

use std::io;
use std::time::Instant;

use bytes::Bytes;
use ikada_api::socket::Socket;
use ikada_replica::state::{Digest, Digests};
use ikada_store::{BLOB_BYTES_MAX, BlobError};

use super::Shelf;
use super::counters::Cells;
use super::message::{BlobAsk, BlobTold, MESSAGE_BYTES_MAX};
use crate::peers::{decode, encode, wire};

/// Serves one connection until the peer closes it, or is no longer a member. It has been admitted already.
pub(crate) async fn serve_peer(
    mut stream: Socket,
    shelf: &Shelf,
    is_member: impl Fn() -> bool,
) -> io::Result<()> {
    while let Some(ask) = wire::read(&mut stream, MESSAGE_BYTES_MAX).await? {
        // Connections are kept for long; whoever was removed meanwhile has no more word, and none of the objects.
        if !is_member() {
            return Ok(());
        }
        let ask: BlobAsk = decode(&ask).ok_or(io::ErrorKind::InvalidData)?;
        let (told, bytes) = match ask {
            BlobAsk::Store(digest) => {
                let bytes = wire::read(&mut stream, BLOB_BYTES_MAX).await?;
                let bytes = bytes.ok_or(io::ErrorKind::UnexpectedEof)?;
                (shelf.keep_for_peer(digest, bytes).await, None)
            }
            BlobAsk::Fetch(digest) => shelf.give_to_peer(digest).await,
            BlobAsk::Confirm(digests) => (shelf.confirm_to_peer(digests).await, None),
            BlobAsk::Gossip(facts) => {
                shelf.hear(&facts);
                (BlobTold::Gossip(shelf.gossip().facts(Instant::now())), None)
            }
        };
        wire::write(&mut stream, &encode(&told)).await?;
        if let Some(bytes) = bytes {
            wire::write(&mut stream, &bytes).await?;
        }
    }
    Ok(())
}

impl Shelf {
    async fn keep_for_peer(&self, digest: Digest, bytes: Bytes) -> BlobTold {
        match self.store_here(digest, bytes).await {
            Ok(()) => BlobTold::Stored,
            Err(error) => failed(&error),
        }
    }

    async fn give_to_peer(&self, digest: Digest) -> (BlobTold, Option<Bytes>) {
        match self.read_here(digest).await {
            Ok(Some(bytes)) => {
                Cells::add(&self.0.cells.served, 1);
                Cells::add(&self.0.cells.served_bytes, bytes.len() as u64);
                (BlobTold::Found, Some(bytes))
            }
            Ok(None) => (BlobTold::Missing, None),
            Err(error) => (failed(&error), None),
        }
    }

    async fn confirm_to_peer(&self, digests: Digests) -> BlobTold {
        match self.confirm_here(digests).await {
            Ok(missing) => BlobTold::Confirmed(missing),
            Err(error) => failed(&error),
        }
    }

    /// Which blobs this node lacks; the others stay for the grace time.
    pub(super) async fn confirm_here(&self, digests: Digests) -> Result<Digests, BlobError> {
        let confirmed = self.on_disk(move |inner, now_ms| {
            let mut missing = Vec::new();
            for digest in digests.iter() {
                if !inner.blobs.confirm(&digest.0, now_ms)? {
                    missing.push(*digest);
                }
            }
            Ok(missing)
        });
        Ok(confirmed.await?.into())
    }
}

fn failed(error: &BlobError) -> BlobTold {
    BlobTold::Failed { why: error.to_string(), full: error.is_disk_full() }
}
