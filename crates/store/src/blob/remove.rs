//! Removes one blob, if nothing pins it.

use std::io;

use super::{BlobError, BlobId, Blobs, at, folder_of, hex};
use crate::disk::Disk;

impl<D: Disk> Blobs<D> {
    /// Removes a blob; false if it is pinned or not here.
    pub(super) fn remove(&self, id: &BlobId, now_ms: u64) -> Result<bool, BlobError> {
        // Held to the end: a writer pins before it looks, so it either stops us or finds nothing.
        let mut pins = self.locked_pins();
        if pins.is_pinned(id, now_ms) {
            return Ok(false);
        }
        pins.forget(id);
        let folder = folder_of(id[0]);
        let name = format!("{folder}/{}", hex(id));
        match self.disk.remove(&name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            removed => removed.map_err(at(&name))?,
        }
        self.disk.sync_dir(&folder).map_err(at(&folder))?;
        Ok(true)
    }
}
