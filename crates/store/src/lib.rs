//! Bytes that survive: the shared write-ahead log, snapshots, blobs and the node's identity.
//!
//! Promises
//! - What [`Log::sync`] returned `Ok` for is there after a crash, a kill or a power cut.
//! - Damage is never mistaken for a torn tail: bytes that some later record proves durable are either
//!   read back intact, or reported per shard as a *floor* that the shard must reach again before it
//!   may vote or lead. Nothing is deleted on recovery; files move to `quarantine/`.
//! - Term and vote exist twice. If neither copy can be trusted the log refuses to open.
//! - A snapshot exists exactly when its manifest does.
//! - A blob is read back with the bytes that its name is the digest of, or not at all.
//! - Any failed write or sync is a [`Fault`]: the process must exit and recover by reading the disk.
//!
//! Left out: what entries mean, who may write them, when to snapshot, threads and scheduling. Callers
//! hand in a [`Disk`]; the real one and the simulated one pass the same suite (`tests/disk.rs`).

pub mod blob;
pub mod disk;
pub mod identity;
pub mod log;
pub mod planted;
pub mod postgres;
pub mod snapshot;

mod codec;

pub use blob::{BLOB_BYTES_MAX, BlobError, BlobId, Blobs};
pub use disk::{Disk, DiskFile, FolderLock, RealDisk, SimCounters, SimDisk};
pub use identity::{Identity, IdentityError};
pub use log::{
    Fault, Log, LogOptions, LogStats, OpenError, Record, RecoveredEntry, RecoveredShard, Recovery,
};
pub use snapshot::{Chunk, Manifest, SnapshotError, SnapshotWriter, Snapshots};
