//! The private folder of one attempt, removed with it.

use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown, fchown};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ikada_api::client::unique_key;

use super::folders::{SPARES, Shelf};
use super::strays::end_strays;
use crate::beneath::{Beneath, Kind};

/// The folder that the program reaches.
pub(super) const TASK: &str = "task";
/// The helper's answer, beside it.
const STATUS: &str = "status.json";
/// Longest answer of a helper.
const STATUS_BYTES_MAX: u64 = 64 << 10;
/// The inputs' folder in the task's.
pub(super) const INPUTS: &str = "in";
/// The outputs' folder in the task's.
pub(super) const OUTPUTS: &str = "out";
/// The checkpoint in the task's folder.
pub(super) const CHECKPOINT: &str = "checkpoint";
/// Room for temporary files in the task's folder.
pub(super) const TMP: &str = "tmp";
/// The settings in the task's folder.
pub(super) const SETTINGS: &str = "settings.json";
/// The small result in the task's folder.
pub(super) const RESULT: &str = "result.json";

/// The first folder on the way to another that other users cannot pass through.
pub fn closed_way(folder: &Path) -> Option<PathBuf> {
    let mut way: Vec<&Path> = folder.ancestors().skip(1).collect();
    way.reverse();
    let is_closed = |folder: &&Path| {
        fs::metadata(folder).is_ok_and(|about| about.permissions().mode() & 0o001 == 0)
    };
    way.into_iter().find(is_closed).map(Path::to_path_buf)
}

/// Folders of one attempt. The program reaches `task` and what lies below it, nothing beside it.
#[derive(Debug)]
pub struct Folder {
    root: PathBuf,
    owner: Option<u32>,
    /// Both opened before the program ran: what it does to the names of its folders changes nothing.
    all: Beneath,
    handle: Arc<Beneath>,
    /// Where it goes when it is no longer needed, if it may serve again.
    shelf: Option<Arc<Shelf>>,
    use_: Mutex<Use>,
}

/// Who may still write there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    /// Nobody but the worker.
    Quiet,
    /// A program, which has so long to end by itself if its run is given up.
    Lent(Duration),
    /// Perhaps something of a program that was ended by force.
    Doubtful,
}

impl Folder {
    /// Makes a fresh one in this folder, for this user if the worker runs as root.
    pub fn make(home: &Path, owner: Option<u32>) -> io::Result<Folder> {
        // Names of tasks never become paths.
        let root = home.join(unique_key());
        for part in ["", "task", "task/in", "task/out", "task/tmp"] {
            let part = root.join(part);
            DirBuilder::new().mode(0o700).create(&part)?;
            owner.map_or(Ok(()), |owner| chown(&part, Some(owner), Some(owner)))?;
        }
        Folder::open(root, owner, None)
    }

    /// One that exists.
    pub(super) fn open(
        root: PathBuf,
        owner: Option<u32>,
        shelf: Option<Arc<Shelf>>,
    ) -> io::Result<Folder> {
        let all = Beneath::at(&root)?;
        let handle = Arc::new(all.folder(TASK)?);
        Ok(Folder { root, owner, all, handle, shelf, use_: Mutex::new(Use::Quiet) })
    }

    /// The same, put on this shelf when it is no longer needed.
    pub(super) fn back_to(mut self, shelf: Option<Arc<Shelf>>) -> Folder {
        self.shelf = shelf;
        self
    }

    /// One that is spoken of and never made.
    #[cfg(test)]
    pub(super) fn at(root: PathBuf) -> Folder {
        let open = || Beneath::at(&std::env::temp_dir()).expect("a folder that is never used");
        let (handle, use_) = (Arc::new(open()), Mutex::new(Use::Quiet));
        Folder { root, owner: None, all: open(), handle, shelf: None, use_ }
    }

    /// A program runs there from now on. If its run is given up, it has this long to end.
    pub(super) fn lend(&self, patience: Duration) {
        self.note(Use::Lent(patience));
    }

