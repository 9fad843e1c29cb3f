//! The spare: the next segment's room, taken beforehand (F-12).
//!
//! Promise: while there is a spare, a whole segment more can be written whatever else fills the disk. A log that cannot
//! make one says so by [`Log::is_low`], which is the moment to refuse what can be refused; it goes on writing into the
//! room it has, and makes the spare as soon as it can. Several nodes on one disk have one each.
//!
//! The spare has a name of its own and is renamed when it is needed. Should a crash lose the new name, the file is found
//! under the old one at the next start and removed: then the segment was not in use yet.

use super::sync::create_file;
use super::{Fault, Log, segment_name};
use crate::disk::{self, Disk, DiskFile};
use std::io;

/// Its file.
pub(super) fn spare_name() -> String {
    "spare".to_owned()
}

/// Removes what an earlier process left behind.
pub(super) fn remove_spare<D: Disk>(disk: &D) -> io::Result<()> {
    let name = spare_name();
    if disk.exists(&name)? { disk.remove(&name) } else { Ok(()) }
}

impl<D: Disk> Log<D> {
    /// Whether there is no room beyond the current segment.
    #[must_use]
    pub fn is_low(&self) -> bool {
        self.spare.is_none()
    }

    /// Makes the spare if there is none; true if there is one now.
    pub fn make_spare(&mut self) -> Result<bool, Fault> {
        self.check_open()?;
        if self.spare.is_some() {
            return Ok(true);
        }
        match self.create_spare() {
            Ok(file) => self.spare = Some(file),
            Err(error) if disk::is_full(&error) => {}
            Err(error) => return Err(self.fail("making the spare segment", error)),
        }
        Ok(self.spare.is_some())
    }

    /// Durable, so that its room is there after a power cut too.
    fn create_spare(&self) -> io::Result<D::File> {
        let mut file = create_file(&self.disk, &spare_name(), self.options.segment_bytes)?;
        file.sync()?;
        self.disk.sync_dir("")?;
        Ok(file)
    }

    /// The file of the next segment: the spare, or else a new one.
    pub(super) fn next_file(&mut self, number: u64) -> Result<D::File, Fault> {
        let name = segment_name(number);
        if let Some(file) = self.spare.take() {
            let renamed = self.disk.rename(&spare_name(), &name);
            renamed.map_err(|error| self.fail("opening a segment", error))?;
            return Ok(file);
        }
        create_file(&self.disk, &name, self.options.segment_bytes).map_err(|source| {
            match disk::is_full(&source) {
                true => Fault::DiskFull { doing: "opening a segment", retryable: true, source },
                false => self.fail("opening a segment", source),
            }
        })
    }
}
