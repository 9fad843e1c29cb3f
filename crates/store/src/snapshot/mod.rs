//! Snapshots of shards: a data file in chunks and a manifest that names and hashes them, in `snap/`.
//!
//! Order of a commit: data into a temporary file, sync, rename, sync of the folder; then the manifest the same
//! way. The manifest's existence is the commit: data without a manifest is an attempt and is swept away at the
//! next open, a manifest whose data is missing or wrong is damage and moves to `quarantine/`.
//!
//! Names: `snap/<shard, 5 digits>-<index, 20>-<term, 20>.data` and `.manifest`. Left out: what is inside, when to
//! take one, how chunks travel to peers.

mod load;
mod manifest;
mod write;

pub use manifest::{Chunk, Manifest};
pub use write::SnapshotWriter;

use crate::disk::Disk;
use crate::identity::Identity;
use std::io;
use std::sync::Mutex;

pub(crate) const FOLDER: &str = "snap";
pub(crate) const QUARANTINE: &str = "quarantine";

/// Why a snapshot could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The disk failed.
    #[error("snapshot {name}: {source}")]
    Io {
        /// The file.
        name: String,
        /// The disk's answer.
        source: io::Error,
    },
    /// A chunk's bytes do not have the hash that the manifest names.
    #[error("snapshot {name}: chunk {chunk} does not match its hash")]
    Chunk {
        /// The snapshot.
        name: String,
        /// Number of the chunk.
        chunk: usize,
    },
    /// Not a manifest, or a damaged one.
    #[error("snapshot manifest is damaged ({0})")]
    Manifest(&'static str),
    /// The manifest of another cluster.
    #[error("snapshot belongs to cluster {found}, this node to cluster {expected}")]
    Foreign {
        /// Cluster in the manifest.
        found: u64,
        /// Our cluster.
        expected: u64,
    },
    /// More or fewer chunks than announced, or other facts than announced.
    #[error("snapshot {name}: received {what} differs from its manifest")]
    Unexpected {
        /// The snapshot.
        name: String,
        /// What differs.
        what: &'static str,
    },
}

impl SnapshotError {
    /// Whether the disk was full: the snapshot can be tried again later, nothing else was harmed.
    #[must_use]
    pub fn is_disk_full(&self) -> bool {
        matches!(self, SnapshotError::Io { source, .. } if crate::disk::is_full(source))
    }
}

/// All snapshots of a node.
#[derive(Debug)]
pub struct Snapshots<D: Disk> {
    disk: D,
    cluster: u64,
    quarantined: Mutex<Vec<String>>,
}

impl<D: Disk> Snapshots<D> {
    /// Opens `snap/` and sweeps away attempts that were never committed. A folder with snapshots of another cluster is
    /// refused before anything is touched.
    pub fn open(disk: D, identity: &Identity) -> Result<Snapshots<D>, SnapshotError> {
        let snapshots =
            Snapshots { disk, cluster: identity.cluster, quarantined: Mutex::default() };
        snapshots.disk.make_dir(FOLDER).map_err(at(FOLDER))?;
        snapshots.require_own()?;
        snapshots.disk.make_dir(QUARANTINE).map_err(at(QUARANTINE))?;
        snapshots.sweep()?;
        Ok(snapshots)
    }

    /// Begins a snapshot of a shard's state at a log position.
    pub fn begin(
        &self,
        shard: u16,
        index: u64,
        term: u64,
    ) -> Result<SnapshotWriter<D>, SnapshotError> {
        SnapshotWriter::create(&self.disk, Manifest::new(self.cluster, shard, index, term), None)
    }

    /// Begins to receive a snapshot that a peer announced; every chunk is checked before it is written.
    pub fn receive(&self, expected: &Manifest) -> Result<SnapshotWriter<D>, SnapshotError> {
        if expected.cluster != self.cluster {
            let (found, expected) = (expected.cluster, self.cluster);
            return Err(SnapshotError::Foreign { found, expected });
        }
        let manifest = Manifest::new(self.cluster, expected.shard, expected.index, expected.term);
        SnapshotWriter::create(&self.disk, manifest, Some(expected.clone()))
    }

    /// Files moved to `quarantine/` since open.
    #[must_use]
    pub fn quarantined(&self) -> Vec<String> {
        self.quarantined.lock().map_or_else(|_| Vec::new(), |names| names.clone())
    }

    fn note_quarantined(&self, name: String) {
        if let Ok(mut names) = self.quarantined.lock() {
            names.push(name);
        }
    }
}

pub(crate) fn at(name: &str) -> impl FnOnce(io::Error) -> SnapshotError + '_ {
    move |source| SnapshotError::Io { name: name.to_owned(), source }
}
