//! This node's blobs, and what is needed to work with them from async code.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use ikada_replica::state::Digest;
use ikada_store::blob::GRACE_MS_DEFAULT;
use ikada_store::{BlobError, Blobs, RealDisk};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::ask::Peer;
use super::cache::Cache;
use super::counters::{BlobCounters, Cells};
use super::leave::Looked;
use crate::config::{BLOB_CACHE_BYTES, BLOB_DISK_JOBS_MAX, DISK_RESERVE_BYTES};
use crate::gossip::{Fact, Gossip};
use crate::peers::BlobDialling;

/// How a shelf behaves; the defaults are for real nodes.
#[derive(Debug, Clone)]
pub struct ShelfOptions {
    /// How long "stored" holds for what nothing refers to.
    pub grace_ms: u64,
    /// Bytes of pieces kept in memory.
    pub cache_bytes: u64,
    /// Room on the disk that uploads leave for the log (F-12).
    pub reserve_bytes: u64,
}

impl Default for ShelfOptions {
    fn default() -> Self {
        ShelfOptions {
            grace_ms: GRACE_MS_DEFAULT,
            cache_bytes: BLOB_CACHE_BYTES,
            reserve_bytes: DISK_RESERVE_BYTES,
        }
    }
}

pub(super) struct Inner {
    pub(super) blobs: Blobs<RealDisk>,
    disk: RealDisk,
    reserve_bytes: u64,
    started: Instant,
    disk_jobs: Semaphore,
    reach: BlobDialling,
    peers: Mutex<Vec<Arc<Peer>>>,
    pub(super) cache: Cache,
    pub(super) cells: Cells,
    /// How far the look before a member leaves has come.
    pub(super) looked: Mutex<Option<Looked>>,
    gossip: Gossip,
}

/// A cloneable handle on the blobs of a node.
#[derive(Clone)]
pub struct Shelf(pub(super) Arc<Inner>);

impl Shelf {
    /// Opens the blobs on a disk.
    pub fn open(
        disk: RealDisk,
        options: &ShelfOptions,
        reach: BlobDialling,
    ) -> Result<Shelf, BlobError> {
        let blobs = Blobs::open(disk.clone(), options.grace_ms, 0)?;
        Ok(Shelf(Arc::new(Inner {
            blobs,
            disk,
            reserve_bytes: options.reserve_bytes,
            started: Instant::now(),
            disk_jobs: Semaphore::new(BLOB_DISK_JOBS_MAX),
            reach,
            peers: Mutex::default(),
            cache: Cache::new(options.cache_bytes),
            cells: Cells::default(),
            looked: Mutex::default(),
            gossip: Gossip::default(),
        })))
    }

    /// Numbers for the metrics.
    pub fn counters(&self) -> BlobCounters {
        let (damaged, cache_bytes) = (self.0.blobs.damaged(), self.0.cache.bytes());
        BlobCounters { damaged, cache_bytes, ..self.0.cells.read() }
    }

    /// What is known of nodes. It travels on the same connections as blobs.
    pub(crate) fn gossip(&self) -> &Gossip {
        &self.0.gossip
    }

    /// Takes what a peer told about the other members.
    pub(crate) fn hear(&self, facts: &[Fact]) {
        self.0.gossip.hear(facts, &self.0.members(), Instant::now());
    }

    /// How long "stored" holds.
    pub fn grace_ms(&self) -> u64 {
        self.0.blobs.grace_ms()
    }

    /// Time on this process's own clock: pins count in it.
    pub(super) fn now_ms(&self) -> u64 {
        self.0.started.elapsed().as_millis() as u64
    }

    /// The other members as of now, with the connections to them that are kept.
    pub(crate) fn peers(&self) -> Vec<Arc<Peer>> {
        let mut known = self.0.peers.lock().unwrap_or_else(PoisonError::into_inner);
        let others = self.0.reach.others().into_iter();
        let now = others.map(|(node, addr)| {
            let same = known.iter().find(|peer| (peer.node, &peer.addr) == (node, &addr));
            let fresh = || Arc::new(Peer::new(node, addr.clone(), self.0.reach.clone()));
            same.cloned().unwrap_or_else(fresh)
        });
        *known = now.collect();
        known.clone()
    }

