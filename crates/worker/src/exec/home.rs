//! The folder of one worker process, in which its attempts have theirs.
//!
//! Promises: it is gone with the worker; what a worker that was killed left is removed by the next that begins in the same
//! work folder. A worker that lives is known by the lock on its folder, which the kernel takes from it with its life: numbers of
//! processes come again. Leaves out: folders without such a name, which other versions made; somebody may be at work in them.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use ikada_api::client::unique_key;

use super::folder::remove;

/// Where the folders of all workers of a work folder are.
const ATTEMPTS: &str = "attempts";
/// Held while one is made or looked for, so that nobody sees one that is not locked yet.
const GATE: &str = "attempts.lock";
/// Begins the names of workers' folders.
const PREFIX: &str = "worker-";
/// Says whether the worker lives.
const LOCK: &str = "lock";
/// How often the gate is tried: whoever holds it does so for a moment.
const GATE_TRIES: u32 = 500;
const GATE_PAUSE: Duration = Duration::from_millis(10);

/// The folder of this process.
#[derive(Debug)]
pub(super) struct Home {
    path: PathBuf,
    /// Locked until it is closed.
    _lock: Option<File>,
}

/// What a worker left that is gone.
struct Left {
    path: PathBuf,
    /// Ours now, so that no other removes it at the same time.
    _lock: Option<File>,
}

impl Home {
    /// Makes one in the work folder, and removes those of workers that are gone.
    pub(super) fn open(work_dir: &Path) -> io::Result<Home> {
        let attempts = work_dir.join(ATTEMPTS);
        fs::create_dir_all(&attempts)?;
        for folder in [work_dir, &attempts] {
            let_pass(folder)?;
        }
        let gate = lock_file(&work_dir.join(GATE))?;
        let is_alone = pass(&gate)?;
        let left = if is_alone { left_in(&attempts) } else { Vec::new() };
        let home = Home::make(&attempts)?;
        drop(gate);
        for one in left {
            tracing::info!(folder = %one.path.display(), "a worker that was ended left it; it goes");
            remove(&one.path);
        }
        Ok(home)
    }

    fn make(attempts: &Path) -> io::Result<Home> {
        let path = attempts.join(format!("{PREFIX}{}", unique_key()));
        DirBuilder::new().mode(0o711).create(&path)?;
        let_pass(&path)?;
        let lock = lock_file(&path.join(LOCK))?;
        // Where there are no locks it is never taken for one that was left.
        let is_locked = pass(&lock)?;
        Ok(Home { path, _lock: is_locked.then_some(lock) })
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// One that is spoken of and never made.
    #[cfg(test)]
    pub(super) fn nowhere() -> Home {
        Home { path: PathBuf::from("/nowhere/attempts/worker-0"), _lock: None }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // What somebody still holds goes with the next worker.
        let _ = fs::remove_file(self.path.join(LOCK));
        let _ = fs::remove_dir(&self.path);
    }
}

/// Others pass through on the way to their own folder, and see nothing of others'.
fn let_pass(folder: &Path) -> io::Result<()> {
    match fs::metadata(folder)?.permissions().mode() & 0o777 == 0o711 {
        true => Ok(()),
        false => fs::set_permissions(folder, Permissions::from_mode(0o711)),
    }
}

fn lock_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path)
}

/// Waits for a lock that is never held for long; tells whether this disk has locks at all.
fn pass(file: &File) -> io::Result<bool> {
    for _ in 0..GATE_TRIES {
        match file.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::WouldBlock) => sleep(GATE_PAUSE),
            Err(TryLockError::Error(error)) => {
                tracing::warn!(%error, "no locks here: what killed workers leave stays");
                return Ok(false);
            }
        }
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, "another worker begins there and does not go on"))
}

/// Folders whose worker is gone.
fn left_in(attempts: &Path) -> Vec<Left> {
    let entries = fs::read_dir(attempts).into_iter().flatten().flatten();
    let named = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX));
    named.filter_map(|entry| left_at(entry.path())).collect()
}

fn left_at(path: PathBuf) -> Option<Left> {
    match OpenOptions::new().write(true).open(path.join(LOCK)) {
        Ok(lock) => lock.try_lock().is_ok().then_some(Left { path, _lock: Some(lock) }),
        // Somebody began to remove it and was ended himself.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some(Left { path, _lock: None }),
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b4_30_what_a_killed_worker_left_goes_with_the_next_and_what_a_living_one_has_stays() {
        let work = tempfile::tempdir().unwrap();
        let living = Home::open(work.path()).unwrap();
        let attempts = work.path().join(ATTEMPTS);
        let fill = |name: &str, with_lock: bool| {
            let task = attempts.join(name).join("some-key/task/out");
            fs::create_dir_all(&task).unwrap();
            fs::write(task.join("large"), "left").unwrap();
            if with_lock {
                // Nobody holds it: whoever did was killed.
                fs::write(attempts.join(name).join(LOCK), "").unwrap();
            }
            attempts.join(name)
        };
        let killed = fill("worker-killed", true);
        let half = fill("worker-half-removed", false);
        let older = fill("key-of-an-older-version", false);
        let own = living.path().join("own-key/task");
        fs::create_dir_all(&own).unwrap();
        let next = Home::open(work.path()).unwrap();
        for (path, stays) in
            [(&killed, false), (&half, false), (&older, true), (&own, true), (&next.path, true)]
        {
            assert_eq!(path.exists(), stays, "{}", path.display());
        }
        let path = next.path().to_owned();
        drop(next);
        assert!(!path.exists(), "gone with its worker");
    }
}
