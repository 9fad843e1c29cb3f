//! Snapshots: the stored state as a stream of records, cut into bounded chunks.
//!
//! Stream: per record one kind byte, a length (4 bytes, little-endian) and its CBOR; kinds rise;
//! the header comes first and a trailer with the state hash last. Chunks cut the stream anywhere,
//! so that a record may be larger than a chunk. Checksums of chunks and files are the store's
//! business; the hash here proves that what was restored is the state that was frozen (TQ-26).

mod error;
mod read;
mod stored;
mod write;

pub use error::RestoreError;
pub(crate) use stored::{StoredTask, TaskLine, Trailer};
pub use write::{Chunks, Frozen};

/// Format version, in the header. Also raised when the state hash is computed in another way: the trailer holds it, and
/// without another version an old snapshot would look damaged.
pub(crate) const VERSION: u32 = 2;

/// Largest chunk.
pub const CHUNK_BYTES_MAX: usize = 256 << 10;

/// Largest record accepted: a task at its bounds fits several times over.
pub(crate) const RECORD_BYTES_MAX: usize = 8 << 20;
