//! The order in which unreferenced blobs are removed, as types: no step can be left out, and none comes early (A3).
//!
//! [`Candidates`] have no pin; after a look at all shards the free ones become an [`Announcement`]; once that is
//! committed it is [`Announced`]; after another look the free ones are [`Removable`]. Removal asks for pins again.
//!
//! Left out: how a look is taken and an entry committed. The node does that over the network, the simulator in its world.

use super::{BlobError, BlobId, Blobs};
use crate::disk::Disk;

/// Blobs without a pin.
#[derive(Debug)]
#[must_use]
pub struct Candidates(Vec<BlobId>);

/// Blobs that nothing referred to; their removal is to be announced.
#[derive(Debug)]
#[must_use]
pub struct Announcement(Vec<BlobId>);

/// Blobs whose removal was announced in the log.
#[derive(Debug)]
#[must_use]
pub struct Announced(Vec<BlobId>);

/// Blobs that nothing referred to after the announcement either.
#[derive(Debug)]
#[must_use]
pub struct Removable(Vec<BlobId>);

fn those_in(mut ids: Vec<BlobId>, free: &[BlobId]) -> Vec<BlobId> {
    ids.retain(|id| free.contains(id));
    ids
}

impl Candidates {
    /// The blobs to look up.
    pub fn ids(&self) -> &[BlobId] {
        &self.0
    }

    /// The look is over; `free` are those that no shard refers to.
    pub fn looked(self, free: &[BlobId]) -> Announcement {
        Announcement(those_in(self.0, free))
    }
}

impl Announcement {
    /// The blobs to announce.
    pub fn ids(&self) -> &[BlobId] {
        &self.0
    }

    /// The announcement is committed.
    pub fn committed(self) -> Announced {
        Announced(self.0)
    }
}

impl Announced {
    /// The blobs to look up again.
    pub fn ids(&self) -> &[BlobId] {
        &self.0
    }

    /// The second look is over.
    pub fn looked(self, free: &[BlobId]) -> Removable {
        Removable(those_in(self.0, free))
    }
}

impl Removable {
    /// The blobs that may go.
    pub fn ids(&self) -> &[BlobId] {
        &self.0
    }
}

impl<D: Disk> Blobs<D> {
    /// Blobs without a pin whose digests begin with a byte, in parts of at most `count_max`.
    pub fn candidates(
        &self,
        first: u8,
        count_max: usize,
        now_ms: u64,
    ) -> Result<Vec<Candidates>, BlobError> {
        let mut ids = self.list(first)?;
        ids.retain(|id| !self.is_pinned(id, now_ms));
        Ok(ids.chunks(count_max.max(1)).map(|part| Candidates(part.to_vec())).collect())
    }

    /// Removes what may go and is not pinned; gives how many.
    pub fn remove_all(&self, removable: &Removable, now_ms: u64) -> Result<u64, BlobError> {
        let mut removed = 0;
        for id in &removable.0 {
            removed += u64::from(self.remove(id, now_ms)?);
        }
        Ok(removed)
    }
}
