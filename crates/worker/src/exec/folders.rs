//! Folders of attempts: a fresh one for each, or one that an earlier attempt left as good as new.
//!
//! Making and removing a handful of folders for every command is most of what a short one costs on some file systems. Where
//! nothing is isolated, programs could look into each other's folders anyway; there, an emptied one serves again. With walls it never
//! does. Nor are files made for its inputs that could be had: some file systems look long for room for a new one.
//!
//! Promises: nothing that an attempt left is in the folder of the next, and nobody of it lives who could write there; a file
//! that serves again does so empty, and lies beside the folder until then; idle
//! folders are gone with the worker, and take little room. Emptying and removing is done by threads that may wait for a disk.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::folder::{Folder, INPUTS, OUTPUTS, SETTINGS, TASK, TMP, remove};
use super::home::Home;

/// Most idle folders; more runs at one time than this make fresh ones.
const IDLE_MAX: usize = 256;
/// Largest file of settings that stays: a task's have less, and a program may have written there.
const SETTINGS_KEPT_BYTES_MAX: u64 = 256 << 10;

/// Files that inputs were, beside the task's folder, for inputs of the next.
pub(super) const SPARES: [&str; 4] = ["spare-0", "spare-1", "spare-2", "spare-3"];
/// Largest file that is kept so.
const SPARE_BYTES_MAX: u64 = 64 << 10;

/// Where attempts get their folders.
#[derive(Debug, Clone)]
pub(super) struct Folders {
    home: Arc<Home>,
    shelf: Option<Arc<Shelf>>,
}

/// Idle folders.
#[derive(Debug)]
pub(super) struct Shelf {
    idle: Mutex<Vec<PathBuf>>,
    /// Goes after them.
    _home: Arc<Home>,
}

impl Folders {
    /// Those of this process; with `shares` they serve again.
    pub(super) fn new(home: Home, shares: bool) -> Folders {
        let home = Arc::new(home);
        let shelf = shares.then(|| Arc::new(Shelf { idle: Mutex::default(), _home: home.clone() }));
        Folders { home, shelf }
    }

    /// A folder with nothing in it, for this user if the worker runs as root.
    pub(super) fn take(&self, owner: Option<u32>) -> io::Result<Folder> {
        let idle = self.shelf.as_ref().and_then(|shelf| shelf.idle.lock().ok()?.pop());
        match idle.map(|root| Folder::open(root, owner, self.shelf.clone())) {
            Some(Ok(folder)) => Ok(folder),
            _ => Ok(Folder::make(self.home.path(), owner)?.back_to(self.shelf.clone())),
        }
    }
}

impl Shelf {
    /// Empties a folder and keeps it; removes it where that is not to be had. It may be large: others take and put meanwhile.
    pub(super) fn put(&self, root: PathBuf) {
        if empty(&root).is_ok()
            && let Ok(mut idle) = self.idle.lock()
            && idle.len() < IDLE_MAX
        {
            idle.push(root);
            return;
        }
        remove(&root);
    }
}

