//! The operating system's file system under one root folder.
//!
//! Plain system calls only, so that fault injection from outside sees each of them.

use super::{Disk, DiskFile, check_name, parent};
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A folder of the operating system.
#[derive(Clone, Debug)]
pub struct RealDisk {
    root: Arc<PathBuf>,
}

impl RealDisk {
    /// Opens a root folder, creating it if missing.
    pub fn open(root: impl AsRef<Path>) -> io::Result<RealDisk> {
        std::fs::create_dir_all(root.as_ref())?;
        let root = root.as_ref().canonicalize()?;
        if let Some(above) = root.parent() {
            File::open(above)?.sync_all()?;
        }
        Ok(RealDisk { root: Arc::new(root) })
    }

    /// Claims the folder for this process until the claim is dropped: two processes must never write to it.
    pub fn lock(&self) -> io::Result<FolderLock> {
        let path = self.root.join("lock");
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(false).open(&path)?;
        file.try_lock().map_err(|error| match error {
            TryLockError::Error(error) => error,
            TryLockError::WouldBlock => {
                let text = format!("{} is in use by another process", self.root.display());
                io::Error::new(io::ErrorKind::ResourceBusy, text)
            }
        })?;
        Ok(FolderLock { _file: file })
    }

    /// The root folder's path.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Room left on the file system for this process.
    pub fn free_bytes(&self) -> io::Result<u64> {
        let found = rustix::fs::statvfs(self.root.as_path())?;
        Ok(found.f_bavail.saturating_mul(found.f_frsize))
    }

    fn path(&self, name: &str) -> io::Result<PathBuf> {
        check_name(name)?;
        Ok(self.root.join(name))
    }

    fn dir_path(&self, dir: &str) -> io::Result<PathBuf> {
        if dir.is_empty() { Ok(self.root.to_path_buf()) } else { self.path(dir) }
    }
}

impl Disk for RealDisk {
    type File = RealFile;

    fn create(&self, name: &str) -> io::Result<RealFile> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true);
        Ok(RealFile { file: options.open(self.path(name)?)? })
    }

    fn open(&self, name: &str) -> io::Result<RealFile> {
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        Ok(RealFile { file: options.open(self.path(name)?)? })
    }

    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        let entries = match std::fs::read_dir(self.dir_path(dir)?) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry?;
            if entry.file_type()?.is_file()
                && let Ok(name) = entry.file_name().into_string()
            {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn exists(&self, name: &str) -> io::Result<bool> {
        Ok(self.path(name)?.is_file())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        std::fs::remove_file(self.path(name)?)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        std::fs::rename(self.path(from)?, self.path(to)?)
    }

    fn make_dir(&self, dir: &str) -> io::Result<()> {
        let path = self.path(dir)?;
        if path.is_dir() {
            return Ok(());
        }
        let above = parent(dir);
        if !above.is_empty() {
            self.make_dir(above)?;
        }
        match std::fs::create_dir(&path) {
            // Somebody else was faster: theirs is as good, once it is durable.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => {}
            made => made?,
        }
        self.sync_dir(above)
    }

    fn sync_dir(&self, dir: &str) -> io::Result<()> {
        File::open(self.dir_path(dir)?)?.sync_all()
    }
}

/// A claim on a folder. The operating system gives it up when the process dies, however it dies.
#[derive(Debug)]
pub struct FolderLock {
    _file: File,
}

/// A file of the operating system.
#[derive(Debug)]
pub struct RealFile {
    file: File,
}

impl DiskFile for RealFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < bytes.len() {
            match self.file.read_at(&mut bytes[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn preallocate(&mut self, length: u64) -> io::Result<()> {
        use rustix::fs::{FallocateFlags, fallocate};
        use rustix::io::Errno;
        if length == 0 {
            return Ok(());
        }
        match fallocate(&self.file, FallocateFlags::empty(), 0, length) {
            // Some file systems cannot reserve; the file then grows as it is written.
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn set_len(&mut self, length: u64) -> io::Result<()> {
        self.file.set_len(length)
    }
}
