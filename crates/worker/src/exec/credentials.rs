//! Whether programs of tasks could read what the worker shows to the cluster: a token, or the key of a certificate.
//!
//! Promise: what is told to be out of their reach is kept from them by a wall of its own: the rights of the file where they
//! run as other users, Landlock where they run as the worker's. Leaves out: rights beyond the plain ones (ACLs), and
//! programs that are handed the secret by whoever writes them.

use std::fs::Metadata;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::users::Users;
use super::{Sandbox, closed_way};
use crate::sandbox::{Isolation, system};

/// Whether a file is within reach of programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exposure {
    /// It is not.
    Closed,
    /// It is; with what is to be done.
    Open(String),
    /// That cannot be told; why.
    Unsure(String),
}

impl Sandbox {
    /// Whether the programs that run here can read a file of the worker's.
    pub fn exposure(&self, file: &Path) -> Exposure {
        let found = file.canonicalize().and_then(|path| Ok((path.metadata()?, path)));
        let (about, path) = match found {
            Ok(found) => found,
            Err(error) => return Exposure::Unsure(error.to_string()),
        };
        // A pipe is empty once it was read.
        if !about.is_file() {
            return Exposure::Closed;
        }
        if self.config().isolation == Isolation::None {
            return Exposure::Unsure("programs are not isolated (--isolation none)".to_owned());
        }
        if self.has_users() {
            return by_rights(&about, &path);
        }
        if !self.walls().landlock {
            let why = "programs run as the worker's own user, and this kernel has no Landlock";
            return Exposure::Unsure(why.to_owned());
        }
        by_places(&path, system().iter().chain(&self.config().readable))
    }
}

/// Where programs have users of their own.
fn by_rights(about: &Metadata, path: &Path) -> Exposure {
    let mode = about.permissions().mode();
    let owned = Users::holds(about.uid()) || Users::holds(about.gid());
    if !owned && (mode & 0o004 == 0 || closed_way(path).is_some()) {
        return Exposure::Closed;
    }
    Exposure::Open(match owned {
        true => "it belongs to a user that programs run as: chown it to the worker's".to_owned(),
        false => format!("every user of this machine can read it: chmod 600 {}", path.display()),
    })
}

/// Where only Landlock stands between them.
fn by_places<'a>(path: &Path, mut readable: impl Iterator<Item = &'a PathBuf>) -> Exposure {
    let lies_in = |place: &&PathBuf| {
        // Rules are about what a name leads to.
        place.canonicalize().is_ok_and(|place| path.starts_with(place))
    };
    match readable.find(lies_in) {
        None => Exposure::Closed,
        Some(place) => {
            let place = place.display();
            Exposure::Open(format!("programs may read {place}: move it to another folder"))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};

    use super::*;

    // X6, X12
    #[test]
    fn x_12_a_file_that_others_can_read_is_open_unless_its_way_is_closed() {
        let top = tempfile::tempdir().unwrap();
        let (folder, file) = (top.path().join("etc"), top.path().join("etc/worker-token"));
        fs::create_dir(&folder).unwrap();
        fs::write(&file, "x").unwrap();
        let set = |path: &Path, mode| {
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        };
        let judge = || by_rights(&file.metadata().unwrap(), &file);
        set(top.path(), 0o755);
        for (way, mode, open) in [
            (0o755, 0o644, true),
            (0o755, 0o600, false),
            (0o755, 0o640, false),
            (0o700, 0o644, false),
        ] {
            set(&folder, way);
            set(&file, mode);
            assert_eq!(judge() != Exposure::Closed, open, "{way:o} {mode:o}");
        }
        set(&folder, 0o755);
        assert!(matches!(judge(), Exposure::Open(why) if why.contains("chmod 600")));
    }

    #[test]
    fn x_12_where_only_landlock_stands_the_place_counts() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path().canonicalize().unwrap();
        let (shared, own) = (top.join("shared"), top.join("own"));
        for folder in [&shared, &own] {
            fs::create_dir(folder).unwrap();
        }
        let link = top.join("link");
        std::os::unix::fs::symlink(&shared, &link).unwrap();
        for readable in [&shared, &link] {
            let judge = |file: PathBuf| by_places(&file, [readable].into_iter());
            assert_eq!(judge(own.join("token")), Exposure::Closed);
            assert!(matches!(judge(shared.join("token")), Exposure::Open(_)), "{readable:?}");
        }
        // Whatever else is there: the worker's token is not, if it lies where the unit of systemd has it.
        let all = system();
        let judged = by_places(Path::new("/etc/ikada/worker-token"), all.iter());
        assert_eq!(judged, Exposure::Closed);
    }
}
