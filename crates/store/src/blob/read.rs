//! Reads one blob and checks it.

use std::io;
use std::sync::atomic::Ordering;

use super::{BlobError, BlobId, Blobs, QUARANTINE, at, digest, folder_of, hex};
use crate::disk::Disk;

impl<D: Disk> Blobs<D> {
    /// The bytes of a blob; none if it is not here, or was found damaged and moved away.
    pub fn get(&self, id: &BlobId) -> Result<Option<Vec<u8>>, BlobError> {
        let folder = folder_of(id[0]);
        let name = format!("{folder}/{}", hex(id));
        let bytes = match self.disk.read(&name) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(at(&name)(error)),
        };
        if digest(&bytes) == *id {
            return Ok(Some(bytes));
        }
        self.quarantine(id, &name, &folder)?;
        Ok(None)
    }

    /// Whether a blob is here, whole; pins it if so. A file of another length counts as damaged.
    pub fn confirm(&self, id: &BlobId, now_ms: u64) -> Result<bool, BlobError> {
        self.pin(id, now_ms);
        Ok(self.get(id)?.is_some())
    }

    /// Whether there is a file for a blob, unread.
    pub fn exists(&self, id: &BlobId) -> Result<bool, BlobError> {
        let name = format!("{}/{}", folder_of(id[0]), hex(id));
        self.disk.exists(&name).map_err(at(&name))
    }

    fn quarantine(&self, id: &BlobId, name: &str, folder: &str) -> Result<(), BlobError> {
        self.damaged.fetch_add(1, Ordering::Relaxed);
        match self.disk.rename(name, &format!("{QUARANTINE}/blob-{}", hex(id))) {
            // Two readers may have found it at once.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            moved => moved.map_err(at(name))?,
        }
        self.disk.sync_dir(QUARANTINE).map_err(at(QUARANTINE))?;
        self.disk.sync_dir(folder).map_err(at(folder))
    }
}
