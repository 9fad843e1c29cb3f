//! Lists blobs, a folder at a time, so that no list of all is ever needed.

use super::{BlobError, BlobId, Blobs, TEMPORARY, at, folder_of, parse_hex};
use crate::disk::Disk;

impl<D: Disk> Blobs<D> {
    /// Digests that begin with a byte, in order. Whether their bytes are whole is not looked at.
    pub fn list(&self, first: u8) -> Result<Vec<BlobId>, BlobError> {
        let folder = folder_of(first);
        let names = self.disk.list(&folder).map_err(at(&folder))?;
        Ok(names.iter().filter_map(|name| parse_hex(name)).collect())
    }

    /// Removes what writers left behind when the process before ended.
    pub(super) fn sweep(&self) -> Result<(), BlobError> {
        for first in 0..=u8::MAX {
            let folder = folder_of(first);
            for name in self.disk.list(&folder).map_err(at(&folder))? {
                if name.ends_with(TEMPORARY) {
                    self.disk.remove(&format!("{folder}/{name}")).map_err(at(&folder))?;
                }
            }
        }
        Ok(())
    }
}
