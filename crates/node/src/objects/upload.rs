//! Takes an object's bytes as they come, cuts and hashes them, and spreads the pieces.
//!
//! At most a window of pieces is in memory, however large the object is. What is given up leaves pieces that nothing
//! refers to; they are collected after the grace time.

use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use ikada_replica::state::limits::OBJECT_CHUNKS_MAX;
use ikada_replica::state::{Digest, Digests};
use ikada_store::BLOB_BYTES_MAX;
use ikada_store::blob::digest;
use tokio::task::JoinSet;

use super::{Shelf, SpreadError};
use crate::config::{CACHED_PIECES_MAX, UPLOAD_PIECES_MAX};

/// Largest object.
const OBJECT_BYTES_MAX: u64 = OBJECT_CHUNKS_MAX as u64 * BLOB_BYTES_MAX as u64;

// The state and the store must mean the same piece.
const _: () = assert!(ikada_replica::state::limits::OBJECT_CHUNK_BYTES == BLOB_BYTES_MAX as u64);

/// What an upload came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// Bytes in all.
    pub size: u64,
    /// Digest of all bytes.
    pub digest: Digest,
    /// Digest of each piece.
    pub chunks: Digests,
}

/// Bytes on their way in.
pub struct Upload {
    shelf: Shelf,
    begun: Instant,
    /// The other nodes at the beginning.
    members: Vec<u64>,
    piece: BytesMut,
    whole: blake3::Hasher,
    size: u64,
    chunks: Vec<Digest>,
    under_way: JoinSet<Result<(), SpreadError>>,
}

impl Upload {
    /// Largest object that can be uploaded.
    pub const BYTES_MAX: u64 = OBJECT_BYTES_MAX;

    /// Begins.
    pub fn begin(shelf: &Shelf) -> Upload {
        Upload {
            shelf: shelf.clone(),
            begun: Instant::now(),
            members: shelf.0.members(),
            piece: BytesMut::new(),
            whole: blake3::Hasher::new(),
            size: 0,
            chunks: Vec::new(),
            under_way: JoinSet::new(),
        }
    }

    /// Bytes taken so far.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Takes some bytes; waits while the window is full. The caller keeps an eye on the size.
    pub async fn push(&mut self, mut bytes: Bytes) -> Result<(), SpreadError> {
        self.size += bytes.len() as u64;
        self.whole.update(&bytes);
        while !bytes.is_empty() {
            let room = BLOB_BYTES_MAX - self.piece.len();
            let part = bytes.split_to(room.min(bytes.len()));
            self.piece.extend_from_slice(&part);
            if self.piece.len() == BLOB_BYTES_MAX {
                self.send_piece().await?;
            }
        }
        Ok(())
    }

    /// Takes a piece that a majority of the nodes has already: it is only counted and hashed. All pieces before it must
    /// be full.
    pub(crate) fn adopt(&mut self, digest: Digest, bytes: &Bytes) {
        assert!(self.piece.is_empty(), "a piece is begun");
        self.size += bytes.len() as u64;
        self.whole.update(bytes);
        self.chunks.push(digest);
    }

    async fn send_piece(&mut self) -> Result<(), SpreadError> {
        while self.under_way.len() >= UPLOAD_PIECES_MAX {
            self.wait_for_one().await?;
        }
        let bytes = std::mem::take(&mut self.piece).freeze();
        let digest = Digest(digest(&bytes));
        self.chunks.push(digest);
        self.remember(digest, &bytes);
        let shelf = self.shelf.clone();
        self.under_way.spawn(async move { shelf.spread(digest, bytes).await });
        Ok(())
    }

    /// What was just brought is likely to be asked for (CH-26); a large object would drive out many small ones.
    fn remember(&self, digest: Digest, bytes: &Bytes) {
        let cache = &self.shelf.0.cache;
        if self.chunks.len() <= CACHED_PIECES_MAX {
            // A copy: the buffer that bytes came in may be twice as long as they are.
            cache.put(digest, Bytes::copy_from_slice(bytes));
        } else if self.chunks.len() == CACHED_PIECES_MAX + 1 {
            self.chunks.iter().for_each(|digest| cache.forget(digest));
        }
    }

    async fn wait_for_one(&mut self) -> Result<(), SpreadError> {
        match self.under_way.join_next().await {
            Some(Ok(spread)) => spread,
            None => Ok(()),
            Some(Err(_)) => {
                let why = "cut off".to_owned();
                Err(SpreadError::TooFew { copies: 0, needed: 1, why })
            }
        }
    }

    /// Ends: every piece is on a majority of the nodes, and stays there long enough for its name to be committed.
    pub async fn finish(mut self) -> Result<Content, SpreadError> {
        if !self.piece.is_empty() {
            self.send_piece().await?;
        }
        while !self.under_way.is_empty() {
            self.wait_for_one().await?;
        }
        // "Stored" holds for the grace time. After half of it, it must be said again.
        let half = Duration::from_millis(self.shelf.grace_ms() / 2);
        let is_old = self.begun.elapsed() > half;
        // A majority of the nodes that there were is none of those that there are (A2).
        if is_old || self.shelf.0.members() != self.members {
            self.shelf.confirm(&self.chunks).await?;
        }
        let digest = Digest(*self.whole.finalize().as_bytes());
        Ok(Content { size: self.size, digest, chunks: self.chunks.into() })
    }
}
