//! Programs of the cluster on this machine's disk, by their digest: fetched once, and kept while there is room.
//!
//! Promises: what is kept has a bound in bytes, and the one that was used longest ago goes first; a file goes only while
//! nobody uses it, in this process or in another that shares the folder: who uses one holds a shared lock on it.
//! Leaves out: whether the bytes are those of the digest (the download checks that).

use std::collections::VecDeque;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use ikada_api::client::{GetOptions, unique_key};
use ikada_api::v1::ProgramManifest;

use super::fetch::download;
use super::near::Objects;
use crate::run::TaskError;

/// Manifests that are kept in memory.
const MANIFESTS_MAX: usize = 16;
/// Largest manifest.
const MANIFEST_BYTES_MAX: u64 = 64 << 10;
/// Bytes of all programs together: a hundred of the largest that can be pushed.
const STORE_BYTES_MAX: u64 = 1 << 30;
/// Files that are kept at most: folders with very many are slow to list.
const STORE_FILES_MAX: usize = 10_000;
/// How often a file may vanish between its arrival and its use before the attempt fails.
const TRIES_MAX: u32 = 3;
/// How exactly the time of the last use is known: every note is a write to the disk.
const USE_NOTED_EVERY: Duration = Duration::from_secs(60);
/// The bucket of programs.
const BUCKET: &str = "programs";

/// Manifests that were read lately: what has a digest never changes.
#[derive(Debug, Default)]
pub(super) struct Manifests(Mutex<VecDeque<(String, ProgramManifest)>>);

impl Manifests {
    /// What a program consists of, by the digest that the task names.
    pub(super) async fn get(
        &self,
        objects: &Objects,
        store: &Path,
        digest: &str,
    ) -> Result<ProgramManifest, TaskError> {
        let kept = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = kept().iter().find(|(known, _)| known == digest).map(|(_, it)| it.clone());
        if let Some(known) = known {
            return Ok(known);
        }
        let read = manifest(objects, store, digest).await?;
        let mut kept = kept();
        kept.push_front((digest.to_owned(), read.clone()));
        kept.truncate(MANIFESTS_MAX);
        Ok(read)
    }
}

async fn manifest(
    objects: &Objects,
    store: &Path,
    digest: &str,
) -> Result<ProgramManifest, TaskError> {
    let (_, file) = program(objects, store, "manifest", digest).await?;
    if file.metadata()?.len() > MANIFEST_BYTES_MAX {
        return Err(TaskError::give_up("the program's manifest is too large"));
    }
    Ok(serde_json::from_reader(io::BufReader::new(file))?)
}

/// A file of a program, fetched once. It stays for as long as the handle is held.
pub(super) async fn program(
    objects: &Objects,
    store: &Path,
    kind: &str,
    digest: &str,
) -> Result<(PathBuf, File), TaskError> {
    if digest.len() != 64 || !digest.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(TaskError::give_up("the program has no good digest"));
    }
    let path = store.join(digest);
    for _ in 0..TRIES_MAX {
        if let Some(file) = take(&path)? {
            return Ok((path, file));
        }
        fetch(objects, store, kind, digest).await?;
    }
    Err(TaskError::new(format!("program {digest} does not stay in {}", store.display())))
}

/// A kept file, locked against removal; none if it is not there.
fn take(path: &Path) -> io::Result<Option<File>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    file.lock_shared()?;
    let about = file.metadata()?;
    // It may have gone between the two; then nobody finds it by its name any more.
    if about.nlink() == 0 {
        return Ok(None);
    }
    // Says when it was used last, to the minute. Not its owner's worker: then it goes a little early.
    let now = SystemTime::now();
    let age = now.duration_since(about.modified()?).unwrap_or(USE_NOTED_EVERY);
    if age >= USE_NOTED_EVERY {
        let _ = file.set_modified(now);
    }
    Ok(Some(file))
}

async fn fetch(objects: &Objects, store: &Path, kind: &str, digest: &str) -> Result<(), TaskError> {
    fs::create_dir_all(store)?;
    fs::set_permissions(store, Permissions::from_mode(0o711))?;
    let fresh = store.join(format!("fresh-{}", unique_key()));
    let options = GetOptions { if_match: Some(digest.to_owned()), ..GetOptions::default() };
    let mut file = File::create(&fresh)?;
    // Nobody makes room with what is still on its way.
    file.lock_shared()?;
    let fetched =
        download(objects, BUCKET, &format!("{kind}/{digest}"), &options, None, &mut file).await;
    if let Err(error) = fetched {
        // What came is not whole; nobody will ask for it by this name.
        let _ = fs::remove_file(&fresh);
        return Err(error);
    }
    // Other users read and run it, nobody but the worker writes it.
    fs::set_permissions(&fresh, Permissions::from_mode(0o755))?;
    fs::rename(&fresh, store.join(digest))?;
    if let Err(error) = make_room(store, STORE_BYTES_MAX, STORE_FILES_MAX) {
        tracing::warn!(folder = %store.display(), %error, "no room is made for programs");
    }
    Ok(())
}

/// Removes what was used longest ago and is not in use, until the bounds hold.
fn make_room(store: &Path, bytes_max: u64, files_max: usize) -> io::Result<()> {
    let mut kept: Vec<(SystemTime, PathBuf, u64)> = Vec::new();
    for entry in fs::read_dir(store)? {
        let entry = entry?;
        // Another worker may have removed it since.
        let Ok(about) = entry.metadata() else { continue };
        if about.is_file() {
            kept.push((about.modified()?, entry.path(), about.len()));
        }
    }
    kept.sort();
    let (mut bytes, mut files) = (kept.iter().map(|(.., size)| size).sum::<u64>(), kept.len());
    for (_, path, size) in kept {
        if bytes <= bytes_max && files <= files_max {
            return Ok(());
        }
        let Ok(file) = File::open(&path) else { continue };
        if file.try_lock().is_err() {
            continue;
        }
        fs::remove_file(&path)?;
        (bytes, files) = (bytes - size, files - 1);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keep(store: &Path, name: &str, bytes: usize, age: u64) {
        let file = File::create(store.join(name)).unwrap();
        file.set_len(bytes as u64).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(age)).unwrap();
    }

    fn names(store: &Path) -> Vec<String> {
        let entries = fs::read_dir(store).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn b4_40_what_was_used_longest_ago_makes_room_but_nothing_that_is_in_use() {
        let store = tempfile::tempdir().unwrap();
        let store = store.path();
        for (name, age) in [("oldest", 400), ("old", 300), ("newer", 200), ("newest", 100)] {
            keep(store, name, 100, age);
        }
        make_room(store, 400, 4).unwrap();
        assert_eq!(names(store).len(), 4, "nothing goes while there is room");
        // Using one keeps it, and makes it the last to go.
        let held = take(&store.join("oldest")).unwrap().expect("it is there");
        make_room(store, 250, 4).unwrap();
        assert_eq!(names(store), ["newest", "oldest"]);
        make_room(store, 0, 0).unwrap();
        assert_eq!(names(store), ["oldest"], "somebody uses it");
        drop(held);
        make_room(store, 0, 0).unwrap();
        assert!(names(store).is_empty());
        assert!(take(&store.join("oldest")).unwrap().is_none());
        for name in ["a", "b", "c"] {
            keep(store, name, 0, 1);
        }
        make_room(store, 100, 2).unwrap();
        assert_eq!(names(store).len(), 2, "the number of files has a bound, too");
    }
}
