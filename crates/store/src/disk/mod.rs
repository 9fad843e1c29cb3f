//! The port to the file system: one root folder, flat calls, no hidden state.
//!
//! Names are relative with `/` between parts (`wal/00000000000000000001.log`); absolute names, empty
//! parts, `.` and `..` are refused. Contract, checked by one suite on both implementations:
//! - `write_at` reaches readers at once, and survives a crash only after `sync`;
//! - a created, renamed or removed name survives a crash only after `sync_dir` of its folder;
//! - `rename` replaces its target atomically;
//! - after a failed `sync` nothing may be assumed about the file: callers stop.

mod real;
mod sim;
mod sim_crash;

pub use real::{FolderLock, RealDisk, RealFile};
pub use sim::{SimCounters, SimDisk, SimFile};

use std::io;

/// A root folder. Clones are handles on the same folder.
pub trait Disk: Clone {
    /// An open file.
    type File: DiskFile;

    /// Creates an empty file for reading and writing; an existing one is emptied.
    fn create(&self, name: &str) -> io::Result<Self::File>;
    /// Opens an existing file for reading and writing.
    fn open(&self, name: &str) -> io::Result<Self::File>;
    /// Names (last part only) of the files directly in a folder, sorted. A missing folder is empty.
    fn list(&self, dir: &str) -> io::Result<Vec<String>>;
    /// Whether a file has this name.
    fn exists(&self, name: &str) -> io::Result<bool>;
    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Renames a file, replacing a file that has the target name.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Makes a folder (and its parents) durably; fine if it exists.
    fn make_dir(&self, dir: &str) -> io::Result<()>;
    /// Makes the names in a folder durable; the root folder is `""`.
    fn sync_dir(&self, dir: &str) -> io::Result<()>;

    /// Reads a whole file.
    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        let file = self.open(name)?;
        let length = usize::try_from(file.len()?).map_err(io::Error::other)?;
        let mut bytes = vec![0; length];
        let mut filled = 0;
        while filled < length {
            let count = file.read_at(filled as u64, &mut bytes[filled..])?;
            if count == 0 {
                break;
            }
            filled += count;
        }
        bytes.truncate(filled);
        Ok(bytes)
    }

    /// Replaces a file durably: temporary file, sync, rename, sync of the folder.
    fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let temporary = format!("{name}.tmp");
        let mut file = self.create(&temporary)?;
        file.write_at(0, bytes)?;
        file.sync()?;
        drop(file);
        self.rename(&temporary, name)?;
        self.sync_dir(parent(name))
    }
}

/// An open file.
#[allow(clippy::len_without_is_empty)] // a length of zero has no meaning of its own here
pub trait DiskFile {
    /// Length in bytes.
    fn len(&self) -> io::Result<u64>;
    /// Reads at an offset; fewer bytes than asked only at the end of the file.
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<usize>;
    /// Writes all bytes at an offset, growing the file if needed.
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;
    /// Makes content and length durable (`fdatasync`).
    fn sync(&mut self) -> io::Result<()>;
    /// Reserves space up to a length and grows the file to it with zeros, where the file system can.
    fn preallocate(&mut self, length: u64) -> io::Result<()>;
    /// Cuts or grows (with zeros) to a length.
    fn set_len(&mut self, length: u64) -> io::Result<()>;
}

/// The folder part of a name; empty for a name in the root.
pub(crate) fn parent(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(dir, _)| dir)
}

/// Refuses names that could leave the root or are spelled in two ways.
pub(crate) fn check_name(name: &str) -> io::Result<()> {
    let bad = |part: &str| part.is_empty() || part == "." || part == ".." || part.contains('\\');
    if name.split('/').any(bad) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("bad file name {name:?}")));
    }
    Ok(())
}

/// Whether an error says that the disk is full.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
