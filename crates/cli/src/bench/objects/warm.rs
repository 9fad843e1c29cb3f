//! Memory that was touched before, so that a page costs what clearing it costs.
//!
//! Where the machine is a guest, its host often finds a page only at its first touch, and takes back what was free for a while.
//! That costs ten times what clearing the page does, and none of it is the nodes' work: they would be measured by the machine's
//! history. So what is free is taken once before they grow, and given back bit by bit as they do.
//!
//! Promises: no more is taken than is free, and so much stays free that whoever grows need not wait. Leaves out: limits of a
//! control group, which is why it is done on request; and systems without `/proc`, where nothing is taken.

use std::fs::File;
use std::io::Write;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::fs::{MemfdFlags, memfd_create};

use crate::render::bar;

/// What is taken and given back at one time.
const PIECE_BYTES: u64 = 32 << 20;
/// What stays free, at least.
const FREE_BYTES: u64 = 768 << 20;
/// Most that is taken: what three nodes of a cluster grow by in some minutes.
const TAKEN_BYTES_MAX: u64 = 24 << 30;
/// How often it is looked whether the others need some: they take a tenth of what stays free in this time.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What was taken. Dropped, all of it is free again.
pub(super) struct Warm {
    bytes: u64,
    giving: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Warm {
    /// Takes what is free. It takes its time: up to half a minute where the host has to find the pages.
    pub(super) fn take() -> std::io::Result<Warm> {
        let free = free_bytes().unwrap_or(0).saturating_sub(FREE_BYTES).min(TAKEN_BYTES_MAX);
        let count = free / PIECE_BYTES;
        let bar = bar(count, "pieces of memory");
        let mut pieces = Vec::new();
        for _ in 0..count {
            pieces.push(touch()?);
            bar.inc(1);
        }
        bar.finish_and_clear();
        let (end, ended) = channel();
        let give = move || {
            while ended.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
                let lacking = FREE_BYTES.saturating_sub(free_bytes().unwrap_or(0));
                let left = pieces.len().saturating_sub(lacking.div_ceil(PIECE_BYTES) as usize);
                pieces.truncate(left);
            }
        };
        let giving = std::thread::Builder::new().name("bench-warm".into()).spawn(give)?;
        Ok(Warm { bytes: count * PIECE_BYTES, giving: Some((end, giving)) })
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Warm {
    fn drop(&mut self) {
        if let Some((end, giving)) = self.giving.take() {
            drop(end);
            let _ = giving.join();
        }
    }
}

/// A piece of memory, written to.
fn touch() -> std::io::Result<File> {
    let mut file = File::from(memfd_create("ikada-bench", MemfdFlags::CLOEXEC)?);
    let part = vec![1; 1 << 20];
    for _ in 0..PIECE_BYTES / part.len() as u64 {
        file.write_all(&part)?;
    }
    Ok(file)
}

/// What nobody uses; none where the system does not tell.
fn free_bytes() -> Option<u64> {
    free_of(&std::fs::read_to_string("/proc/meminfo").ok()?)
}

fn free_of(told: &str) -> Option<u64> {
    let line = told.lines().find_map(|line| line.strip_prefix("MemFree:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_memory_is_read_as_the_system_tells_it() {
        let told = "MemTotal:       24683780 kB\nMemFree:          428412 kB\nMemAvailable: 1 kB\n";
        assert_eq!(free_of(told), Some(428_412 << 10));
        assert_eq!(free_of("MemTotal: 1 kB\n"), None);
        assert_eq!(free_of("MemFree: many\n"), None);
    }

    #[test]
    fn a_piece_is_there_whole() {
        assert_eq!(touch().unwrap().metadata().unwrap().len(), PIECE_BYTES);
    }
}