    /// A place among the disk's jobs; waits for one.
    pub(super) async fn disk_place(&self) -> Result<SemaphorePermit<'_>, BlobError> {
        self.0.disk_jobs.acquire().await.map_err(|_| cut_off("the node is stopping"))
    }

    /// All places, so that a test has a disk that does nothing.
    #[cfg(test)]
    pub(crate) async fn hold_disk(&self) -> SemaphorePermit<'_> {
        self.0.disk_jobs.acquire_many(BLOB_DISK_JOBS_MAX as u32).await.unwrap()
    }

    /// Does disk work beside the async threads, a bounded number at a time.
    pub(super) async fn on_disk<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner, u64) -> Result<T, BlobError> + Send + 'static,
    ) -> Result<T, BlobError> {
        let place = self.disk_place().await?;
        self.on_disk_at(place, work).await
    }

    async fn on_disk_at<T: Send + 'static>(
        &self,
        _place: SemaphorePermit<'_>,
        work: impl FnOnce(&Inner, u64) -> Result<T, BlobError> + Send + 'static,
    ) -> Result<T, BlobError> {
        let shelf = self.clone();
        let job = tokio::task::spawn_blocking(move || work(&shelf.0, shelf.now_ms()));
        job.await.map_err(|_| cut_off("disk work was cut off"))?
    }

    /// Stores a piece on this node's disk.
    pub(super) async fn store_here(&self, digest: Digest, bytes: Bytes) -> Result<(), BlobError> {
        let place = self.disk_place().await?;
        self.store_at(place, digest, bytes).await
    }

    /// The same for whoever has a place already.
    pub(super) async fn store_at(
        &self,
        place: SemaphorePermit<'_>,
        digest: Digest,
        bytes: Bytes,
    ) -> Result<(), BlobError> {
        let length = bytes.len() as u64;
        let stored = self.on_disk_at(place, move |inner, now_ms| {
            inner.check_room(length)?;
            inner.blobs.put(&digest.0, &bytes, now_ms)
        });
        match stored.await {
            Ok(_) => {
                Cells::add(&self.0.cells.stored, 1);
                Cells::add(&self.0.cells.stored_bytes, length);
                Ok(())
            }
            Err(error) => {
                Cells::add(&self.0.cells.refused_full, u64::from(error.is_disk_full()));
                Err(error)
            }
        }
    }

    /// Reads a piece from this node's disk, checked.
    pub(super) async fn read_here(&self, digest: Digest) -> Result<Option<Bytes>, BlobError> {
        let read = self.on_disk(move |inner, _| inner.blobs.get(&digest.0));
        Ok(read.await?.map(Bytes::from))
    }

    /// Keeps pieces for the grace time, so that nothing removes them under a reader's feet.
    pub fn pin(&self, digests: &[Digest]) {
        let now_ms = self.now_ms();
        digests.iter().for_each(|digest| self.0.blobs.pin(&digest.0, now_ms));
    }
}

impl Inner {
    /// The other nodes as of now.
    pub(super) fn members(&self) -> Vec<u64> {
        self.reach.others().iter().map(|(node, _)| *node).collect()
    }

    /// Refuses before the log is without room: completions and snapshots need it more.
    pub(super) fn check_room(&self, length: u64) -> Result<(), BlobError> {
        let failed = |source| BlobError::Io { name: "blob".to_owned(), source };
        let free = self.disk.free_bytes().map_err(failed)?;
        if free < self.reserve_bytes.saturating_add(length) {
            return Err(failed(std::io::ErrorKind::StorageFull.into()));
        }
        Ok(())
    }
}

fn cut_off(what: &'static str) -> BlobError {
    BlobError::Io { name: "blob".to_owned(), source: std::io::Error::other(what) }
}
