//! The machine: how fast its disk syncs, what a process may open, whether ports are free. Its clock: `clock.rs`.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use super::Finding;

/// Writes that are made durable, one after the other.
const SYNCS: usize = 60;
/// About what one turn of a busy node writes.
const SYNC_BYTES: usize = 16 << 10;
/// A slower median makes every write slow.
const SYNC_DOUBTFUL: Duration = Duration::from_millis(10);
/// A slower median endangers elections, which sync votes.
const SYNC_BAD: Duration = Duration::from_millis(200);
/// Connections, peers, segments and blobs at a time.
const OPEN_FILES_MIN: u64 = 16_384;
const MEMORY_MIN_KIB: u64 = 1 << 20;
const PORT_PATIENCE: Duration = Duration::from_secs(1);

/// Measures syncs on the disk that holds, or will hold, the data folder.
pub(super) fn sync_speed(data: &Path) -> Finding {
    let check = "disk sync";
    let folder = existing(data);
    let times = match measure(&folder) {
        Ok(times) => times,
        Err(error) => {
            let seen = format!("{}: {error}", folder.display());
            return Finding::bad(check, seen, "give the node a folder that it may write to");
        }
    };
    let (median, slowest) = (times[times.len() / 2], times[times.len() - 1]);
    let seen = format!("{}: median {median:.1?}, slowest {slowest:.1?}", folder.display());
    if median >= SYNC_BAD {
        Finding::bad(check, seen, "use a local SSD: elections and every write wait for syncs")
    } else if median >= SYNC_DOUBTFUL {
        Finding::doubtful(check, seen, "every write waits for a sync: prefer a local SSD")
    } else {
        Finding::good(check, seen)
    }
}

/// The nearest folder that exists.
fn existing(path: &Path) -> PathBuf {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    whole.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("/")).to_owned()
}

fn measure(folder: &Path) -> std::io::Result<Vec<Duration>> {
    let path = folder.join(format!("doctor-{}.tmp", std::process::id()));
    let measured = File::create(&path).and_then(|mut file| {
        let piece = vec![7_u8; SYNC_BYTES];
        let mut times = Vec::with_capacity(SYNCS);
        for _ in 0..SYNCS {
            file.write_all(&piece)?;
            let begun = Instant::now();
            file.sync_data()?;
            times.push(begun.elapsed());
        }
        times.sort_unstable();
        Ok(times)
    });
    let removed = fs::remove_file(&path);
    measured.and_then(|times| removed.map(|()| times))
}

/// How many files a process may have open.
pub(super) fn open_files() -> Finding {
    let check = "open files";
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    match soft_limit(&limits, "Max open files") {
        None => Finding::doubtful(check, "the limit could not be read", "see `ulimit -n`"),
        Some(count) if count < OPEN_FILES_MIN => {
            let advice = "raise it: LimitNOFILE=65536 in a unit, or `ulimit -n 65536`";
            Finding::doubtful(check, format!("at most {count}"), advice)
        }
        Some(u64::MAX) => Finding::good(check, "no limit"),
        Some(count) => Finding::good(check, format!("at most {count}")),
    }
}

fn soft_limit(limits: &str, name: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
    match line.split_whitespace().next()? {
        "unlimited" => Some(u64::MAX),
        count => count.parse().ok(),
    }
}

/// Memory that is free for a node.
pub(super) fn memory() -> Finding {
    let check = "memory";
    let info = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = info.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib: Option<u64> = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    match kib {
        None => Finding::doubtful(check, "it could not be read", "give a node 1 GiB at least"),
        Some(kib) if kib < MEMORY_MIN_KIB => {
            let advice = "a node keeps all unfinished tasks in memory: 1 GiB at least";
            Finding::doubtful(check, format!("{} MiB available", kib >> 10), advice)
        }
        Some(kib) => Finding::good(check, format!("{} MiB available", kib >> 10)),
    }
}

/// Whether a node could listen here, or one does.
pub(super) async fn port(address: &str) -> Finding {
    let check = "port";
    let Err(error) = TcpListener::bind(address).await else {
        return Finding::good(check, format!("{address} is free"));
    };
    if timeout(PORT_PATIENCE, is_node(address)).await.unwrap_or(false) {
        return Finding::good(check, format!("{address} is a node's"));
    }
    let advice = "end the other program, choose another port, or name one with --listen";
    match error.kind() {
        // A peer port says nothing to strangers, so it cannot be told from other programs.
        std::io::ErrorKind::AddrInUse => {
            Finding::doubtful(check, format!("{address} is in use, not by a client door"), advice)
        }
        _ => Finding::bad(check, format!("{address}: {error}"), advice),
    }
}

/// Whether the client door of a node answers.
async fn is_node(address: &str) -> bool {
    let Ok(mut stream) = TcpStream::connect(address).await else { return false };
    let asked = format!("GET /healthz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    if stream.write_all(asked.as_bytes()).await.is_err() {
        return false;
    }
    let mut answer = Vec::new();
    let mut bounded = stream.take(4 << 10);
    bounded.read_to_end(&mut answer).await.is_ok() && answer.ends_with(b"ok\n")
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;

    #[test]
    fn limits_are_read() {
        let text = "Limit  Soft Limit  Hard Limit  Units\nMax open files            1024                 524288               files\nMax processes unlimited unlimited processes\n";
        assert_eq!(soft_limit(text, "Max open files"), Some(1024));
        assert_eq!(soft_limit(text, "Max processes"), Some(u64::MAX));
        assert_eq!(soft_limit(text, "Max size"), None);
    }

    #[test]
    fn a_disk_is_measured_and_left_clean() {
        let folder = tempfile::tempdir().unwrap();
        let finding = sync_speed(&folder.path().join("not/yet/there"));
        assert!(finding.seen.contains("median"), "{finding:?}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn a_port_in_use_is_told() {
        let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = taken.local_addr().unwrap().to_string();
        assert_eq!(port(&address).await.verdict, Verdict::Doubtful);
        drop(taken);
        assert_eq!(port(&address).await.verdict, Verdict::Good);
        assert_eq!(port("256.0.0.1:1").await.verdict, Verdict::Bad);
    }
}