    /// The program's run is over; `quiet` if it is known that nobody of it lives.
    pub(super) fn ended(&self, quiet: bool) {
        self.note(if quiet { Use::Quiet } else { Use::Doubtful });
    }

    fn note(&self, now: Use) {
        if let Ok(mut before) = self.use_.lock() {
            *before = now;
        }
    }

    /// Gives it up, and waits until that is done. Whoever else holds it gives it up later.
    pub(super) async fn put_away(folder: Arc<Folder>) {
        let clearing = Arc::into_inner(folder).and_then(|mut folder| folder.clearing());
        if let Some(clearing) = clearing {
            // If the thread broke off, the next worker removes what is left.
            let _ = tokio::task::spawn_blocking(clearing).await;
        }
    }

    /// What is to be done when it is no longer needed; none if that was taken before.
    fn clearing(&mut self) -> Option<impl FnOnce() + Send + use<>> {
        let (root, shelf) = (std::mem::take(&mut self.root), self.shelf.take());
        let was = self.use_.get_mut().map_or(Use::Doubtful, |was| *was);
        (!root.as_os_str().is_empty()).then_some(move || clear(root, shelf, was))
    }

    /// Gives a file to the user as whom the program runs.
    pub fn hand_over(&self, path: &Path) -> io::Result<()> {
        self.owner.map_or(Ok(()), |owner| chown(path, Some(owner), Some(owner)))
    }

    /// Gives an open file or folder to the user as whom the program runs.
    pub(super) fn hand_over_open(&self, file: impl AsFd) -> io::Result<()> {
        self.owner.map_or(Ok(()), |owner| fchown(file, Some(owner), Some(owner)))
    }

    /// The folder [`Folder::task`], and all that the program can name.
    pub fn handle(&self) -> &Arc<Beneath> {
        &self.handle
    }

    /// The helper's answer, if there is one; no more than an answer can be long.
    pub(super) fn read_status(&self) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        self.all.open(STATUS)?.take(STATUS_BYTES_MAX).read_to_end(&mut text)?;
        Ok(text)
    }

    /// Gives the file of an input of an earlier attempt to one of this name, which has none yet. It still has the old bytes: creating
    /// the input empties it. False if there is none.
    pub(super) fn move_spare(&self, name: &str) -> bool {
        let input = format!("{TASK}/{INPUTS}/{name}");
        let moves = |spare: &&str| self.all.rename(spare, &input).is_ok();
        if self.shelf.is_none() || !SPARES.iter().any(moves) {
            return false;
        }
        // As new files are; the program before may have changed it.
        let mode = Permissions::from_mode(0o644);
        let emptied = self.all.create(&input).and_then(|file| file.set_permissions(mode));
        if emptied.is_err() {
            // A fresh one is made instead; where this one stays, that fails.
            let _ = self.all.remove(&input);
        }
        emptied.is_ok()
    }

    /// Writes a file for the program's user alone.
    pub fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        fs::write(path, bytes)?;
        fs::set_permissions(path, Permissions::from_mode(0o600))?;
        self.hand_over(path)
    }

    /// Writes all settings, unless the file has them already.
    pub(super) fn write_settings(&self, bytes: &[u8]) -> io::Result<()> {
        let path = self.settings();
        // Another program may have left anything there: no more is read than is compared.
        let is_as_long =
            || fs::symlink_metadata(&path).is_ok_and(|kept| kept.len() == bytes.len() as u64);
        let is_kept = || fs::read(&path).is_ok_and(|kept| kept == bytes);
        match self.shelf.is_some() && is_as_long() && is_kept() {
            true => Ok(()),
            false => self.write(&path, bytes),
        }
    }

    /// Where the program begins and may write. Paths are for the program; the worker itself goes by the handle.
    pub fn task(&self) -> PathBuf {
        self.root.join(TASK)
    }

    /// Inputs.
    pub fn inputs(&self) -> PathBuf {
        self.task().join(INPUTS)
    }

    /// Outputs.
    pub fn outputs(&self) -> PathBuf {
        self.task().join(OUTPUTS)
    }

    /// Room for temporary files.
    pub(super) fn tmp(&self) -> PathBuf {
        self.task().join(TMP)
    }

    /// The small result.
    pub(super) fn result(&self) -> PathBuf {
        self.task().join(RESULT)
    }

    /// The checkpoint.
    pub(super) fn checkpoint(&self) -> PathBuf {
        self.task().join(CHECKPOINT)
    }

    /// All settings.
    pub(super) fn settings(&self) -> PathBuf {
        self.task().join(SETTINGS)
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
        self.root.join(STATUS)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let Some(clearing) = self.clearing() else { return };
        // A run that is given up is dropped where others run: nobody waits for a disk there.
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(clearing)),
            Err(_) => clearing(),
        }
    }
}