impl Drop for Shelf {
    fn drop(&mut self) {
        let idle = self.idle.get_mut().map(std::mem::take).unwrap_or_default();
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
    for entry in fs::read_dir(root)? {
        let entry = entry?;
        let name = entry.file_name();
        let stays =
            name == TASK || (SPARES.iter().any(|spare| name == *spare) && is_spare(&entry)?);
        if !stays {
            take_away(&entry)?;
        }
    }
    for (place, room) in rooms.iter().enumerate() {
        for entry in fs::read_dir(room)? {
            let entry = entry?;
            let is_kept = place == 0 && is_spare(&entry)? && put_aside(root, &entry)?;
            if !is_kept {
                take_away(&entry)?;
            }
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
    Ok(())
}

/// Whether it is a plain file that has no other name, and small.
fn is_spare(entry: &fs::DirEntry) -> io::Result<bool> {
    let about = entry.metadata()?;
    Ok(about.is_file() && about.nlink() == 1 && about.len() <= SPARE_BYTES_MAX)
}

/// Keeps a file for an input of the next attempt, if there is a place for it.
fn put_aside(root: &Path, entry: &fs::DirEntry) -> io::Result<bool> {
    for place in SPARES.map(|spare| root.join(spare)) {
        if !place.try_exists()? {
            fs::rename(entry.path(), place)?;
            return Ok(true);
        }
    }
    Ok(false)
}

/// Keeps a plain file that has no other name and no more bytes than settings have; anything else of that name goes.
fn keep_plain(entry: &fs::DirEntry) -> io::Result<()> {
    let about = entry.metadata()?;
    match about.is_file() && about.nlink() == 1 && about.len() <= SETTINGS_KEPT_BYTES_MAX {
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
    use std::io::Write;
    use std::os::unix::fs::symlink;
    use std::time::Duration;

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
        let folders = Folders::new(Home::open(work.path()).unwrap(), true);
        let folder = folders.take(None).unwrap();
        let task = folder.task();
        assert!(!folder.move_spare("early"), "nothing was there before");
        folder.write_settings(b"{\"a\":1}").unwrap();
        fs::create_dir_all(folder.outputs().join("deep/er")).unwrap();
        for file in ["in/letter", "out/deep/er/file", "tmp/x", "result.json", "checkpoint", "new"] {
            fs::write(task.join(file), "left").unwrap();
        }
        fs::set_permissions(task.join("in/letter"), Permissions::from_mode(0o400)).unwrap();
        fs::hard_link(task.join("tmp/x"), task.join("in/linked")).unwrap();
        symlink("/etc/hostname", task.join("link")).unwrap();
        fs::write(folder.payload(), "payload").unwrap();
        drop(folder);
        let again = folders.take(None).unwrap();
        assert_eq!(again.task(), task, "the same one serves again");
        assert_eq!(names(&task), ["in", "out", "settings.json", "tmp"]);
        for room in ["in", "out", "tmp"] {
            assert!(names(&task.join(room)).is_empty(), "{room}");
        }
        assert_eq!(names(task.parent().unwrap()), ["spare-0", "task"]);
        // The file of an input serves again, empty and under its new name.
        fs::create_dir(task.join("in/deep")).unwrap();
        assert!(again.move_spare("deep/line"), "there is one");
        let mut file = again.handle().folder("in").unwrap().create("deep/line").unwrap();
        file.write_all(b"new").unwrap();
        assert_eq!(fs::read(task.join("in/deep/line")).unwrap(), b"new");
        assert_eq!(fs::metadata(task.join("in/deep/line")).unwrap().mode() & 0o777, 0o644);
        assert_eq!(names(task.parent().unwrap()), ["task"]);
        assert!(!again.move_spare("another"), "it was the only one");
        again.write_settings(b"{}").unwrap();
        assert_eq!(fs::read(again.task().join("settings.json")).unwrap(), b"{}");
        assert!(fs::exists("/etc/hostname").unwrap());
        drop(again);
        drop(folders);
        assert!(names(&work.path().join("attempts")).is_empty(), "gone with the worker");
    }

    #[test]
    fn b4_13_settings_that_a_program_made_large_are_neither_kept_nor_read() {
        let work = tempfile::tempdir().unwrap();
        let folders = Folders::new(Home::open(work.path()).unwrap(), true);
        let folder = folders.take(None).unwrap();
        let settings = folder.task().join("settings.json");
        let leave = |bytes: u64| fs::File::create(&settings).unwrap().set_len(bytes).unwrap();
        leave(1 << 40);
        folder.write_settings(b"{}").unwrap();
        assert_eq!(fs::read(&settings).unwrap(), b"{}");
        leave(1 << 40);
        drop(folder);
        let again = folders.take(None).unwrap();
        assert_eq!(names(&again.task()), ["in", "out", "tmp"], "it would take a disk's room");
    }

    // Emptying takes as long as there are files in it; whoever wants a folder meanwhile does not wait for that.
    #[test]
    fn b4_13_a_folder_that_takes_long_to_empty_keeps_nobody_waiting() {
        let work = tempfile::tempdir().unwrap();
        let folders = Folders::new(Home::open(work.path()).unwrap(), true);
        let full = folders.take(None).unwrap();
        fs::write(full.outputs().join("file"), "").unwrap();
        let outputs = full.outputs();
        let shelf = folders.shelf.unwrap();
        let another = shelf.idle.lock().unwrap();
        let emptying = std::thread::spawn(move || drop(full));
        let is_empty = || fs::read_dir(&outputs).unwrap().next().is_none();
        let until = std::time::Instant::now() + Duration::from_secs(30);
        while !is_empty() {
            assert!(std::time::Instant::now() < until, "it waits for others, and they for it");
            std::thread::sleep(Duration::from_millis(5));
        }
        drop(another);
        emptying.join().unwrap();
    }

    #[test]
    fn b4_13_a_folder_whose_program_may_live_does_not_serve_again() {
        let work = tempfile::tempdir().unwrap();
        let folders = Folders::new(Home::open(work.path()).unwrap(), true);
        for (quiet, serves) in [(true, true), (false, false)] {
            let folder = folders.take(None).unwrap();
            folder.lend(Duration::ZERO);
            folder.ended(quiet);
            let task = folder.task();
            drop(folder);
            assert_eq!(task.exists(), serves, "{quiet}");
        }
        let folder = folders.take(None).unwrap();
        folder.lend(Duration::ZERO);
        let task = folder.task();
        drop(folder);
        assert!(!task.exists(), "a run that was given up");
    }

    #[test]
    fn b4_13_a_folder_that_is_no_longer_what_it_was_does_not_serve_again() {
        let work = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        fs::write(elsewhere.path().join("precious"), "").unwrap();
        let folders = Folders::new(Home::open(work.path()).unwrap(), true);
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
        let walled = Folders::new(Home::open(work.path()).unwrap(), false);
        let first = walled.take(None).unwrap().task();
        assert!(!first.exists(), "with walls every attempt has a fresh one");
    }
}
