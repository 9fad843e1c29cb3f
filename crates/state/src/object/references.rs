//! Which blobs the objects of a shard refer to.

use std::ops::Bound;

use super::Digest;
use crate::shard::Shard;
use crate::snapshot::Frozen;

/// A page of referred blobs in order of their digests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct References {
    /// The digests.
    pub digests: Vec<Digest>,
    /// Whether there are more after the last one.
    pub more: bool,
    /// How often objects of the shard changed since this process read it. Equal numbers: equal references.
    pub changes: u64,
}

impl Shard {
    /// Whether any version of any object, any remembered result or any waiting message has this piece.
    pub fn refers_to(&self, digest: &Digest) -> bool {
        self.index.references.contains_key(digest)
    }

    /// Referred blobs after a digest.
    pub fn references(&self, after: Option<&Digest>, limit: usize) -> References {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut all =
            self.index.references.range((start, Bound::Unbounded)).map(|(digest, _)| digest);
        let digests = all.by_ref().take(limit).copied().collect();
        let changes = self.index.object_changes;
        References { digests, more: all.next().is_some(), changes }
    }
}

impl Frozen {
    /// All blobs that its objects, its memory and its messages refer to, in no order; one may come more than once.
    pub fn pieces(&self) -> impl Iterator<Item = Digest> + '_ {
        let objects = self.core().objects.iter().map(|(_, object)| object);
        let versions = objects.flat_map(|object| object.versions.iter());
        let remembered = self.core().remembered.values().flat_map(|record| record.stored.pieces());
        let waiting = self.core().outbox.items().flat_map(|item| item.message.pieces());
        let all = versions.flat_map(|version| version.chunks.iter());
        all.chain(remembered).chain(waiting).copied()
    }
}
