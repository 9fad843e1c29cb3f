//! Second helper: first process of the program's world. Restricts itself, starts the program, waits for its end or for the
//! worker's word, and takes everything with it.

use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::mount::{MountFlags, MountPropagationFlags};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};

use super::spec::{Isolation, Spec, Status};
use super::{EXIT_HELPER, filter, read_spec, reap, restrict, tell};

pub(super) fn supervise(path: &Path) -> ExitCode {
    // The control pipe tells as well; this is for a helper that is ended by itself.
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    let spec = match read_spec(path) {
        Ok(spec) => spec,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(EXIT_HELPER);
        }
    };
    // Both files are opened before the restrictions, which put them out of everyone's reach.
    let Ok(file) = File::create(&spec.status) else {
        return ExitCode::from(EXIT_HELPER);
    };
    let desk = Arc::new(Desk { file: Mutex::new(Some(file)), stopping: AtomicBool::new(false) });
    let stdin = File::open(&spec.stdin).map_err(not_started("standard input"));
    let child = match stdin.and_then(|stdin| prepare(&spec).and_then(|()| start(&spec, stdin))) {
        Ok(child) => child,
        Err(status) => {
            desk.leave_word(&status);
            return ExitCode::from(EXIT_HELPER);
        }
    };
    listen(desk.clone(), child, spec.limits.grace_ms, spec.inside);
    let status = wait(child);
    if !spec.inside {
        reap::end_descendants();
    }
    let stopped = desk.stopping.load(Ordering::Relaxed);
    desk.leave_word(if stopped { &Status::Stopped } else { &status });
    match status {
        Status::Exited(code) => ExitCode::from(code as u8),
        _ => ExitCode::from(EXIT_HELPER),
    }
}

/// Where the end is written down, once.
struct Desk {
    file: Mutex<Option<File>>,
    stopping: AtomicBool,
}

impl Desk {
    fn leave_word(&self, status: &Status) {
        if let Ok(mut place) = self.file.lock()
            && let Some(mut file) = place.take()
        {
            tell(&mut file, status);
        }
    }
}

/// Gives up everything that the program must not have.
fn prepare(spec: &Spec) -> Result<(), Status> {
    if spec.inside {
        mount_own_processes(spec)?;
    } else {
        let myself = rustix::process::getpid();
        rustix::process::set_child_subreaper(Some(myself)).map_err(not_started("subreaper"))?;
    }
    restrict::resources(&spec.limits).map_err(Status::NotStarted)?;
    if spec.isolation == Isolation::None {
        return Ok(());
    }
    let full = spec.isolation == Isolation::Full;
    let must = |name: &str, outcome: Result<(), String>| match outcome {
        Err(error) if full => Err(Status::NoIsolation(format!("{name}: {error}"))),
        _ => Ok(()),
    };
    must("rights", restrict::rights())?;
    must("landlock", restrict::files(&spec.readable, &[&spec.folder]))?;
    must("seccomp", filter::apply(spec.network))
}

/// Shows the program its own processes and nobody else's.
fn mount_own_processes(spec: &Spec) -> Result<(), Status> {
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    let own = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    let mounted = rustix::mount::mount_change("/", private)
        .and_then(|()| rustix::mount::mount("proc", "/proc", "proc", own, None));
    match mounted {
        // Containers may forbid it. Landlock still hides what other processes hold.
        Err(error) if spec.isolation == Isolation::Full => {
            Err(Status::NoIsolation(format!("an own /proc: {error}")))
        }
        _ => Ok(()),
    }
}

fn not_started<E: std::fmt::Display>(what: &'static str) -> impl Fn(E) -> Status {
    move |error| Status::NotStarted(format!("{what}: {error}"))
}

/// The program as it is to be started; its output streams are this process' own unless the caller says otherwise.
pub(super) fn command(spec: &Spec) -> Command {
    let own = std::ffi::OsStr::new("/proc/self/exe");
    let program = spec.program.as_deref().map_or(own, std::ffi::OsStr::new);
    let mut command = Command::new(program);
    command
        .args(&spec.arguments)
        .env_clear()
        .envs(spec.environment.iter().map(|(name, value)| (name, value)))
        .current_dir(&spec.folder)
        .process_group(0);
    command
}

/// Starts it.
pub(super) fn spawn(spec: &Spec, mut command: Command) -> Result<Pid, Status> {
    let child = command.spawn().map_err(|error| {
        let name = spec.program.as_deref().unwrap_or("the module's runner");
        Status::NotStarted(format!("{name}: {error}"))
    })?;
    Pid::from_raw(child.id() as i32).ok_or(Status::NotStarted("it has no process id".to_owned()))
}

fn start(spec: &Spec, stdin: File) -> Result<Pid, Status> {
    let mut command = command(spec);
    command.stdin(Stdio::from(stdin));
    spawn(spec, command)
}

/// How a process ended, if it has.
pub(super) fn status_of(status: WaitStatus) -> Option<Status> {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Some(Status::Exited(code)),
        (None, Some(signal)) => Some(Status::Signalled(signal)),
        (None, None) => None,
    }
}

/// Reaps everyone until the program itself has ended.
fn wait(child: Pid) -> Status {
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == child => {
                if let Some(status) = status_of(status) {
                    return status;
                }
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Status::NotStarted(format!("its end was not seen: {error}")),
        }
    }
}

/// Waits for the worker's word, or its death; then ends the program, politely first.
fn listen(desk: Arc<Desk>, child: Pid, grace_ms: u64, inside: bool) {
    let listener = move || {
        let control = std::io::stdin().as_fd().try_clone_to_owned().map(File::from);
        let mut word = [0];
        if let Ok(mut control) = control {
            // A word or the end of the pipe: both mean that it is over.
            let _ = control.read(&mut word);
        }
        desk.stopping.store(true, Ordering::Relaxed);
        let _ = rustix::process::kill_process_group(child, Signal::TERM);
        std::thread::sleep(Duration::from_millis(grace_ms));
        desk.leave_word(&Status::Stopped);
        if !inside {
            let _ = rustix::process::kill_process_group(child, Signal::KILL);
            reap::end_descendants();
        }
        // The first process of a world takes all others with it.
        std::process::exit(i32::from(EXIT_HELPER));
    };
    // Without a thread nobody listens; the worker then ends the group by force.
    let _ = std::thread::Builder::new().name("control".to_owned()).spawn(listener);
}
