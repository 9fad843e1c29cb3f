//! Files below one folder, reached through a handle of that folder instead of by joined paths (X8).
//!
//! Promises: whatever a name says, and whatever links are put in its way while it is looked up, nothing outside of the
//! folder is read, made, renamed or removed. Names are taken one part at a time, and each part is looked up in the folder
//! that was opened before it. Links are an error, except for [`Beneath::open_through_links`], where the kernel follows those
//! that stay below the folder.
//! Leaves out: the folder itself. Its path is the operator's own and is followed wherever it leads, once.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// Longest name; the cluster takes no longer key of an object.
pub const NAME_BYTES_MAX: usize = 1_024;
/// How often a lookup that met a rename is begun again.
const TRIES_MAX: usize = 32;
/// Without these a handle would reach programs that are started.
const ALWAYS: OFlags = OFlags::CLOEXEC;

/// A handle of a folder.
#[derive(Debug)]
pub struct Beneath(OwnedFd);

impl AsFd for Beneath {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// What lies in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name, as the system has it.
    pub name: std::ffi::OsString,
    /// A plain file, a folder, or neither.
    pub kind: Kind,
    /// Its length, if it is a file.
    pub size: u64,
    /// What it really takes on the disk: holes cost nothing.
    pub taken: u64,
}

/// Kinds of entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A plain file.
    File,
    /// A folder.
    Folder,
    /// A link, a pipe, a device.
    Other,
}

/// The parts of a name; none of them climbs or stays.
fn parts(name: &str) -> io::Result<Vec<&str>> {
    let climbs = |part: &&str| matches!(*part, "" | "." | "..") || part.contains(['\\', '\0']);
    let parts: Vec<&str> = name.split('/').collect();
    if name.len() > NAME_BYTES_MAX || parts.iter().any(climbs) {
        let why = format!("{name:?} cannot be a file's name");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    Ok(parts)
}

/// Only plain files are read: a pipe would wait for its writer, a device do what devices do.
fn plain(file: File) -> io::Result<File> {
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no plain file")),
    }
}

