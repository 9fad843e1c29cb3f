//! Stores one blob durably.

use std::sync::atomic::Ordering;

use super::{BLOB_BYTES_MAX, BlobError, BlobId, Blobs, TEMPORARY, at, digest, folder_of, hex};
use crate::disk::{Disk, DiskFile};

impl<D: Disk> Blobs<D> {
    /// Stores bytes under their digest, and pins them. True if they were not here before.
    pub fn put(&self, id: &BlobId, bytes: &[u8], now_ms: u64) -> Result<bool, BlobError> {
        if bytes.len() > BLOB_BYTES_MAX {
            return Err(BlobError::TooLarge { bytes: bytes.len() });
        }
        if digest(bytes) != *id {
            return Err(BlobError::WrongDigest { name: hex(id) });
        }
        // Before the look, so that nobody removes it between look and answer.
        self.pin(id, now_ms);
        let folder = folder_of(id[0]);
        // What cannot be read now is written anew: the same bytes take the place of whatever lies there.
        if matches!(self.get(id), Ok(Some(_))) {
            // Another writer may have renamed it and not yet made the name durable.
            self.disk.sync_dir(&folder).map_err(at(&folder))?;
            return Ok(false);
        }
        self.disk.make_dir(&folder).map_err(at(&folder))?;
        let name = format!("{folder}/{}", hex(id));
        let number = self.writes.fetch_add(1, Ordering::Relaxed);
        let temporary = format!("{name}.{number}{TEMPORARY}");
        let written = self.write_new(&temporary, &name, &folder, bytes);
        if written.is_err() {
            // Whatever is left must not pass for the whole; at worst the next open sweeps it.
            let _ = self.disk.remove(&temporary);
        }
        written.map(|()| true).map_err(at(&name))
    }

    fn write_new(
        &self,
        temporary: &str,
        name: &str,
        folder: &str,
        bytes: &[u8],
    ) -> std::io::Result<()> {
        let mut file = self.disk.create(temporary)?;
        file.write_at(0, bytes)?;
        file.sync()?;
        drop(file);
        self.disk.rename(temporary, name)?;
        self.disk.sync_dir(folder)
    }
}
