//! Bounds memory and processes of a whole run by a control group, where this machine gives them.
//!
//! A limit of each process leaves many processes as many times that much; a group counts them together. Groups are made
//! below the worker's own, so that whatever bounds the worker bounds its programs too; version 2 has one tree for
//! everything, version 1 one for each kind.
//!
//! Promises: a program is in its group before it begins, and cannot leave it; a group is gone with its run. Leaves out:
//! shares of processor time and of disks.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ikada_api::client::unique_key;
use rustix::process::{Pid, Signal};

use crate::sandbox::Limits;

/// Begins the names of groups.
const PREFIX: &str = "ikada-run-";
/// Where the worker itself goes: a group of version 2 with groups below has no processes of its own.
const OWN: &str = "ikada-worker";
/// What the helpers around a program need.
const HELPER_BYTES: u64 = 32 << 20;
/// Processes and threads of the helpers.
const HELPER_PROCESSES: u64 = 8;
/// How often a group is tried to be removed: the kernel may still be busy with its last process.
const REMOVALS: u32 = 40;
const REMOVAL_PAUSE: Duration = Duration::from_millis(5);

/// Whether control groups are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GroupRule {
    /// Where the machine gives them.
    #[default]
    Best,
    /// Nothing runs without them.
    Require,
    /// Not at all.
    Off,
}

/// Where groups are made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Groups(Places);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Places {
    /// One tree.
    Two(PathBuf),
    /// A tree of memory and one of processes.
    One { memory: PathBuf, processes: PathBuf },
}

impl Groups {
    /// Looks where this process may make groups; an error says what is in the way.
    pub fn find() -> Result<Groups, String> {
        let read =
            |path: &str| fs::read_to_string(path).map_err(|error| format!("{path}: {error}"));
        let (own, mounts) = (read("/proc/self/cgroup")?, read("/proc/self/mountinfo")?);
        let places = places(&own, &mounts)?;
        if let Places::Two(place) = &places {
            hand_on(place)?;
        }
        let groups = Groups(places);
        groups.sweep();
        // Tried once, so that the first task does not find out.
        groups.make(&Limits::default()).map(drop).map_err(|error| error.to_string())?;
        Ok(groups)
    }

    /// Which version of the kernel's interface it is.
    pub fn version(&self) -> u8 {
        match self.0 {
            Places::Two(_) => 2,
            Places::One { .. } => 1,
        }
    }

    /// Makes a group with these bounds.
    pub(super) fn make(&self, limits: &Limits) -> io::Result<Group> {
        let name = format!("{PREFIX}{}-{}", std::process::id(), unique_key());
        let memory = limits.memory_bytes.saturating_add(HELPER_BYTES).to_string();
        let processes = limits.processes.saturating_add(HELPER_PROCESSES).to_string();
        let mut group = Group { folders: Vec::new(), version: self.version() };
        match &self.0 {
            Places::Two(place) => {
                let folder = group.add(place, &name)?;
                fs::write(folder.join("memory.max"), &memory)?;
                fs::write(folder.join("pids.max"), &processes)?;
                // Not every kernel counts swap, or ends a group as one.
                let _ = fs::write(folder.join("memory.swap.max"), "0");
                let _ = fs::write(folder.join("memory.oom.group"), "1");
            }
            Places::One { memory: place, processes: other } => {
                let folder = group.add(place, &name)?;
                fs::write(folder.join("memory.limit_in_bytes"), &memory)?;
                let _ = fs::write(folder.join("memory.memsw.limit_in_bytes"), &memory);
                let folder = group.add(other, &name)?;
                fs::write(folder.join("pids.max"), &processes)?;
            }
        }
        Ok(group)
    }

    /// Removes what workers that were killed left behind. A worker that lives may have one that is still empty.
    fn sweep(&self) {
        let places: &[&PathBuf] = match &self.0 {
            Places::Two(place) => &[place],
            Places::One { memory, processes } => &[memory, processes],
        };
        for entry in places.iter().flat_map(fs::read_dir).flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let maker = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next());
            if maker.is_some_and(|maker| !Path::new("/proc").join(maker).exists()) {
                let _ = fs::remove_dir(entry.path());
            }
        }
    }
}

/// The group of one run.
#[derive(Debug)]
pub(super) struct Group {
    folders: Vec<PathBuf>,
    version: u8,
}

