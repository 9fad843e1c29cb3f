//! Objects as they are read here: from a node over a connection, or from the disk of a node beside this worker.
//!
//! The operator names that node's data folder (`--near`). The node is still asked for every object, so that names, versions and
//! rights are its word; what it answers then are the digests of the pieces instead of the bytes.
//!
//! Promises: a piece is handed over only if it has its digest (A1); what is missing there, damaged, or not to be read by this
//! user comes over the connection. Nothing is written in that folder.
//! Whoever has a thread for it takes pieces there (`hand_over`), one buffer for all: handing each from thread to thread costs
//! more than reading it.
//! Leaves out: telling the node of damage; its own rounds find it.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use ikada_api::Client;
use ikada_api::client::{Error, GetOptions, ObjectReader};
use ikada_api::v1::ObjectPieces;

use crate::beneath::Beneath;

/// Bytes of a piece that are read, and then hashed, at one time.
const HASHED_BYTES: u64 = 256 << 10;
/// Where a node keeps the pieces of objects in its data folder.
const PIECES: &str = "blob";
/// Largest piece that is believed.
const PIECE_BYTES_MAX: u64 = 16 << 20;

/// Where objects come from; clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Objects {
    client: Client,
    near: Option<Arc<Near>>,
}

/// The disk of a node beside this worker.
#[derive(Debug)]
struct Near {
    pieces: PathBuf,
    /// Whether it was told that nothing could be read there.
    told: AtomicBool,
}

/// Bytes of an object as they come.
pub(crate) enum ObjectBytes {
    /// Over a connection.
    Far(Box<ObjectReader>),
    /// From the disk.
    Near(Box<NearBytes>),
}

/// Bytes of an object whose pieces are known.
pub(crate) struct NearBytes {
    objects: Objects,
    near: Arc<Near>,
    name: (String, String),
    pieces: ObjectPieces,
    /// How many bytes were read.
    place: u64,
}

impl Objects {
    /// Those of a cluster; with a node's data folder, read from there.
    pub(crate) fn new(client: Client, near: Option<&Path>) -> Objects {
        let near = near.map(|folder| {
            Arc::new(Near { pieces: folder.join(PIECES), told: AtomicBool::new(false) })
        });
        Objects { client, near }
    }

    /// Opens an object from the byte that the options name.
    pub(crate) async fn open(
        &self,
        bucket: &str,
        key: &str,
        options: &GetOptions,
    ) -> Result<ObjectBytes, Error> {
        if let Some(near) = &self.near {
            match self.client.object_pieces(bucket, key, options).await {
                Ok(pieces) if suits(&pieces, options) => {
                    let name = (bucket.to_owned(), key.to_owned());
                    let (objects, near, place) = (self.clone(), near.clone(), options.from);
                    let bytes = NearBytes { objects, near, name, pieces, place };
                    return Ok(ObjectBytes::Near(Box::new(bytes)));
                }
                Err(error @ (Error::Unavailable { .. } | Error::Unknown { .. })) => {
                    return Err(error);
                }
                // A node that knows of no pieces, or an object that is not the one that is wanted: the download tells.
                Ok(_) | Err(_) => {}
            }
        }
        self.fetch(bucket, key, options).await
    }

    async fn fetch(
        &self,
        bucket: &str,
        key: &str,
        options: &GetOptions,
    ) -> Result<ObjectBytes, Error> {
        let reader = self.client.get_object(bucket, key, options).await?;
        Ok(ObjectBytes::Far(Box::new(reader)))
    }
}

/// Whether these are the pieces of what is wanted, and add up.
fn suits(pieces: &ObjectPieces, options: &GetOptions) -> bool {
    let is_wanted = options.if_match.as_ref().is_none_or(|digest| *digest == pieces.digest);
    let count = match pieces.piece_bytes {
        1..=PIECE_BYTES_MAX => pieces.size.div_ceil(pieces.piece_bytes),
        _ => return false,
    };
    is_wanted && count == pieces.pieces.len() as u64 && options.from <= pieces.size
}

impl ObjectBytes {
    /// The next bytes; none at the end. An end before all bytes came is an error.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        let far = match self {
            ObjectBytes::Far(reader) => return reader.next().await,
            ObjectBytes::Near(near) => match near.next().await {
                Ok(bytes) => return Ok(bytes),
                Err(Missing) => near.far().await?,
            },
        };
        *self = far;
        match self {
            ObjectBytes::Far(reader) => reader.next().await,
            ObjectBytes::Near(_) => Ok(None),
        }
    }

    /// Bytes still to come.
    pub(crate) fn left(&self) -> u64 {
        match self {
            ObjectBytes::Far(reader) => reader.left,
            ObjectBytes::Near(near) => near.pieces.size.saturating_sub(near.place),
        }
    }
}

/// A piece is not to be had from the disk.
struct Missing;

/// A piece that was opened before its turn.
type Opened = io::Result<File>;

