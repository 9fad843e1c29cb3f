//! The companion of a command that runs under a lease: this binary once more, between the runner and the command.
//!
//! It leads the process group that the command lives in. Promises: when the command ends, whatever it left running in the group
//! is killed before the runner hears of the end, so that a lease is given back only by those who do nothing more under
//! it; when the runner dies, even by SIGKILL, the whole group is killed. Leaves out: who moves to a group or session of
//! its own escapes; the fence is for what such a process writes to.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus};

use rustix::process::{
    Pid, Signal, getpgid, getpid, getppid, kill_process_group, set_parent_process_death_signal,
    setpgid,
};
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};

/// First word of the companion's command line. Nobody types it.
pub(super) const COMPANION: &str = "lease-companion";
/// What the companion is told when the runner has died; nothing else sends it.
const RUNNER_DIED: Signal = Signal::USR2;
/// Exit codes for a command that is not there, and for one that cannot be run, as shells have them.
const NOT_FOUND: u8 = 127;
const NOT_RUN: u8 = 126;

/// Runs as a companion if the command line says so: the runner's id, then the command.
pub(crate) fn companion() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != COMPANION {
        return None;
    }
    let runner = arguments.next()?.to_str()?.parse().ok().and_then(Pid::from_raw)?;
    let command: Vec<OsString> = arguments.collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let ended = runtime.and_then(|runtime| runtime.block_on(accompany(runner, &command)));
    Some(ended.unwrap_or_else(|error| {
        let program = command.first().map_or("the command".into(), |word| word.to_string_lossy());
        eprintln!("ikada: {program} could not be started: {error}");
        let is_missing = error.kind() == std::io::ErrorKind::NotFound;
        ExitCode::from(if is_missing { NOT_FOUND } else { NOT_RUN })
    }))
}

async fn accompany(runner: Pid, command: &[OsString]) -> std::io::Result<ExitCode> {
    let mut died = signal(SignalKind::user_defined2())?;
    // Requests to stop go to the whole group: the command answers them, the companion stays until it has.
    let _heard = [signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?];
    set_parent_process_death_signal(Some(RUNNER_DIED))?;
    if getppid() != Some(runner) {
        // It died before it could be watched.
        return Ok(ExitCode::FAILURE);
    }
    let Some((program, arguments)) = command.split_first() else {
        return Err(std::io::Error::other("no command was named"));
    };
    let mut child = Command::new(program).args(arguments).spawn()?;
    let status = tokio::select! {
        status = child.wait() => Some(status?),
        _ = died.recv() => None,
    };
    let Some(status) = status else {
        // Takes the companion along.
        kill_process_group(getpid(), Signal::KILL)?;
        return Ok(ExitCode::FAILURE);
    };
    end_the_rest(runner);
    Ok(ExitCode::from(code_of(status)))
}

/// Kills what the command left behind. The companion leaves the group first; the group keeps its number as long as the companion lives.
fn end_the_rest(runner: Pid) {
    let left = getpgid(Some(runner)).and_then(|group| setpgid(None, Some(group)));
    if left.is_ok() {
        // Nobody may be left.
        let _ = kill_process_group(getpid(), Signal::KILL);
    }
}

/// The command's own exit code; 128 and the number of the signal that ended it.
pub(super) fn code_of(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}
