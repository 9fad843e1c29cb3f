//! Ends whatever a program has left behind, where the kernel does not do it for us.

use rustix::process::{Pid, Signal, WaitOptions, kill_process, wait};

/// Rounds of looking and ending: each ends a generation, and limits bound how many there are.
const ROUNDS_MAX: usize = 1_000;

/// Ends all descendants of this process, until there are none.
pub(super) fn end_descendants() {
    for _ in 0..ROUNDS_MAX {
        let found = descendants();
        if found.is_empty() {
            return;
        }
        for pid in found {
            // Gone meanwhile is as good.
            let _ = kill_process(pid, Signal::KILL);
        }
        // Orphans come to us, their subreaper.
        while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

fn descendants() -> Vec<Pid> {
    let mut found = Vec::new();
    let mut open = vec![rustix::process::getpid()];
    while let Some(pid) = open.pop() {
        for child in children(pid) {
            if !found.contains(&child) {
                found.push(child);
                open.push(child);
            }
        }
    }
    found
}

/// Children of all threads of a process.
fn children(pid: Pid) -> Vec<Pid> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task"));
    let threads = threads.into_iter().flatten().flatten();
    let mut found = Vec::new();
    for thread in threads {
        let text = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        let numbers = text.split_ascii_whitespace().filter_map(|word| word.parse().ok());
        found.extend(numbers.filter_map(Pid::from_raw));
    }
    found
}
