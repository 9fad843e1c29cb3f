//! A user id of its own for every run, when the worker is root.
//!
//! The numbers need no names in the system's tables. Leaves out: workers that are not root; their programs run as the
//! worker's user, behind the other walls.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

/// First of the numbers: above what distributions give to people and services, below `nobody`.
const FIRST: u32 = 64_100;
/// How many there are; a worker with more slots shares them.
const COUNT: u32 = 1_000;

/// Numbers that are not in use.
#[derive(Debug, Clone)]
pub(super) struct Users(Option<Arc<Mutex<BTreeSet<u32>>>>);

/// A number in use.
#[derive(Debug)]
pub(super) struct User {
    pub(super) id: Option<u32>,
    pool: Users,
}

impl Users {
    /// None unless this process is root.
    pub(super) fn new() -> Users {
        let root = rustix::process::geteuid().is_root();
        Users(root.then(|| Arc::new(Mutex::new((FIRST..FIRST + COUNT).collect()))))
    }

    /// Nobody changes users.
    pub(super) fn none() -> Users {
        Users(None)
    }

    /// Whether programs run as somebody else than the worker.
    pub(super) fn are_their_own(&self) -> bool {
        self.0.is_some()
    }

    /// Whether a number is one of theirs.
    pub(super) fn holds(id: u32) -> bool {
        (FIRST..=FIRST + COUNT).contains(&id)
    }

    /// Takes one.
    pub(super) fn take(&self) -> User {
        let taken = self.0.as_ref().map(|pool| {
            let free = pool.lock().ok().and_then(|mut pool| pool.pop_first());
            free.unwrap_or(FIRST + COUNT)
        });
        User { id: taken, pool: self.clone() }
    }
}

impl Drop for User {
    fn drop(&mut self) {
        if let (Some(id), Some(pool)) = (self.id, &self.pool.0)
            && id < FIRST + COUNT
            && let Ok(mut pool) = pool.lock()
        {
            pool.insert(id);
        }
    }
}
