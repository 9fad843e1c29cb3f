//! Writes one snapshot, own or received, and commits it.

use super::manifest::{Chunk, Manifest};
use super::{FOLDER, SnapshotError, at};
use crate::disk::{Disk, DiskFile};
use crate::planted;

/// So much is synced at a time. A disk that gets a large file at once makes the log wait until all of it is written.
const SYNC_BYTES: u64 = 8 << 20;

/// A snapshot in the making. Dropping it without `finish` leaves a temporary file for the next sweep.
#[derive(Debug)]
pub struct SnapshotWriter<D: Disk> {
    disk: D,
    file: D::File,
    manifest: Manifest,
    expected: Option<Manifest>,
    offset: u64,
    synced: u64,
}

impl<D: Disk> SnapshotWriter<D> {
    pub(super) fn create(
        disk: &D,
        manifest: Manifest,
        expected: Option<Manifest>,
    ) -> Result<SnapshotWriter<D>, SnapshotError> {
        let name = format!("{FOLDER}/{}.data.tmp", manifest.stem());
        let file = disk.create(&name).map_err(at(&name))?;
        Ok(SnapshotWriter { disk: disk.clone(), file, manifest, expected, offset: 0, synced: 0 })
    }

    /// How many chunks were taken so far: the number of the next one.
    #[must_use]
    pub fn chunk_count(&self) -> usize {
        self.manifest.chunks.len()
    }

    /// Takes the next chunk. A received one that does not match its announced hash is refused and not
    /// written, so the same chunk can be asked for again.
    pub fn chunk(&mut self, bytes: &[u8]) -> Result<(), SnapshotError> {
        let number = self.manifest.chunks.len();
        let name = self.manifest.stem();
        let Ok(length) = u32::try_from(bytes.len()) else {
            return Err(SnapshotError::Unexpected { name, what: "chunk length" });
        };
        let chunk = Chunk { length, hash: *blake3::hash(bytes).as_bytes() };
        if let Some(expected) = &self.expected {
            match expected.chunks.get(number) {
                None => {
                    return Err(SnapshotError::Unexpected { name, what: "number of chunks" });
                }
                Some(announced) if *announced != chunk => {
                    return Err(SnapshotError::Chunk { name, chunk: number });
                }
                Some(_) => {}
            }
        }
        self.file.write_at(self.offset, bytes).map_err(at(&name))?;
        self.offset += u64::from(length);
        self.manifest.chunks.push(chunk);
        if self.offset - self.synced >= SYNC_BYTES {
            self.file.sync().map_err(at(&name))?;
            self.synced = self.offset;
        }
        Ok(())
    }

    /// Commits an own snapshot. Once this returns it survives everything short of damage.
    pub fn finish(mut self, conf: &[u8], state_hash: u64) -> Result<Manifest, SnapshotError> {
        self.manifest.conf = conf.to_vec();
        self.manifest.state_hash = state_hash;
        self.commit()
    }

    /// Commits a received snapshot, which must be complete.
    pub fn finish_received(mut self) -> Result<Manifest, SnapshotError> {
        if let Some(expected) = &self.expected {
            self.manifest.conf.clone_from(&expected.conf);
            self.manifest.state_hash = expected.state_hash;
        }
        self.commit()
    }

    fn commit(mut self) -> Result<Manifest, SnapshotError> {
        let stem = self.manifest.stem();
        if self.expected.as_ref().is_some_and(|expected| *expected != self.manifest) {
            return Err(SnapshotError::Unexpected { name: stem, what: "content" });
        }
        if !planted::active(planted::Bug::SnapshotNotSynced) {
            self.file.sync().map_err(at(&stem))?;
        }
        let data = format!("{FOLDER}/{stem}.data");
        self.disk.rename(&format!("{data}.tmp"), &data).map_err(at(&data))?;
        // The data's name must be durable before the manifest's can be: the manifest is the commit.
        self.disk.sync_dir(FOLDER).map_err(at(&data))?;
        let manifest = format!("{FOLDER}/{stem}.manifest");
        self.disk.replace(&manifest, &self.manifest.encode()).map_err(at(&manifest))?;
        Ok(self.manifest)
    }

    /// Gives up and removes what was written.
    pub fn abort(self) -> Result<(), SnapshotError> {
        let name = format!("{FOLDER}/{}.data.tmp", self.manifest.stem());
        drop(self.file);
        self.disk.remove(&name).map_err(at(&name))
    }
}