impl Group {
    fn add(&mut self, place: &Path, name: &str) -> io::Result<PathBuf> {
        let folder = place.join(name);
        fs::create_dir(&folder)?;
        self.folders.push(folder.clone());
        Ok(folder)
    }

    /// Puts a process into the group; what it starts later is in it, too.
    pub(super) fn take_in(&self, process: u32) -> io::Result<()> {
        self.folders
            .iter()
            .try_for_each(|folder| fs::write(folder.join("cgroup.procs"), process.to_string()))
    }

    /// Which bound was met, if one was.
    pub(super) fn met(&self) -> Option<&'static str> {
        let file = if self.version == 2 { "memory.events" } else { "memory.oom_control" };
        if self.counts(file, "oom_kill") > 0 {
            return Some("it used more memory than it may");
        }
        (self.counts("pids.events", "max") > 0).then_some("it started more processes than it may")
    }

    fn counts(&self, file: &str, name: &str) -> u64 {
        let texts =
            self.folders.iter().filter_map(|folder| fs::read_to_string(folder.join(file)).ok());
        let count = |text: String| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.and_then(|number| number.trim().parse::<u64>().ok()).unwrap_or(0)
        };
        texts.map(count).sum()
    }

    /// Ends whoever is left.
    fn end_all(folder: &Path) {
        if fs::write(folder.join("cgroup.kill"), "1").is_ok() {
            return;
        }
        let listed = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
        for process in listed.lines().filter_map(|line| Pid::from_raw(line.trim().parse().ok()?)) {
            let _ = rustix::process::kill_process(process, Signal::KILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for folder in &self.folders {
            for _ in 0..REMOVALS {
                match fs::remove_dir(folder) {
                    Ok(()) => break,
                    Err(error) if error.kind() == io::ErrorKind::NotFound => break,
                    Err(_) => Group::end_all(folder),
                }
                std::thread::sleep(REMOVAL_PAUSE);
            }
            if folder.exists() {
                tracing::warn!(group = %folder.display(), "a control group stays");
            }
        }
    }
}

/// Where this process is, by what the kernel tells of its groups and mounts.
fn places(own: &str, mounts: &str) -> Result<Places, String> {
    let one = |controller: &str| {
        let path = own.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let has = parts.next()?.split(',').any(|name| name == controller);
            parts.next().filter(|_| has)
        })?;
        place(path, mounts, |kind, options| {
            kind == "cgroup" && options.split(',').any(|option| option == controller)
        })
    };
    if let (Some(memory), Some(processes)) = (one("memory"), one("pids")) {
        return Ok(Places::One { memory, processes });
    }
    let path = own.lines().find_map(|line| line.strip_prefix("0::"));
    let two = path.and_then(|path| place(path, mounts, |kind, _| kind == "cgroup2"));
    two.map(Places::Two).ok_or_else(|| "this machine shows no control groups".to_owned())
}

/// The folder of a group: its path below the mount that fits.
fn place(path: &str, mounts: &str, fits: impl Fn(&str, &str) -> bool) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (front, back) = line.split_once(" - ")?;
        let front: Vec<&str> = front.split(' ').collect();
        let (root, mounted) = (*front.get(3)?, *front.get(4)?);
        let mut back = back.split(' ');
        let (kind, options) = (back.next()?, back.nth(1)?);
        let below = Path::new(path).strip_prefix(root).ok()?;
        let climbs = path.split('/').any(|part| part == "..");
        (fits(kind, options) && !climbs).then(|| Path::new(mounted).join(below))
    })
}