impl Beneath {
    /// Opens a folder that its owner named.
    pub fn at(folder: &Path) -> io::Result<Beneath> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | ALWAYS;
        Ok(Beneath(rustix::fs::open(folder, flags, Mode::empty())?))
    }

    /// Opens a plain file that its owner named.
    pub fn open_own(path: &Path) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | ALWAYS;
        plain(File::from(rustix::fs::open(path, flags, Mode::empty())?))
    }

    /// Opens a folder below; `.` is never needed, an empty name is no name.
    pub fn folder(&self, name: &str) -> io::Result<Beneath> {
        parts(name)?.into_iter().try_fold(self.again()?, |folder, part| folder.step(part))
    }

    /// Opens a folder by a path that a listing of this folder gave, of any letters. A link on the way is an error.
    pub fn within(&self, path: &Path) -> io::Result<Beneath> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | ALWAYS;
        let stay = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        Ok(Beneath(rustix::fs::openat2(&self.0, path, flags, Mode::empty(), stay)?))
    }

    /// Opens a folder below and makes what is missing; `made` is shown each folder that was.
    pub fn make_folder(
        &self,
        name: &str,
        mut made: impl FnMut(&Beneath) -> io::Result<()>,
    ) -> io::Result<Beneath> {
        let mut folder = self.again()?;
        for part in parts(name)? {
            let (next, fresh) = folder.step_into(part)?;
            folder = next;
            if fresh {
                made(&folder)?;
            }
        }
        Ok(folder)
    }

    /// Opens a folder below and makes what is missing; all folders on the way to it, from this one to the last.
    pub fn make_way(&self, name: &str) -> io::Result<Vec<Beneath>> {
        let mut way = vec![self.again()?];
        for part in parts(name)? {
            let next = way.last().ok_or(io::ErrorKind::NotFound)?.step_into(part)?.0;
            way.push(next);
        }
        Ok(way)
    }

    /// Opens a plain file to read it. A link anywhere on the way is an error.
    pub fn open(&self, name: &str) -> io::Result<File> {
        let (folder, last) = self.parent(name)?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | ALWAYS;
        plain(File::from(rustix::fs::openat(&folder.0, last, flags, Mode::empty())?))
    }

    /// Opens a plain file to read it. Links are followed as long as they stay below the folder.
    pub fn open_through_links(&self, name: &str) -> io::Result<File> {
        parts(name)?;
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | ALWAYS;
        let stay = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let mut tries = 0;
        loop {
            tries += 1;
            match rustix::fs::openat2(&self.0, name, flags, Mode::empty(), stay) {
                // Something was renamed while a link climbed; the kernel cannot tell where it is.
                Err(Errno::AGAIN) if tries < TRIES_MAX => {}
                Err(Errno::XDEV) => {
                    let why = "a link leads out of the folder, or is not relative";
                    return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
                }
                opened => return plain(File::from(opened?)),
            }
        }
    }

    /// Makes or empties a plain file to write it. A link anywhere on the way is an error.
    pub fn create(&self, name: &str) -> io::Result<File> {
        self.write(name, OFlags::TRUNC)
    }

    /// Makes a plain file to write it; one that is there already is an error.
    pub fn create_new(&self, name: &str) -> io::Result<File> {
        self.write(name, OFlags::EXCL)
    }

    /// Waits until the names in this folder are on the disk.
    pub fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::fsync(&self.0)?)
    }

    /// Makes a plain file or opens it to write at its end, and to read it.
    pub fn append(&self, name: &str) -> io::Result<File> {
        self.write(name, OFlags::APPEND)
    }

    fn write(&self, name: &str, how: OFlags) -> io::Result<File> {
        let (folder, last) = self.parent(name)?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | ALWAYS;
        let mode = Mode::from(0o666);
        plain(File::from(rustix::fs::openat(&folder.0, last, flags | how, mode)?))
    }

    /// Gives a file below another name below. What had that name is replaced; a link is replaced, not followed.
    pub fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let ((old, from), (new, to)) = (self.parent(from)?, self.parent(to)?);
        Ok(rustix::fs::renameat(&old.0, from, &new.0, to)?)
    }

    /// Removes a file below; of a link, the link.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        let (folder, last) = self.parent(name)?;
        Ok(rustix::fs::unlinkat(&folder.0, last, AtFlags::empty())?)
    }

    /// What lies in this folder itself, in no order. Links are shown, not followed.
    pub fn entries(&self) -> io::Result<impl Iterator<Item = io::Result<Entry>> + use<'_>> {
        // A handle of its own: where a listing stands belongs to the handle.
        let listed = Dir::read_from(&self.0)?;
        let is_real = |name: &[u8]| !matches!(name, b"." | b"..");
        let named = listed.filter(move |entry| {
            entry.as_ref().map_or(true, |entry| is_real(entry.file_name().to_bytes()))
        });
        Ok(named.map(|entry| self.look(entry?.file_name())))
    }

    fn look(&self, name: &std::ffi::CStr) -> io::Result<Entry> {
        let found = rustix::fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let kind = match FileType::from_raw_mode(found.st_mode) {
            FileType::RegularFile => Kind::File,
            FileType::Directory => Kind::Folder,
            _ => Kind::Other,
        };
        let name = std::os::unix::ffi::OsStrExt::from_bytes(name.to_bytes());
        let name = <std::ffi::OsStr as ToOwned>::to_owned(name);
        let (size, blocks) = (found.st_size as u64, found.st_blocks as u64);
        Ok(Entry { name, kind, size, taken: blocks * 512 })
    }

    /// The folder that a name lies in, and the name's last part.
    fn parent<'name>(&self, name: &'name str) -> io::Result<(Beneath, &'name str)> {
        let parts = parts(name)?;
        let Some((last, folders)) = parts.split_last() else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let folder = folders.iter().try_fold(self.again()?, |folder, part| folder.step(part))?;
        Ok((folder, last))
    }

    /// The folder of this name in this one, made if it is missing; whether it was.
    fn step_into(&self, part: &str) -> io::Result<(Beneath, bool)> {
        let fresh = match rustix::fs::mkdirat(&self.0, part, Mode::from(0o755)) {
            Err(Errno::EXIST) => false,
            other => other.map(|()| true)?,
        };
        Ok((self.step(part)?, fresh))
    }

    /// The folder of this name in this one; never a link's target.
    fn step(&self, part: &str) -> io::Result<Beneath> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | ALWAYS;
        let opened = rustix::fs::openat(&self.0, part, flags, Mode::empty());
        Ok(Beneath(opened.map_err(|error| match error {
            // What the kernel says of a link where a folder must be.
            Errno::LOOP | Errno::NOTDIR => {
                io::Error::new(io::ErrorKind::NotADirectory, format!("{part:?} is no folder"))
            }
            other => other.into(),
        })?))
    }

    fn again(&self) -> io::Result<Beneath> {
        Ok(Beneath(self.0.try_clone()?))
    }
}

#[cfg(test)]
#[path = "beneath_test.rs"]
mod beneath_test;
