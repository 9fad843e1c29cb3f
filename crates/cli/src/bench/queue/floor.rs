//! What the machine itself needs to keep one record on a majority of three disks: the least that a commit can take.
//!
//! One leader and two followers as threads: a record goes to both followers over loopback TCP while the leader syncs its
//! own copy; it counts once the leader and one follower have synced. One record at a time, with nothing else in the way.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use super::report::Line;
use crate::failure::Failure;

/// How long it is measured.
const LENGTH: Duration = Duration::from_secs(2);
/// A record, as long as the payloads that peers are measured with.
const RECORD: [u8; 100] = [0xa5; 100];
const FOLLOWERS: usize = 2;
/// More would be kept in memory for nothing.
const TIMES_MAX: usize = 1 << 20;

/// Measures it in a folder of its own, which goes again.
pub(super) fn measure() -> Result<(Line, Option<u64>), Failure> {
    let began = Instant::now();
    let times = run().map_err(|error| Failure::failed(format!("the disk's floor: {error}")))?;
    let seconds = began.elapsed().as_secs_f64();
    let what = "floor: one record on two of three disks".to_owned();
    let line = Line::rate(what, times.len() as u64, seconds).with_latencies(times);
    let p50 = line.p50_us();
    Ok((line, p50))
}

/// Microseconds of each record.
fn run() -> io::Result<Vec<u64>> {
    let folder = tempfile::tempdir()?;
    let (acknowledge, acknowledged) = channel();
    let mut links = Vec::new();
    for number in 0..FOLLOWERS {
        links.push(follow(folder.path(), number, acknowledge.clone())?);
    }
    lead(folder.path(), &mut links, &acknowledged)
}

/// Starts a follower and whoever hears its answers; both end when the link is closed.
fn follow(folder: &Path, number: usize, acknowledge: Sender<u64>) -> io::Result<TcpStream> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let link = TcpStream::connect(listener.local_addr()?)?;
    link.set_nodelay(true)?;
    let (mut served, _) = listener.accept()?;
    served.set_nodelay(true)?;
    let mut log = File::create(folder.join(format!("follower-{number}")))?;
    std::thread::spawn(move || -> io::Result<()> {
        let mut record = [0; RECORD.len()];
        loop {
            served.read_exact(&mut record)?;
            log.write_all(&record)?;
            log.sync_data()?;
            served.write_all(&[1])?;
        }
    });
    let mut answers = link.try_clone()?;
    std::thread::spawn(move || -> io::Result<()> {
        for count in 1.. {
            answers.read_exact(&mut [0])?;
            if acknowledge.send(count).is_err() {
                break;
            }
        }
        Ok(())
    });
    Ok(link)
}

fn lead(
    folder: &Path,
    links: &mut [TcpStream],
    acknowledged: &Receiver<u64>,
) -> io::Result<Vec<u64>> {
    let mut log = File::create(folder.join("leader"))?;
    let (began, mut times) = (Instant::now(), Vec::new());
    for count in 1.. {
        let sent = Instant::now();
        for link in links.iter_mut() {
            link.write_all(&RECORD)?;
        }
        log.write_all(&RECORD)?;
        log.sync_data()?;
        // The slower follower's answers to earlier records are of no use any more.
        while acknowledged.recv().map_err(|_| io::ErrorKind::BrokenPipe)? < count {}
        times.push(sent.elapsed().as_micros() as u64);
        if began.elapsed() >= LENGTH || times.len() >= TIMES_MAX {
            break;
        }
    }
    for link in links {
        link.shutdown(std::net::Shutdown::Both)?;
    }
    Ok(times)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_counted_and_timed() {
        let (line, p50) = measure().expect("a disk and loopback");
        assert!(line.tasks > 0 && p50.is_some());
    }
}
