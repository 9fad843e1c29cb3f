//! First helper: makes the world in which the program will live, starts the supervisor there, and waits for it.

use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, ExitCode};

use rustix::process::{getgid, getuid};
use rustix::thread::{CapabilitySet, CapabilitySets, UnshareFlags};

use super::spec::{GO, Isolation, Spec, Status, Walls};
use super::{EXIT_HELPER, SUPERVISE, filter, read_spec, restrict, tell};

pub(super) fn enter(path: &Path) -> ExitCode {
    let mut spec = match read_spec(path) {
        Ok(spec) => spec,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(EXIT_HELPER);
        }
    };
    if !told_to_go() {
        return ExitCode::from(EXIT_HELPER);
    }
    begin(path, &mut spec).unwrap_or_else(|status| {
        if let Ok(mut file) = File::create(&spec.status) {
            tell(&mut file, &status);
        }
        ExitCode::from(EXIT_HELPER)
    })
}

/// Waits for the worker's word; a closed pipe is none.
fn told_to_go() -> bool {
    let Ok(control) = std::io::stdin().as_fd().try_clone_to_owned() else {
        return false;
    };
    let mut word = [0];
    File::from(control).read_exact(&mut word).is_ok() && word == [GO]
}

fn begin(path: &Path, spec: &mut Spec) -> Result<ExitCode, Status> {
    if spec.isolation != Isolation::None {
        match make_namespaces(spec.network) {
            Ok(()) => spec.inside = true,
            Err(error) if spec.isolation == Isolation::Full => {
                return Err(Status::NoIsolation(format!("namespaces: {error}")));
            }
            Err(_) => {}
        }
    }
    let written = serde_json::to_vec(spec).map_err(std::io::Error::from);
    let written = written.and_then(|text| std::fs::write(path, text));
    written.map_err(|error| Status::NotStarted(format!("the order of the run: {error}")))?;
    let child = Command::new("/proc/self/exe").arg(SUPERVISE).arg(path).status();
    let status = child.map_err(|error| Status::NotStarted(format!("the supervisor: {error}")))?;
    Ok(ExitCode::from(status.code().map_or(EXIT_HELPER, |code| code as u8)))
}

/// Moves this process into a world of its own. What it starts next is that world's first process.
fn make_namespaces(network: bool) -> std::io::Result<()> {
    let (uid, gid) = (getuid().as_raw(), getgid().as_raw());
    let mut flags = UnshareFlags::NEWUSER
        | UnshareFlags::NEWPID
        | UnshareFlags::NEWNS
        | UnshareFlags::NEWIPC
        | UnshareFlags::NEWUTS
        | UnshareFlags::NEWCGROUP;
    flags.set(UnshareFlags::NEWNET, !network);
    #[expect(
        deprecated,
        reason = "unsound only with FILES, which is not asked for; the other form is unsafe"
    )]
    rustix::thread::unshare(flags)?;
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
    std::fs::write("/proc/self/gid_map", format!("{gid} {gid} 1"))?;
    // Root of this world without being root: the right to mount survives the next exec, and nothing else does.
    let mount = CapabilitySet::SYS_ADMIN;
    let sets = CapabilitySets { effective: mount, permitted: mount, inheritable: mount };
    rustix::thread::set_capabilities(None, sets)?;
    rustix::thread::configure_capability_in_ambient_set(mount, true)?;
    Ok(())
}

/// Tries every wall on this process and prints which stand.
pub(super) fn probe() -> ExitCode {
    let mut walls = Walls::default();
    let mut note = |name: &str, outcome: Result<(), String>| match outcome {
        Ok(()) => true,
        Err(error) => {
            walls.missing.push(format!("{name}: {error}"));
            false
        }
    };
    let namespaces = note("namespaces", make_namespaces(false).map_err(|error| error.to_string()));
    let landlock = note("landlock", restrict::files(&[], &[]));
    let seccomp = note("seccomp", filter::apply(false));
    (walls.namespaces, walls.landlock, walls.seccomp) = (namespaces, landlock, seccomp);
    match serde_json::to_string(&walls) {
        Ok(text) => println!("{text}"),
        Err(error) => eprintln!("{error}"),
    }
    ExitCode::SUCCESS
}
