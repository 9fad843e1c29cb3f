//! From requests to the file: a bounded queue and a thread of its own.
//!
//! A request only puts its note down. The thread is woken by the first of a group and sleeps while the others come, so
//! that a busy node pays for one waking and one sync a group, not one a request.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::files::Files;
use super::{Action, Note};
use crate::watch::wall_ms;

/// The folder, in the data folder.
pub const AUDIT_FOLDER: &str = "audit";
/// Notes that wait to be written.
const WAITING_MAX: usize = 65_536;
/// How long the first note of a group waits for others.
const GATHER: Duration = Duration::from_millis(200);
/// What stands for a status where nobody was answered.
const DONE: u16 = 200;
/// Lines that strangers get in one second.
const STRANGERS_PER_SECOND: u32 = 50;

/// The audit log of a node.
#[derive(Debug)]
pub struct AuditLog {
    shared: Arc<Shared>,
    strangers: Mutex<(Option<Instant>, u32)>,
}

#[derive(Debug, Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    news: Condvar,
    /// Not told of in a line yet.
    missing: AtomicU64,
    /// All since the start.
    lost: AtomicU64,
}

#[derive(Debug, Default)]
struct Waiting {
    notes: Vec<Note>,
    /// No more will come.
    closed: bool,
}

impl Shared {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that lines will not be there. What they told of others is told by the next.
    fn lose(&self, lines: u64, told: u64) {
        self.missing.fetch_add(lines + told, Ordering::Relaxed);
        self.lost.fetch_add(lines, Ordering::Relaxed);
    }

    /// Waits for a group of notes; none at the end.
    fn gather(&self) -> Option<Vec<Note>> {
        let idle = |waiting: &mut Waiting| waiting.notes.is_empty() && !waiting.closed;
        let waiting = self.news.wait_while(self.waiting(), idle);
        let waiting = waiting.unwrap_or_else(PoisonError::into_inner);
        let is_open = |waiting: &mut Waiting| !waiting.closed;
        let gathered = self.news.wait_timeout_while(waiting, GATHER, is_open);
        let (mut waiting, _) = gathered.unwrap_or_else(PoisonError::into_inner);
        let notes = std::mem::take(&mut waiting.notes);
        (!notes.is_empty()).then_some(notes)
    }
}

impl AuditLog {
    /// Opens the log and starts its thread, which ends when the log is dropped and all is written.
    pub fn open(folder: &Path) -> std::io::Result<(AuditLog, std::thread::JoinHandle<()>)> {
        let mut files = Files::open(folder)?;
        let shared = Arc::new(Shared::default());
        let writing = shared.clone();
        let thread =
            std::thread::Builder::new().name("ikada-audit".to_owned()).spawn(move || {
                while let Some(notes) = writing.gather() {
                    write(&mut files, &notes, &writing);
                }
            })?;
        Ok((AuditLog { shared, strangers: Mutex::default() }, thread))
    }

    /// Adds a note; never waits for the disk. Strangers get few lines.
    pub fn add(&self, note: Note) {
        if note.principal.is_none() && !self.admit_stranger() {
            self.shared.lose(1, 0);
            return;
        }
        self.add_deed(note);
    }

    /// Adds a note of what an operator did with the node's files: nobody called, and no stranger did.
    pub fn add_deed(&self, mut note: Note) {
        note.missing = self.shared.missing.swap(0, Ordering::Relaxed);
        let mut waiting = self.shared.waiting();
        if waiting.notes.len() >= WAITING_MAX {
            drop(waiting);
            self.shared.lose(1, note.missing);
            return;
        }
        let is_first = waiting.notes.is_empty();
        waiting.notes.push(note);
        drop(waiting);
        if is_first {
            self.shared.news.notify_one();
        }
    }

    /// Lines that are not in the log, since the start: too many came at once, or they could not be written.
    pub fn lost(&self) -> u64 {
        self.shared.lost.load(Ordering::Relaxed)
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

impl Drop for AuditLog {
    fn drop(&mut self) {
        self.shared.waiting().closed = true;
        self.shared.news.notify_one();
    }
}

/// Writes one line where no node runs: what an operator did with a data folder (X15, X18).
pub fn note_offline(data: &Path, action: &'static str, object: String) -> std::io::Result<()> {
    let note = Note::new(wall_ms(), Action::Other(action), DONE);
    Files::open(&data.join(AUDIT_FOLDER))?.append(&[Note { object: Some(object), ..note }])
}

/// Writes one group. What cannot be written is counted, and the next line that can be tells of it.
fn write(files: &mut Files, notes: &[Note], shared: &Shared) {
    if let Err(error) = files.append(notes) {
        let told = notes.iter().map(|note| note.missing).sum();
        shared.lose(notes.len() as u64, told);
        tracing::error!(%error, lines = notes.len(), "the audit log cannot be written");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::{Record, verify};
    use crate::auth::Principal;

    fn read(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        names.sort();
        names.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect()
    }

    fn note(action: &'static str) -> Note {
        let principal = Some(Arc::new(Principal::anyone()));
        Note { principal, ..Note::new(1, Action::Other(action), 200) }
    }

    /// Lines and what they tell of others.
    fn told(text: &str) -> u64 {
        verify(text).unwrap();
        let lines = text.lines().skip(1);
        lines.map(|line| serde_json::from_str::<Record>(&line[65..]).unwrap().missing + 1).sum()
    }

    #[test]
    fn x_15_the_chain_goes_on_over_restarts_and_torn_ends() {
        let folder = tempfile::tempdir().unwrap();
        for life in ["one", "two", "three"] {
            let (log, thread) = AuditLog::open(folder.path()).unwrap();
            log.add(note(life));
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
            log.add(Note::new(1, Action::Unknown, 401));
        }
        log.add(note("work"));
        assert!(log.lost() > 9_000);
        drop(log);
        thread.join().unwrap();
        let text = &read(folder.path())[0];
        assert!(verify(text).unwrap().0 < 1_000);
        assert_eq!(told(text), 10_001, "every request is a line or counted in one");
    }

    #[test]
    fn x_15_lines_that_could_not_be_written_are_told_of() {
        let folder = tempfile::tempdir().unwrap();
        let mut files = Files::open(folder.path()).unwrap();
        let shared = Arc::new(Shared::default());
        let log = AuditLog { shared: shared.clone(), strangers: Mutex::default() };
        for broken in [false, true, true, false] {
            let good = broken.then(|| files.break_it());
            (0..3).for_each(|_| log.add(note("work")));
            let notes = std::mem::take(&mut shared.waiting().notes);
            write(&mut files, &notes, &shared);
            good.into_iter().for_each(|good| files.mend_it(good));
        }
        assert_eq!((log.lost(), shared.missing.load(Ordering::Relaxed)), (6, 0));
        let text = &read(folder.path())[0];
        assert_eq!((verify(text).unwrap().0, told(text)), (6, 12), "{text}");
        let records = text.lines().skip(1).map(|line| serde_json::from_str(&line[65..]).unwrap());
        let missing: Vec<u64> = records.map(|record: Record| record.missing).collect();
        assert_eq!(missing, [0, 0, 0, 6, 0, 0], "told by the first line behind the gap");
    }
}
