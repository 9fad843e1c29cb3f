//! Finds, verifies, reads and retires snapshots.

use super::manifest::{Manifest, stem_of};
use super::{FOLDER, QUARANTINE, SnapshotError, Snapshots, at};
use crate::disk::{Disk, DiskFile};

impl<D: Disk> Snapshots<D> {
    /// The newest snapshot of a shard that is intact from its manifest to its last chunk. Damaged ones met on
    /// the way move to `quarantine/`.
    pub fn load(&self, shard: u16) -> Result<Option<Manifest>, SnapshotError> {
        for stem in self.stems(shard)?.into_iter().rev() {
            match self.verify(&stem) {
                Ok(manifest) => return Ok(Some(manifest)),
                Err(error @ SnapshotError::Foreign { .. }) => return Err(error),
                // A read that fails is not proof of damage: stop rather than fall back to older state.
                Err(error @ SnapshotError::Io { .. }) => return Err(error),
                Err(_) => self.quarantine(&stem)?,
            }
        }
        Ok(None)
    }

    /// The snapshot at exactly this position, if it is there and intact, whether or not newer ones are.
    ///
    /// A transfer that was complete when its leader fell leaves a snapshot that was never installed, and the next leader
    /// may offer an older one.
    pub fn load_at(
        &self,
        shard: u16,
        index: u64,
        term: u64,
    ) -> Result<Option<Manifest>, SnapshotError> {
        let wanted = stem_of(shard, index, term);
        if !self.stems(shard)?.contains(&wanted) {
            return Ok(None);
        }
        match self.verify(&wanted) {
            Ok(manifest) => Ok(Some(manifest)),
            Err(error @ (SnapshotError::Foreign { .. } | SnapshotError::Io { .. })) => Err(error),
            Err(_) => self.quarantine(&wanted).map(|()| None),
        }
    }

    /// Reads a chunk and checks it against its hash.
    pub fn read_chunk(&self, manifest: &Manifest, chunk: usize) -> Result<Vec<u8>, SnapshotError> {
        let name = format!("{FOLDER}/{}.data", manifest.stem());
        let wrong = || SnapshotError::Chunk { name: manifest.stem(), chunk };
        let announced = manifest.chunks.get(chunk).ok_or_else(wrong)?;
        let file = self.disk.open(&name).map_err(at(&name))?;
        let offset = manifest.offset(chunk);
        let available = file.len().map_err(at(&name))?.saturating_sub(offset);
        // Checked first, so that a damaged length cannot ask for more memory than there are bytes.
        if available < u64::from(announced.length) {
            return Err(wrong());
        }
        let mut bytes = vec![0; announced.length as usize];
        let count = file.read_at(offset, &mut bytes).map_err(at(&name))?;
        if count != bytes.len() || *blake3::hash(&bytes).as_bytes() != announced.hash {
            return Err(wrong());
        }
        Ok(bytes)
    }

    /// Removes all but the newest `keep` committed snapshots of a shard.
    pub fn remove_older(&self, shard: u16, keep: usize) -> Result<(), SnapshotError> {
        let stems = self.stems(shard)?;
        let old = stems.len().saturating_sub(keep.max(1));
        self.remove(&stems[..old])
    }

    /// Removes the snapshots of a shard after a position: those that were received and never installed, once an older
    /// one is installed in their place. Nothing builds on them.
    pub fn remove_newer(&self, shard: u16, index: u64, term: u64) -> Result<(), SnapshotError> {
        let installed = stem_of(shard, index, term);
        let stems = self.stems(shard)?;
        let newer = stems.partition_point(|stem| *stem <= installed);
        self.remove(&stems[newer..])
    }

    fn remove(&self, stems: &[String]) -> Result<(), SnapshotError> {
        for stem in stems {
            // The manifest goes first: data without it is an attempt, never a half-removed snapshot.
            let manifest = format!("{FOLDER}/{stem}.manifest");
            self.disk.remove(&manifest).map_err(at(&manifest))?;
            self.disk.sync_dir(FOLDER).map_err(at(FOLDER))?;
            let data = format!("{FOLDER}/{stem}.data");
            if self.disk.exists(&data).map_err(at(&data))? {
                self.disk.remove(&data).map_err(at(&data))?;
            }
        }
        Ok(())
    }

