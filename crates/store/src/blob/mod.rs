//! Blobs: pieces of objects, each a file named by the BLAKE3 digest of its bytes, in `blob/`.
//!
//! Promises
//! - What [`Blobs::put`] returned `Ok` for is there after a crash, with its bytes: temporary file, sync, rename, sync of
//!   the folder. A blob that lay there before is read and checked first.
//! - [`Blobs::get`] gives bytes that have the digest asked for, or none (A1). A file with other bytes, or one that the disk
//!   cannot read, moves to `quarantine/`; nothing damaged is deleted.
//! - A pinned blob is not removed, and none without the steps of [`Candidates`] to [`Removable`]. Whoever is told "stored" or "have it" may rely on that for the grace time
//!   (A3); everything is pinned for that time after opening, since pins are not written down.
//!
//! Names never come from callers: a digest is 32 bytes, and its hex form is the file's name.
//!
//! Left out: who refers to a blob, when to collect or repair, copies on other nodes, threads. Time comes in as an
//! argument. Blobs are behind a shared reference, so that several threads can work at once.

mod list;
mod pins;
mod put;
mod read;
mod remove;
mod round;

use std::io;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;

use crate::disk::Disk;
use pins::Pins;

pub use round::{Announced, Announcement, Candidates, Removable};

/// Largest blob. Objects are cut into pieces of this size: small enough to hold several in memory, large enough that
/// the log keeps only 32 bytes for each.
pub const BLOB_BYTES_MAX: usize = 1 << 20;

/// How long "stored" and "have it" hold, whether or not anything refers to the blob.
pub const GRACE_MS_DEFAULT: u64 = 60 * 60 * 1000;

/// Digest of a blob's bytes, and its only name.
pub type BlobId = [u8; 32];

pub(crate) const FOLDER: &str = "blob";
const QUARANTINE: &str = "quarantine";
/// Ends the name of a file that is not committed yet.
const TEMPORARY: &str = ".tmp";

/// Why a blob could not be stored, read or removed.
#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    /// The disk failed.
    #[error("blob {name}: {source}")]
    Io {
        /// The file.
        name: String,
        /// The disk's answer.
        source: io::Error,
    },
    /// The bytes do not have the digest they were given under.
    #[error("the bytes given as blob {name} have another digest")]
    WrongDigest {
        /// The digest they were given under.
        name: String,
    },
    /// More bytes than a blob may have.
    #[error("a blob may have at most {BLOB_BYTES_MAX} bytes, not {bytes}")]
    TooLarge {
        /// How many were given.
        bytes: usize,
    },
}

impl BlobError {
    /// Whether the disk was full: nothing was harmed, and it can be tried again when there is room.
    #[must_use]
    pub fn is_disk_full(&self) -> bool {
        matches!(self, BlobError::Io { source, .. } if crate::disk::is_full(source))
    }
}

/// All blobs of a node.
#[derive(Debug)]
pub struct Blobs<D: Disk> {
    disk: D,
    pins: Mutex<Pins>,
    /// Numbers temporary files, so that two writers of one blob do not share one.
    writes: AtomicU64,
    damaged: AtomicU64,
}

impl<D: Disk> Blobs<D> {
    /// Opens `blob/` and sweeps away attempts that were never committed. Everything counts as pinned from now on for
    /// the grace time.
    pub fn open(disk: D, grace_ms: u64, now_ms: u64) -> Result<Blobs<D>, BlobError> {
        let pins = Mutex::new(Pins::new(grace_ms, now_ms));
        let (writes, damaged) = (AtomicU64::new(0), AtomicU64::new(0));
        let blobs = Blobs { disk, pins, writes, damaged };
        blobs.disk.make_dir(FOLDER).map_err(at(FOLDER))?;
        blobs.disk.make_dir(QUARANTINE).map_err(at(QUARANTINE))?;
        blobs.sweep()?;
        Ok(blobs)
    }

    /// The grace time.
    #[must_use]
    pub fn grace_ms(&self) -> u64 {
        self.locked_pins().grace_ms()
    }

    /// Blobs found damaged and moved to `quarantine/` since open.
    #[must_use]
    pub fn damaged(&self) -> u64 {
        self.damaged.load(std::sync::atomic::Ordering::Relaxed)
    }
}

/// The digest of some bytes.
#[must_use]
pub fn digest(bytes: &[u8]) -> BlobId {
    *blake3::hash(bytes).as_bytes()
}

/// The folder of all blobs whose digest begins with a byte.
fn folder_of(first: u8) -> String {
    format!("{FOLDER}/{first:02x}")
}

fn hex(id: &BlobId) -> String {
    use std::fmt::Write;
    id.iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The digest that a file's name says; none if the name is no digest.
fn parse_hex(text: &str) -> Option<BlobId> {
    if text.len() != 64 {
        return None;
    }
    let mut id = [0; 32];
    for (place, pair) in id.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        let digit = |byte: u8| match byte {
            b'0'..=b'9' => Some(byte - b'0'),
            b'a'..=b'f' => Some(byte - b'a' + 10),
            _ => None,
        };
        *place = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(id)
}

fn at(name: &str) -> impl FnOnce(io::Error) -> BlobError + '_ {
    move |source| BlobError::Io { name: name.to_owned(), source }
}
