//! Reads one blob and checks it.

use std::io;
use std::sync::atomic::Ordering;

use rustix::io::Errno;

use super::{BlobError, BlobId, Blobs, QUARANTINE, at, digest, folder_of, hex};
use crate::disk::Disk;

impl<D: Disk> Blobs<D> {
    /// The bytes of a blob; none if it is not here, or was found damaged and moved away. A file that the disk cannot read is
    /// damaged, too, unless it can when asked once more: nothing else would ever bring its bytes back.
    pub fn get(&self, id: &BlobId) -> Result<Option<Vec<u8>>, BlobError> {
        let folder = folder_of(id[0]);
        let name = format!("{folder}/{}", hex(id));
        let read = match self.disk.read(&name) {
            Err(error) if is_damage(&error) => self.disk.read(&name),
            read => read,
        };
        match read {
            Ok(bytes) if digest(&bytes) == *id => return Ok(Some(bytes)),
            Ok(_) => {}
            Err(error) if is_damage(&error) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(at(&name)(error)),
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

/// Whether a failed read speaks of the file itself. Anything else, such as too many open files, passes and harms nothing.
fn is_damage(error: &io::Error) -> bool {
    // A bad sector, a broken structure or checksum of the file system, or something that is no file.
    let lasting = [Errno::IO, Errno::UCLEAN, Errno::BADMSG, Errno::NODATA, Errno::ISDIR];
    Errno::from_io_error(error).is_some_and(|errno| lasting.contains(&errno))
}
