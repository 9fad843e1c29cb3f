//! Where downloads go: names below a folder that the user named.
//!
//! Promises: names come from whoever answers, who may not be who we think, so none of them leads out of the folder, not by
//! `..` and not through a link that lies in it (X8). Leaves out: the user's own path, which is followed wherever it leads.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use ikada_worker::beneath::Beneath;

use super::put::unreadable;
use crate::failure::Failure;

/// A folder for downloads.
#[derive(Debug)]
pub(crate) struct Target {
    folder: Beneath,
    shown: PathBuf,
}

impl Target {
    /// This folder, made if need be.
    pub(crate) fn folder(path: &Path) -> Result<Target, Failure> {
        let failed = |error: io::Error| unreadable(path, &error);
        std::fs::create_dir_all(path).map_err(failed)?;
        Ok(Target { folder: Beneath::at(path).map_err(failed)?, shown: path.to_path_buf() })
    }

    /// The folder of a file that the user named, and the file's name in it.
    pub(crate) fn of_file(path: &Path) -> Result<(Target, String), Failure> {
        let name = path.file_name().and_then(|name| name.to_str());
        let Some(name) = name.map(str::to_owned) else {
            return Err(Failure::usage(format!("{} names no file", path.display())));
        };
        let folder = match path.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        let failed = |error: io::Error| unreadable(path, &error);
        let shown = path.with_file_name("");
        Ok((Target { folder: Beneath::at(folder).map_err(failed)?, shown }, name))
    }

    /// How a name is shown to people.
    pub(crate) fn shown(&self, name: &str) -> String {
        format!("{}", self.shown.join(name).display())
    }

    /// A file of this name, if there is one.
    pub(super) fn open(&self, name: &str) -> Option<File> {
        self.folder.open(name).ok()
    }

    /// Makes the folders that a name lies in.
    pub(super) fn make_folders(&self, name: &str) -> Result<(), Failure> {
        let Some((folders, _)) = name.rsplit_once('/') else { return Ok(()) };
        let made = self.folder.make_folder(folders, |_| Ok(()));
        made.map(drop).map_err(|error| self.failed(name, &error))
    }

    /// Opens the part of a download to go on at its end.
    pub(super) fn append(&self, part: &str) -> Result<File, Failure> {
        self.folder.append(part).map_err(|error| self.failed(part, &error))
    }

    /// Gives a whole download its name.
    pub(super) fn rename(&self, part: &str, name: &str) -> Result<(), Failure> {
        self.folder.rename(part, name).map_err(|error| self.failed(name, &error))
    }

    /// Removes a part that is no good.
    pub(super) fn remove(&self, part: &str) -> Result<(), Failure> {
        self.folder.remove(part).map_err(|error| self.failed(part, &error))
    }

    fn failed(&self, name: &str, error: &io::Error) -> Failure {
        let shown = self.shown.display();
        Failure::failed(format!("{name:?} cannot be written in {shown}: {error}"))
    }
}

/// Where a download lies until it is whole: named after its content, so that two contents never mix.
pub(super) fn part_of(name: &str, digest: &str) -> String {
    let (folders, last) =
        name.rsplit_once('/').map_or(("", name), |(folders, last)| (folders, last));
    let slash = if folders.is_empty() { "" } else { "/" };
    // The digest is an answer, too, and would be a bad one with a slash in it.
    let short: String = digest.chars().filter(char::is_ascii_hexdigit).take(16).collect();
    format!("{folders}{slash}.{last}.{short}.part")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x_8_no_answer_leads_out_of_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(outside.path(), folder.path().join("link")).unwrap();
        let target = Target::folder(folder.path()).unwrap();
        for bad in ["../a", "a/../b", "/a", "a//b", "a/.", "link/a", "link/b/c", "", "..", "a\\b"] {
            let made = target.make_folders(bad);
            let opened = made.and_then(|()| target.append(&part_of(bad, "../../00")));
            let opened = opened.and_then(|_| target.rename(&part_of(bad, "../../00"), bad));
            assert!(opened.is_err(), "{bad:?}");
        }
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
        target.make_folders("b/c").unwrap();
        drop(target.append("b/.c.00.part").unwrap());
        target.rename(&part_of("b/c", "00"), "b/c").unwrap();
        assert!(target.open("b/c").is_some() && folder.path().join("b/c").is_file());
    }

    #[test]
    fn a_file_of_the_users_own_is_named_by_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let (target, name) = Target::of_file(&folder.path().join("a.txt")).unwrap();
        assert_eq!(name, "a.txt");
        assert_eq!(target.shown(&name), folder.path().join("a.txt").display().to_string());
        let (target, name) = Target::of_file(Path::new("a.txt")).unwrap();
        assert_eq!(target.shown(&name), "a.txt");
        assert!(Target::of_file(Path::new("..")).is_err());
        assert!(Target::of_file(&folder.path().join("none/a")).is_err());
    }
}
