//! From requests to the file: a bounded queue and a thread of its own.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::Record;
use super::files::Files;

/// The folder, in the data folder.
pub const AUDIT_FOLDER: &str = "audit";
/// Records that wait to be written.
const WAITING_MAX: usize = 65_536;
/// Records written with one sync.
const BATCH_MAX: usize = 8_192;
/// How long the first record of a batch waits for others.
const GATHER: Duration = Duration::from_millis(50);
/// Lines that strangers get in one second.
const STRANGERS_PER_SECOND: u32 = 50;

/// The audit log of a node.
#[derive(Debug)]
pub struct AuditLog {
    sender: SyncSender<Record>,
    missing: AtomicU64,
    strangers: Mutex<(Option<Instant>, u32)>,
}

impl AuditLog {
    /// Opens the log and starts its thread, which ends when the log is dropped and all is written.
    pub fn open(folder: &Path) -> std::io::Result<(AuditLog, std::thread::JoinHandle<()>)> {
        let files = Files::open(folder)?;
        let (sender, records) = sync_channel(WAITING_MAX);
        let thread = std::thread::Builder::new()
            .name("ikada-audit".to_owned())
            .spawn(move || write_all(files, &records))?;
        let log = AuditLog { sender, missing: AtomicU64::new(0), strangers: Mutex::default() };
        Ok((log, thread))
    }

    /// Adds a record; never waits.
    pub fn add(&self, mut record: Record) {
        if record.principal.is_none() && !self.admit_stranger() {
            self.missing.fetch_add(1, Ordering::Relaxed);
            return;
        }
        record.missing = self.missing.swap(0, Ordering::Relaxed);
        if let Err(TrySendError::Full(record) | TrySendError::Disconnected(record)) =
            self.sender.try_send(record)
        {
            self.missing.fetch_add(record.missing + 1, Ordering::Relaxed);
        }
    }

    /// Records that are not in the log and not told of in it yet.
    pub fn missing(&self) -> u64 {
        self.missing.load(Ordering::Relaxed)
    }

    fn admit_stranger(&self) -> bool {
        let mut strangers = self.strangers.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, count) = &mut *strangers;
        if since.is_none_or(|since| since.elapsed() >= Duration::from_secs(1)) {
            (*since, *count) = (Some(Instant::now()), 0);
        }
        *count += 1;
        *count <= STRANGERS_PER_SECOND
    }
}

fn write_all(mut files: Files, records: &Receiver<Record>) {
    while let Ok(first) = records.recv() {
        let mut batch = vec![print(&first)];
        let until = Instant::now() + GATHER;
        while batch.len() < BATCH_MAX {
            match records.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(record) => batch.push(print(&record)),
                Err(_) => break,
            }
        }
        if let Err(error) = files.append(&batch) {
            tracing::error!(%error, lines = batch.len(), "the audit log cannot be written");
        }
    }
}

fn print(record: &Record) -> String {
    serde_json::to_string(record).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::verify;

    fn read(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        names.sort();
        names.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect()
    }

    fn record(action: &str) -> Record {
        let principal = Some("ann".to_owned());
        Record { principal, action: action.to_owned(), ..Record::default() }
    }

    #[test]
    fn x_15_the_chain_goes_on_over_restarts_and_torn_ends() {
        let folder = tempfile::tempdir().unwrap();
        for life in 0..3 {
            let (log, thread) = AuditLog::open(folder.path()).unwrap();
            log.add(record(&format!("life{life}")));
            drop(log);
            thread.join().unwrap();
        }
        let files = read(folder.path());
        let ends: Vec<_> = files.iter().map(|text| verify(text).unwrap()).collect();
        assert!(ends.iter().all(|(records, _, _)| *records == 1));
        assert!(ends.windows(2).all(|pair| pair[0].2 == pair[1].1), "each goes on from the last");
        let newest = folder.path().join("00000003.log");
        let mut torn = std::fs::read(&newest).unwrap();
        torn.extend_from_slice(b"0123 {\"torn");
        std::fs::write(&newest, torn).unwrap();
        let (log, thread) = AuditLog::open(folder.path()).unwrap();
        drop(log);
        thread.join().unwrap();
        assert_eq!(verify(&read(folder.path())[3]).unwrap().1, ends[2].2);
    }

    #[test]
    fn x_15_strangers_cannot_fill_the_disk_and_gaps_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let (log, thread) = AuditLog::open(folder.path()).unwrap();
        for _ in 0..10_000 {
            log.add(Record { action: "knock".to_owned(), ..Record::default() });
        }
        log.add(record("work"));
        drop(log);
        thread.join().unwrap();
        let text = &read(folder.path())[0];
        assert!(verify(text).unwrap().0 < 1_000);
        let told: u64 = text
            .lines()
            .skip(1)
            .map(|line| serde_json::from_str::<Record>(&line[65..]).unwrap().missing + 1)
            .sum();
        assert_eq!(told, 10_001, "every request is a line or counted in one");
    }
}