/// Empties a folder for the next, or removes it.
fn clear(root: PathBuf, shelf: Option<Arc<Shelf>>, was: Use) {
    let outputs = root.join(TASK).join(OUTPUTS);
    match (was, shelf) {
        (Use::Quiet, Some(shelf)) => return shelf.put(root),
        (Use::Quiet, None) => {}
        (Use::Lent(patience), _) => drop(end_strays(&outputs, patience)),
        (Use::Doubtful, _) => drop(end_strays(&outputs, Duration::ZERO)),
    }
    remove(&root);
}

/// Removes a folder and all that is in it.
pub(super) fn remove(root: &Path) {
    if fs::remove_dir_all(root).is_err() {
        // The program may have taken its own rights away.
        open_up(root);
        if let Err(error) = fs::remove_dir_all(root) {
            tracing::warn!(folder = %root.display(), %error, "an attempt's folder stays");
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

/// How much a folder holds, up to bounds: bytes and entries. Links count as themselves. The program is at work
/// meanwhile, so folders are looked up below the handle.
pub(super) fn usage(folder: &Beneath, entries_max: u64) -> (u64, u64) {
    let (mut bytes, mut count) = (0, 0);
    let mut open = vec![PathBuf::from(".")];
    while let Some(path) = open.pop() {
        let Ok(folder) = folder.within(&path) else { continue };
        for entry in folder.entries().into_iter().flatten() {
            count += 1;
            let Ok(entry) = entry else { continue };
            bytes += entry.taken;
            if entry.kind == Kind::Folder {
                open.push(path.join(&entry.name));
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
    fn a_closed_folder_on_the_way_is_found() {
        let top = tempfile::tempdir().unwrap();
        fs::create_dir_all(top.path().join("a/b/work")).unwrap();
        for (mode, closed) in [(0o700, true), (0o710, true), (0o711, false), (0o755, false)] {
            fs::set_permissions(top.path().join("a"), Permissions::from_mode(mode)).unwrap();
            let found = closed_way(&top.path().join("a/b/work"));
            assert_eq!(found, closed.then(|| top.path().join("a")), "{mode:o}");
        }
        fs::set_permissions(top.path().join("a/b/work"), Permissions::from_mode(0o700)).unwrap();
        assert_eq!(closed_way(&top.path().join("a/b/work")), None, "its own rights are set");
    }

    #[test]
    fn a_folder_goes_away_although_the_program_locked_it() {
        let work = tempfile::tempdir().unwrap();
        let folder = Folder::make(work.path(), None).unwrap();
        let deep = folder.outputs().join("a/b");
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("file"), vec![1; 10_000]).unwrap();
        let (bytes, entries) = usage(folder.handle(), 100);
        assert!(bytes >= 10_000 && entries == 6, "{bytes} {entries}");
        fs::set_permissions(folder.outputs(), Permissions::from_mode(0o000)).unwrap();
        let root = folder.root.clone();
        drop(folder);
        assert!(!root.exists());
    }
}