/// Lets groups below this one be bounded. Its own processes must go first; only if that is this one alone.
fn hand_on(place: &Path) -> Result<(), String> {
    let failed = |what: &str, error: io::Error| format!("{}/{what}: {error}", place.display());
    let controllers = place.join("cgroup.controllers");
    let given =
        fs::read_to_string(controllers).map_err(|error| failed("cgroup.controllers", error))?;
    let has = |name: &str| given.split_whitespace().any(|given| given == name);
    if !has("memory") || !has("pids") {
        return Err(format!("{} has no say over memory and processes", place.display()));
    }
    let control = place.join("cgroup.subtree_control");
    let allow = || fs::write(&control, "+memory +pids");
    let Err(first) = allow() else { return Ok(()) };
    let (procs, own) = (place.join("cgroup.procs"), place.join(OWN));
    let inside = fs::read_to_string(&procs).map_err(|error| failed("cgroup.procs", error))?;
    let me = std::process::id().to_string();
    if inside.split_whitespace().any(|process| process != me) {
        return Err(format!(
            "{}: {first}; other programs are in the worker's group, start it in one of its own (systemd: Delegate=yes)",
            place.display()
        ));
    }
    let _ = fs::create_dir(&own);
    fs::write(own.join("cgroup.procs"), &me).map_err(|error| failed(OWN, error))?;
    allow().map_err(|error| {
        let _ = fs::write(&procs, &me);
        failed("cgroup.subtree_control", error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "30 24 0:26 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
31 24 0:27 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids
32 24 0:28 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup rw";
    const NEW: &str =
        "32 24 0:28 / /sys/fs/cgroup rw,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate";

    #[test]
    fn x_12_the_workers_own_group_is_found_in_both_versions() {
        let own = "9:pids:/a\n4:memory:/b/c\n0::/\n";
        let found = places(own, OLD).unwrap();
        let (memory, processes) =
            ("/sys/fs/cgroup/memory/b/c".into(), "/sys/fs/cgroup/pids/a".into());
        assert_eq!(found, Places::One { memory, processes });
        let found = places("0::/system.slice/ikada.service\n", NEW).unwrap();
        assert_eq!(found, Places::Two("/sys/fs/cgroup/system.slice/ikada.service".into()));
        assert!(places("0::/../other\n", NEW).is_err(), "above what is shown");
        assert!(places("0::/a\n", "").is_err());
        let part = OLD.replace(" / /sys", " /b /sys");
        let found = places("9:pids:/b/a\n4:memory:/b/c\n", &part).unwrap();
        let (memory, processes) =
            ("/sys/fs/cgroup/memory/c".into(), "/sys/fs/cgroup/pids/a".into());
        assert_eq!(
            found,
            Places::One { memory, processes },
            "a container shows a part of the tree"
        );
    }

    #[test]
    fn x_12_a_group_has_the_bounds_of_its_run() {
        let tree = tempfile::tempdir().unwrap();
        let groups = Groups(Places::Two(tree.path().to_owned()));
        let limits = Limits { memory_bytes: 100 << 20, processes: 10, ..Limits::default() };
        let group = groups.make(&limits).unwrap();
        let folder = &group.folders[0];
        let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
        assert_eq!(read("memory.max"), ((100_u64 + 32) << 20).to_string());
        assert_eq!((read("pids.max").as_str(), read("memory.swap.max").as_str()), ("18", "0"));
        assert_eq!(group.met(), None);
        fs::write(folder.join("memory.events"), "max 4\noom 1\noom_kill 2\n").unwrap();
        assert_eq!(group.met(), Some("it used more memory than it may"));
        group.take_in(77).unwrap();
        assert_eq!(read("cgroup.procs"), "77");
        // These are plain files, which hold the folder; a kernel's are gone with it.
        let folder = folder.clone();
        fs::remove_dir_all(&folder).unwrap();
        drop(group);
    }

    #[test]
    fn x_12_groups_of_workers_that_are_gone_go_too() {
        let tree = tempfile::tempdir().unwrap();
        let groups = Groups(Places::Two(tree.path().to_owned()));
        let mine = format!("{PREFIX}{}-a", std::process::id());
        let names = ["ikada-run-4194305-a", mine.as_str(), "another"];
        names.iter().for_each(|name| fs::create_dir(tree.path().join(name)).unwrap());
        groups.sweep();
        let left: Vec<bool> = names.iter().map(|name| tree.path().join(name).exists()).collect();
        assert_eq!(left, [false, true, true]);
    }

    #[test]
    fn x_12_a_worker_among_others_says_why_it_has_no_groups() {
        let tree = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(tree.path().join(name), text).unwrap();
        write("cgroup.controllers", "cpu io\n");
        assert!(hand_on(tree.path()).unwrap_err().contains("no say"));
        write("cgroup.controllers", "cpu memory pids\n");
        assert_eq!(hand_on(tree.path()), Ok(()));
        assert_eq!(
            fs::read_to_string(tree.path().join("cgroup.subtree_control")).unwrap(),
            "+memory +pids"
        );
        fs::remove_file(tree.path().join("cgroup.subtree_control")).unwrap();
        fs::create_dir(tree.path().join("cgroup.subtree_control")).unwrap();
        write("cgroup.procs", "1\n2\n");
        assert!(hand_on(tree.path()).unwrap_err().contains("Delegate=yes"));
    }
}
