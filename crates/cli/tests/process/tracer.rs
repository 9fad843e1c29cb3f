//! Disks that fail or are slow, by a tracer that meddles with system calls.
//!
//! Promise: a slow disk is slow for the log of one running node, from `SlowDisk::make` until it is dropped; nothing else
//! of the process is touched, so that whatever it still does, it does at its own speed.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::cluster::Cluster;
use crate::wait::until;

/// Whether processes can be traced here; says so if not.
pub fn is_there() -> bool {
    let probe = Command::new("strace")
        .args(["-f", "-o", "/dev/null", "-e", "inject=fdatasync:error=EIO:when=1000", "true"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    let is_there = probe.is_ok_and(|status| status.success());
    if !is_there {
        eprintln!("SKIPPED: strace is not installed or may not trace here; install it to run this");
    }
    is_there
}

/// A tracer that holds every sync of a node's log back.
pub struct SlowDisk {
    tracer: Child,
}

impl SlowDisk {
    /// From now on each sync takes so much longer. Nothing where a running process may not be traced.
    pub async fn make(cluster: &Cluster, node: u64, longer: Duration) -> Option<SlowDisk> {
        let process = cluster.process(node);
        let thread = until("the log's thread is found", || async { log_thread(process) }).await;
        let inject = format!("inject=fdatasync,fsync:delay_enter={}", longer.as_micros());
        let tracer = Command::new("strace")
            .args(["-p", &thread.to_string(), "-o", "/dev/null"])
            .args(["-e", "trace=fdatasync,fsync", "-e", &inject])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let mut disk = SlowDisk { tracer: tracer.expect("strace starts") };
        let attached = until("the tracer holds the thread", || {
            let ended = disk.tracer.try_wait().expect("a child").is_some();
            async move { (ended || is_traced(process, thread)).then_some(!ended) }
        });
        if !attached.await {
            eprintln!("SKIPPED: strace may not trace a running process here");
            return None;
        }
        Some(disk)
    }
}

impl Drop for SlowDisk {
    fn drop(&mut self) {
        // Asked kindly it lets go of the thread, also of one that it holds back at the moment.
        let order = format!("kill -TERM {}", self.tracer.id());
        let _ = Command::new("sh").args(["-c", &order]).status();
        let _ = self.tracer.wait();
    }
}

/// The thread that writes a node's log.
fn log_thread(process: u32) -> Option<u32> {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).ok()?;
    let named = |thread: &u32| {
        let name = std::fs::read_to_string(format!("/proc/{process}/task/{thread}/comm"));
        name.is_ok_and(|name| name.trim() == "ikada-log")
    };
    threads.filter_map(|thread| thread.ok()?.file_name().to_str()?.parse().ok()).find(named)
}

fn is_traced(process: u32, thread: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/task/{thread}/status"));
    let tracer = |line: &str| line.strip_prefix("TracerPid:").map(|id| id.trim().to_owned());
    status.is_ok_and(|text| text.lines().find_map(tracer).is_some_and(|id| id != "0"))
}
