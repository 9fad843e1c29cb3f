//! The private folder of one attempt, removed with it.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use ikada_api::client::unique_key;

/// Folders of one attempt. The program reaches `task` and what lies below it, nothing beside it.
#[derive(Debug)]
pub struct Folder {
    root: PathBuf,
    owner: Option<u32>,
}

impl Folder {
    /// Makes a fresh one below the work folder, for this user if the worker runs as root.
    pub fn make(work_dir: &Path, owner: Option<u32>) -> io::Result<Folder> {
        let attempts = work_dir.join("attempts");
        fs::create_dir_all(&attempts)?;
        // Other users pass through on the way to their own folder, and see nothing of others'.
        for folder in [work_dir, &attempts] {
            if fs::metadata(folder)?.permissions().mode() & 0o777 != 0o711 {
                fs::set_permissions(folder, Permissions::from_mode(0o711))?;
            }
        }
        // Names of tasks never become paths.
        let folder = Folder { root: attempts.join(unique_key()), owner };
        for part in
            [folder.root.clone(), folder.task(), folder.inputs(), folder.outputs(), folder.tmp()]
        {
            DirBuilder::new().mode(0o700).create(&part)?;
            folder.hand_over(&part)?;
        }
        Ok(folder)
    }

    /// One that is spoken of and never made.
    #[cfg(test)]
    pub(super) fn at(root: PathBuf) -> Folder {
        Folder { root, owner: None }
    }

    /// Gives a file to the user as whom the program runs.
    pub fn hand_over(&self, path: &Path) -> io::Result<()> {
        self.owner.map_or(Ok(()), |owner| chown(path, Some(owner), Some(owner)))
    }

    /// Writes a file for the program's user alone.
    pub fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        fs::write(path, bytes)?;
        fs::set_permissions(path, Permissions::from_mode(0o600))?;
        self.hand_over(path)
    }

    /// Where the program begins and may write.
    pub fn task(&self) -> PathBuf {
        self.root.join("task")
    }

    /// Inputs.
    pub fn inputs(&self) -> PathBuf {
        self.root.join("task/in")
    }

    /// Outputs.
    pub fn outputs(&self) -> PathBuf {
        self.root.join("task/out")
    }

    /// Room for temporary files.
    pub(super) fn tmp(&self) -> PathBuf {
        self.root.join("task/tmp")
    }

    /// The small result.
    pub(super) fn result(&self) -> PathBuf {
        self.root.join("task/result.json")
    }

    /// All settings.
    pub(super) fn settings(&self) -> PathBuf {
        self.root.join("task/settings.json")
    }

    /// Standard input.
    pub(super) fn payload(&self) -> PathBuf {
        self.root.join("payload")
    }

    /// The helper's order.
    pub(super) fn order(&self) -> PathBuf {
        self.root.join("order.json")
    }

    /// The helper's answer.
    pub(super) fn status(&self) -> PathBuf {
        self.root.join("status.json")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if fs::remove_dir_all(&self.root).is_err() {
            // The program may have taken its own rights away.
            open_up(&self.root);
            if let Err(error) = fs::remove_dir_all(&self.root) {
                tracing::warn!(folder = %self.root.display(), %error, "an attempt's folder stays");
            }
        }
    }
}

/// Makes folders listable again. Links are not followed.
fn open_up(folder: &Path) {
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        // What cannot be opened is told of by the removal.
        let _ = fs::set_permissions(&folder, Permissions::from_mode(0o700));
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        open.extend(
            entries
                .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
                .map(|entry| entry.path()),
        );
    }
}

/// How much a folder holds, up to bounds: bytes and entries. Links count as themselves.
pub(super) fn usage(folder: &Path, entries_max: u64) -> (u64, u64) {
    let (mut bytes, mut count) = (0, 0);
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            count += 1;
            let Ok(found) = entry.metadata() else { continue };
            // What is really taken: holes cost nothing.
            bytes += std::os::unix::fs::MetadataExt::blocks(&found) * 512;
            if found.is_dir() {
                open.push(entry.path());
            }
            if count > entries_max {
                return (bytes, count);
            }
        }
    }
    (bytes, count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_goes_away_although_the_program_locked_it() {
        let work = tempfile::tempdir().unwrap();
        let folder = Folder::make(work.path(), None).unwrap();
        let deep = folder.outputs().join("a/b");
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("file"), vec![1; 10_000]).unwrap();
        let (bytes, entries) = usage(&folder.task(), 100);
        assert!(bytes >= 10_000 && entries == 6, "{bytes} {entries}");
        fs::set_permissions(folder.outputs(), Permissions::from_mode(0o000)).unwrap();
        let root = folder.root.clone();
        drop(folder);
        assert!(!root.exists());
    }
}
