//! Programs that outlived whoever looked after them: found by what their environment says, and ended.
//!
//! A helper that is killed takes its command along only where there are namespaces or control groups. Without them the
//! command is an orphan in a group of its own; every process of it was born with the address of its outputs, which no other
//! run has at the same time. Leaves out: a process that threw its environment away before it began another.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getpid, kill_process};

/// The variable by which they are known.
pub(super) const MARK: &str = "IKADA_OUT";
/// How long to wait between looks.
const PAUSE: Duration = Duration::from_millis(20);
/// Looks that must find nobody: one that is just being started has no environment for a moment.
const EMPTY_LOOKS: u32 = 2;
/// How long they are ended again and again before that is given up.
const EFFORT: Duration = Duration::from_secs(10);

/// Waits until nobody of a run lives who was told where these outputs go; after that long, ends whoever does. Tells whether all are gone.
pub(super) fn end_strays(outputs: &Path, patience: Duration) -> bool {
    let mut mark = format!("{MARK}=").into_bytes();
    mark.extend_from_slice(outputs.as_os_str().as_bytes());
    let (begun, mut empty_looks) = (Instant::now(), 0);
    while begun.elapsed() < patience + EFFORT {
        let found = strays(&mark);
        empty_looks = if found.is_empty() { empty_looks + 1 } else { 0 };
        if empty_looks == EMPTY_LOOKS {
            return true;
        }
        if begun.elapsed() >= patience {
            for process in found {
                // Gone meanwhile is as good.
                let _ = kill_process(process, Signal::KILL);
            }
        }
        sleep(PAUSE);
    }
    tracing::warn!(outputs = %outputs.display(), "programs of a run that is over could not be ended");
    false
}

/// Processes that were born with this word in their environment.
fn strays(mark: &[u8]) -> Vec<Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes =
        entries.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?));
    let bears = |process: &Pid| {
        let words = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
        words.split(|byte| *byte == 0).any(|word| word == mark)
    };
    processes.filter(|process| *process != getpid() && bears(process)).collect()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn b4_30_only_programs_of_the_run_are_ended_and_only_when_they_had_their_time() {
        let start = |outputs: &str| {
            let mut command = Command::new("sleep");
            command.arg("4717.5").env_clear().env("PATH", "/usr/bin:/bin").env(MARK, outputs);
            command.spawn().unwrap()
        };
        let (mut mine, mut other) = (start("/nowhere/a/task/out"), start("/nowhere/ab/task/out"));
        let reaper = std::thread::spawn(move || {
            let begun = Instant::now();
            (mine.wait().unwrap(), begun.elapsed())
        });
        assert!(end_strays(Path::new("/nowhere/a/task/out"), Duration::from_millis(300)));
        let (status, lived) = reaper.join().unwrap();
        assert!(!status.success() && lived >= Duration::from_millis(200), "{status} {lived:?}");
        assert!(other.try_wait().unwrap().is_none(), "another run goes on");
        other.kill().unwrap();
        other.wait().unwrap();
    }
}