impl NearBytes {
    /// Hands the next bytes over on this very thread, `most` of them at most, until `take` has enough. Tells how many of them are
    /// left: if `take` wanted those, they are not to be had from the disk.
    pub(crate) fn hand_over(&mut self, most: u64, mut take: impl FnMut(&[u8]) -> bool) -> u64 {
        let (mut left, mut buffer, mut ahead) = (most, Vec::new(), None);
        while left > 0
            && let Some((digest, length)) = self.piece()
        {
            let file = ahead.take().unwrap_or_else(|| self.near.open(&digest));
            // The kernel reads it while the one before it is worked on.
            let next = self.place / self.pieces.piece_bytes + 1;
            ahead =
                self.pieces.pieces.get(next as usize).map(|digest| self.near.open_ahead(digest));
            if let Err(error) =
                file.and_then(|file| self.near.fill(&mut buffer, file, &digest, length))
            {
                self.near.tell(&error);
                break;
            }
            let begin = (self.place % self.pieces.piece_bytes) as usize;
            let bytes = &buffer[begin..];
            let bytes = &bytes[..bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX))];
            left -= bytes.len() as u64;
            self.place += bytes.len() as u64;
            if !take(bytes) {
                break;
            }
        }
        left.min(self.pieces.size.saturating_sub(self.place))
    }

    /// Digest and length of the piece at this place; none at the end.
    fn piece(&self) -> Option<(String, u64)> {
        let whole = self.pieces.piece_bytes;
        let number = self.place / whole;
        let length = whole.min(self.pieces.size.saturating_sub(number * whole));
        let digest = self.pieces.pieces.get(number as usize)?;
        (self.place < self.pieces.size).then(|| (digest.clone(), length))
    }

    async fn next(&mut self) -> Result<Option<Bytes>, Missing> {
        if self.place >= self.pieces.size {
            return Ok(None);
        }
        let (whole, place) = (self.pieces.piece_bytes, self.place);
        let digest = self.pieces.pieces.get((place / whole) as usize).ok_or(Missing)?.clone();
        let length = whole.min(self.pieces.size - place / whole * whole);
        let near = self.near.clone();
        let read = tokio::task::spawn_blocking(move || near.read(&digest, length)).await;
        let piece = match read.unwrap_or_else(|error| Err(io::Error::other(error))) {
            Ok(piece) => piece,
            Err(error) => {
                self.near.tell(&error);
                return Err(Missing);
            }
        };
        self.place = place / whole * whole + length;
        Ok(Some(piece.slice((place % whole) as usize..)))
    }

    /// The rest of the same version over a connection.
    pub(crate) async fn far(&self) -> Result<ObjectBytes, Error> {
        let options = GetOptions {
            version: Some(self.pieces.version.0),
            from: self.place,
            if_match: Some(self.pieces.digest.clone()),
            ..GetOptions::default()
        };
        self.objects.fetch(&self.name.0, &self.name.1, &options).await
    }
}

impl Near {
    /// A piece of this digest and length.
    fn read(&self, digest: &str, length: u64) -> io::Result<Bytes> {
        let mut bytes = Vec::new();
        self.fill(&mut bytes, self.open(digest)?, digest, length)?;
        Ok(Bytes::from(bytes))
    }

    fn open(&self, digest: &str) -> Opened {
        if digest.len() != 64 || !digest.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(bad("the digest of a piece is none"));
        }
        Beneath::at(&self.pieces)?.open(&format!("{}/{digest}", &digest[..2]))
    }

    /// Opens a piece and has the kernel fetch it meanwhile.
    fn open_ahead(&self, digest: &str) -> Opened {
        let file = self.open(digest)?;
        // Only a hint: without it the piece is fetched when it is read.
        let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::WillNeed);
        Ok(file)
    }

    /// Reads a piece in place of what the buffer holds, if it is the one of this digest and length.
    fn fill(&self, buffer: &mut Vec<u8>, file: File, digest: &str, length: u64) -> io::Result<()> {
        buffer.clear();
        buffer.reserve(length as usize + 1);
        let (mut file, mut hash) = (file.take(length + 1), blake3::Hasher::new());
        // What was just read is still in the nearest cache.
        loop {
            let begin = buffer.len();
            if file.by_ref().take(HASHED_BYTES).read_to_end(buffer)? == 0 {
                break;
            }
            hash.update(&buffer[begin..]);
        }
        match buffer.len() as u64 == length && hash.finalize().to_hex().as_str() == digest {
            true => Ok(()),
            false => Err(bad("a piece has other bytes than its name says")),
        }
    }

    /// A folder that gives nothing is told of once: the work goes on, but not as it was meant to.
    fn tell(&self, error: &io::Error) {
        let folder = self.pieces.display();
        match self.told.swap(true, Ordering::Relaxed) {
            true => tracing::debug!(%folder, %error, "a piece comes over the connection"),
            false => tracing::warn!(
                %folder,
                %error,
                "a piece could not be read from the node's disk (--near); it comes over the connection, as others will"
            ),
        }
    }
}

fn bad(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.to_owned())
}

#[cfg(test)]
#[path = "near_test.rs"]
pub(crate) mod near_test;
