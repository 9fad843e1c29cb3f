//! Folders of attempts: a fresh one for each, or one that an earlier attempt left as good as new.
//!
//! Making and removing a handful of folders for every command is most of what a short one costs on some file systems. Where
//! nothing is isolated, programs could look into each other's folders anyway; there, an emptied one serves again. With walls it never
//! does.
//!
//! Promises: nothing that an attempt left is in the folder of the next; idle folders are gone with the worker.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::folder::{Folder, INPUTS, OUTPUTS, SETTINGS, TASK, TMP, remove};

/// Most idle folders; more runs at one time than this make fresh ones.
const IDLE_MAX: usize = 256;

/// Where attempts get their folders.
#[derive(Debug, Clone)]
pub(super) struct Folders {
    work_dir: PathBuf,
    shelf: Option<Arc<Shelf>>,
}

/// Idle folders.
#[derive(Debug, Default)]
pub(super) struct Shelf(Mutex<Vec<PathBuf>>);

impl Folders {
    pub(super) fn new(work_dir: PathBuf, shares: bool) -> Folders {
        Folders { work_dir, shelf: shares.then(Arc::default) }
    }

    /// A folder with nothing in it, for this user if the worker runs as root.
    pub(super) fn take(&self, owner: Option<u32>) -> io::Result<Folder> {
        let idle = self.shelf.as_ref().and_then(|shelf| shelf.0.lock().ok()?.pop());
        match idle.map(|root| Folder::open(root, owner, self.shelf.clone())) {
            Some(Ok(folder)) => Ok(folder),
            _ => Ok(Folder::make(&self.work_dir, owner)?.back_to(self.shelf.clone())),
        }
    }
}

impl Shelf {
    /// Empties a folder and keeps it; removes it where that is not to be had.
    pub(super) fn put(&self, root: PathBuf) {
        let kept = self.0.lock().ok().filter(|idle| idle.len() < IDLE_MAX);
        match (kept, empty(&root)) {
            (Some(mut idle), Ok(())) => idle.push(root),
            _ => remove(&root),
        }
    }
}

impl Drop for Shelf {
    fn drop(&mut self) {
        let idle = self.0.get_mut().map(std::mem::take).unwrap_or_default();
        idle.iter().for_each(|root| remove(root));
    }
}

/// Brings a folder back to what it was when it was made, but for the settings, which are often the same again.
fn empty(root: &Path) -> io::Result<()> {
    let task = root.join(TASK);
    let rooms = [INPUTS, OUTPUTS, TMP].map(|name| task.join(name));
    for folder in rooms.iter().chain([&task]) {
        let about = fs::symlink_metadata(folder)?;
        if !about.is_dir() || about.mode() & 0o777 != 0o700 {
            return Err(io::Error::other("it is not the folder that was made"));
        }
    }
    for room in &rooms {
        for entry in fs::read_dir(room)? {
            take_away(&entry?)?;
        }
    }
    for entry in fs::read_dir(&task)? {
        let entry = entry?;
        let name = entry.file_name();
        if name == SETTINGS {
            keep_plain(&entry)?;
        } else if ![INPUTS, OUTPUTS, TMP].iter().any(|room| name == *room) {
            take_away(&entry)?;
        }
    }
    for entry in fs::read_dir(root)? {
        let entry = entry?;
        if entry.file_name() != TASK {
            take_away(&entry)?;
        }
    }
    Ok(())
}

/// Keeps a plain file that has no other name; anything else of that name goes.
fn keep_plain(entry: &fs::DirEntry) -> io::Result<()> {
    let about = entry.metadata()?;
    match about.is_file() && about.nlink() == 1 {
        true if about.mode() & 0o777 == 0o600 => Ok(()),
        true => fs::set_permissions(entry.path(), Permissions::from_mode(0o600)),
        false => take_away(entry),
    }
}

/// Removes a file, a link or a folder. Links are not followed.
fn take_away(entry: &fs::DirEntry) -> io::Result<()> {
    match entry.file_type()?.is_dir() {
        true => fs::remove_dir_all(entry.path()),
        false => fs::remove_file(entry.path()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn b4_13_an_emptied_folder_holds_nothing_of_the_attempt_before() {
        let work = tempfile::tempdir().unwrap();
        let folders = Folders::new(work.path().to_owned(), true);
        let folder = folders.take(None).unwrap();
        let task = folder.task();
        folder.write_settings(b"{\"a\":1}").unwrap();
        fs::create_dir_all(folder.outputs().join("deep/er")).unwrap();
        for file in ["in/letter", "out/deep/er/file", "tmp/x", "result.json", "checkpoint", "new"] {
            fs::write(task.join(file), "left").unwrap();
        }
        symlink("/etc/hostname", task.join("link")).unwrap();
        fs::write(folder.payload(), "payload").unwrap();
        drop(folder);
        let again = folders.take(None).unwrap();
        assert_eq!(again.task(), task, "the same one serves again");
        assert_eq!(names(&task), ["in", "out", "settings.json", "tmp"]);
        for room in ["in", "out", "tmp"] {
            assert!(names(&task.join(room)).is_empty(), "{room}");
        }
        assert_eq!(names(task.parent().unwrap()), ["task"]);
        again.write_settings(b"{}").unwrap();
        assert_eq!(fs::read(again.task().join("settings.json")).unwrap(), b"{}");
        assert!(fs::exists("/etc/hostname").unwrap());
        drop(again);
        drop(folders);
        assert!(names(&work.path().join("attempts")).is_empty(), "gone with the worker");
    }

    #[test]
    fn b4_13_a_folder_that_is_no_longer_what_it_was_does_not_serve_again() {
        let work = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        fs::write(elsewhere.path().join("precious"), "").unwrap();
        let folders = Folders::new(work.path().to_owned(), true);
        let folder = folders.take(None).unwrap();
        let task = folder.task();
        fs::remove_dir(folder.outputs()).unwrap();
        symlink(elsewhere.path(), folder.outputs()).unwrap();
        drop(folder);
        assert!(!task.exists(), "it was removed");
        assert!(elsewhere.path().join("precious").exists(), "a link is not followed");
        let locked = folders.take(None).unwrap();
        let task = locked.task();
        fs::set_permissions(&task, Permissions::from_mode(0o500)).unwrap();
        drop(locked);
        assert!(!task.exists());
        let walled = Folders::new(work.path().to_owned(), false);
        let first = walled.take(None).unwrap().task();
        assert!(!first.exists(), "with walls every attempt has a fresh one");
    }
}