    /// Every shard that has a committed snapshot, intact or not.
    pub fn shards(&self) -> Result<Vec<u16>, SnapshotError> {
        let names = self.disk.list(FOLDER).map_err(at(FOLDER))?;
        let manifests = names.iter().filter(|name| name.ends_with(".manifest"));
        let mut shards: Vec<u16> =
            manifests.filter_map(|name| name.split('-').next()?.parse().ok()).collect();
        shards.dedup();
        Ok(shards)
    }

    /// Committed snapshots of a shard, oldest first.
    fn stems(&self, shard: u16) -> Result<Vec<String>, SnapshotError> {
        let prefix = format!("{shard:05}-");
        let names = self.disk.list(FOLDER).map_err(at(FOLDER))?;
        let stems = names.iter().filter_map(|name| name.strip_suffix(".manifest"));
        Ok(stems.filter(|stem| stem.starts_with(&prefix)).map(str::to_owned).collect())
    }

    fn verify(&self, stem: &str) -> Result<Manifest, SnapshotError> {
        let name = format!("{FOLDER}/{stem}.manifest");
        let manifest = Manifest::decode(&self.disk.read(&name).map_err(at(&name))?)?;
        self.check_owner(&manifest)?;
        let data = format!("{FOLDER}/{stem}.data");
        if manifest.stem() != stem || !self.disk.exists(&data).map_err(at(&data))? {
            return Err(SnapshotError::Manifest("data file missing or misnamed"));
        }
        let file = self.disk.open(&data).map_err(at(&data))?;
        if file.len().map_err(at(&data))? != manifest.data_bytes() {
            return Err(SnapshotError::Manifest("data file has another length"));
        }
        for chunk in 0..manifest.chunks.len() {
            self.read_chunk(&manifest, chunk)?;
        }
        Ok(manifest)
    }

    /// Moves a damaged snapshot aside, data first: data left without a manifest would be swept away.
    fn quarantine(&self, stem: &str) -> Result<(), SnapshotError> {
        for ending in ["data", "manifest"] {
            let name = format!("{FOLDER}/{stem}.{ending}");
            if !self.disk.exists(&name).map_err(at(&name))? {
                continue;
            }
            let mut target = format!("{QUARANTINE}/{stem}.{ending}");
            let mut copy = 1;
            while self.disk.exists(&target).map_err(at(&target))? {
                target = format!("{QUARANTINE}/{stem}.{ending}.{copy}");
                copy += 1;
            }
            self.disk.rename(&name, &target).map_err(at(&name))?;
            self.note_quarantined(target);
        }
        self.disk.sync_dir(QUARANTINE).map_err(at(QUARANTINE))?;
        self.disk.sync_dir(FOLDER).map_err(at(FOLDER))
    }

    /// Refuses if any manifest is whole and of another cluster; damaged ones are judged when they are loaded.
    pub(super) fn require_own(&self) -> Result<(), SnapshotError> {
        for name in self.disk.list(FOLDER).map_err(at(FOLDER))? {
            if !name.ends_with(".manifest") {
                continue;
            }
            let name = format!("{FOLDER}/{name}");
            let bytes = self.disk.read(&name).map_err(at(&name))?;
            if let Ok(manifest) = Manifest::decode(&bytes) {
                self.check_owner(&manifest)?;
            }
        }
        Ok(())
    }

    fn check_owner(&self, manifest: &Manifest) -> Result<(), SnapshotError> {
        if manifest.cluster == self.cluster {
            return Ok(());
        }
        let (found, expected) = (manifest.cluster, self.cluster);
        Err(SnapshotError::Foreign { found, expected })
    }

    /// Removes attempts: temporary files, and data without a manifest.
    pub(super) fn sweep(&self) -> Result<(), SnapshotError> {
        let names = self.disk.list(FOLDER).map_err(at(FOLDER))?;
        for name in &names {
            let orphan = name
                .strip_suffix(".data")
                .is_some_and(|stem| !names.contains(&format!("{stem}.manifest")));
            if orphan || name.ends_with(".tmp") {
                let name = format!("{FOLDER}/{name}");
                self.disk.remove(&name).map_err(at(&name))?;
            }
        }
        self.disk.sync_dir(FOLDER).map_err(at(FOLDER))
    }
}
