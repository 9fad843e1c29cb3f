//! From requests to the file: a bounded queue and a thread of its own.
//!
//! A request only puts its note down. The thread is woken by the first of a group and sleeps while the others come, so
//! that a busy node pays for one waking and one sync a group, not one a request. Whoever waits for its line wakes it at once.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::files::Files;
use super::{Action, Note};
use crate::watch::wall_ms;

/// The folder, in the data folder.
pub const AUDIT_FOLDER: &str = "audit";
/// Notes that wait to be written.
const WAITING_MAX: usize = 65_536;
/// How long the first note of a group waits for others.
const GATHER: Duration = Duration::from_millis(200);
/// How long a call waits for its line: a disk that hangs must not take those along who would mend it.
const SYNC_PATIENCE: Duration = Duration::from_secs(5);
/// What stands for a status where nobody was answered.
const DONE: u16 = 200;
/// What callers are told who are not let in.
const DENIED: [u16; 2] = [401, 403];
/// Denials are counted for this long.
const WINDOW: Duration = Duration::from_secs(60);
/// Lines that all strangers together get in that time: less than 120 MB a day.
const STRANGERS_MAX: u32 = 300;
/// Lines that denials of one caller get in that time: less than 60 MB a day.
const DENIALS_MAX: u32 = 120;
/// Callers whose denials are counted at once; those of others leave no line until there is room.
const DENIED_MAX: usize = 1_024;

/// The audit log of a node.
#[derive(Debug)]
pub struct AuditLog {
    shared: Arc<Shared>,
    denials: Mutex<Denials>,
}

/// Who was denied how often of late, so that nobody can push the lines of others out of the log.
#[derive(Debug, Default)]
struct Denials {
    strangers: Count,
    callers: HashMap<String, Count>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Count {
    since: Option<Instant>,
    lines: u32,
}

impl Count {
    fn is_over(&self, now: Instant) -> bool {
        self.since.is_none_or(|since| now.saturating_duration_since(since) >= WINDOW)
    }

    /// Whether another line fits.
    fn takes(&mut self, max: u32, now: Instant) -> bool {
        if self.is_over(now) {
            *self = Count { since: Some(now), lines: 0 };
        }
        self.lines = self.lines.saturating_add(1);
        self.lines <= max
    }
}

impl Denials {
    /// Whether a denial of this caller gets a line.
    fn admit(&mut self, caller: Option<&str>, now: Instant) -> bool {
        let Some(name) = caller else { return self.strangers.takes(STRANGERS_MAX, now) };
        if let Some(count) = self.callers.get_mut(name) {
            return count.takes(DENIALS_MAX, now);
        }
        if self.callers.len() >= DENIED_MAX {
            self.callers.retain(|_, count| !count.is_over(now));
        }
        let fits = self.callers.len() < DENIED_MAX;
        if fits {
            self.callers.entry(name.to_owned()).or_default().takes(DENIALS_MAX, now);
        }
        fits
    }
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

/// Told when all that was noted before it is written.
type Waiter = oneshot::Sender<()>;

#[derive(Debug, Default)]
struct Waiting {
    notes: Vec<Note>,
    /// Those who wait for their lines. They are released when these were written, or lost and counted.
    waiters: Vec<Waiter>,
    /// No more will come.
    closed: bool,
}

impl Waiting {
    fn is_empty(&self) -> bool {
        self.notes.is_empty() && self.waiters.is_empty()
    }
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

    /// Waits for a group of notes, and those who wait for it; none at the end.
    fn gather(&self) -> Option<(Vec<Note>, Vec<Waiter>)> {
        let idle = |waiting: &mut Waiting| waiting.is_empty() && !waiting.closed;
        let waiting = self.news.wait_while(self.waiting(), idle);
        let waiting = waiting.unwrap_or_else(PoisonError::into_inner);
        let is_open = |waiting: &mut Waiting| !waiting.closed && waiting.waiters.is_empty();
        let gathered = self.news.wait_timeout_while(waiting, GATHER, is_open);
        let (mut waiting, _) = gathered.unwrap_or_else(PoisonError::into_inner);
        let is_empty = waiting.is_empty();
        let group = (std::mem::take(&mut waiting.notes), std::mem::take(&mut waiting.waiters));
        (!is_empty).then_some(group)
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
                while let Some((notes, waiters)) = writing.gather() {
                    write(&mut files, &notes, &writing);
                    for waiter in waiters {
                        // Whoever no longer waits needs no answer.
                        let _ = waiter.send(());
                    }
                }
            })?;
        Ok((AuditLog { shared, denials: Mutex::default() }, thread))
    }

    /// Adds a note; never waits for the disk. Strangers, and denials of one caller, get few lines.
    pub fn add(&self, note: Note) {
        let caller = note.principal.as_ref().map(|principal| principal.name.as_str());
        if caller.is_none() || DENIED.contains(&note.status) {
            let mut denials = self.denials.lock().unwrap_or_else(PoisonError::into_inner);
            if !denials.admit(caller, Instant::now()) {
                self.shared.lose(1, 0);
                return;
            }
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

    /// Waits until all that was noted so far is on the disk, or counted as lost; no longer than a caller can wait.
    pub async fn synced(&self) {
        let (waiter, written) = oneshot::channel();
        // Without a note of its own it still waits for the group that is being written.
        self.shared.waiting().waiters.push(waiter);
        self.shared.news.notify_one();
        let _ = tokio::time::timeout(SYNC_PATIENCE, written).await;
    }

    /// Lines that are not in the log, since the start: too many came at once, or they could not be written.
    pub fn lost(&self) -> u64 {
        self.shared.lost.load(Ordering::Relaxed)
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
    if notes.is_empty() {
        return;
    }
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
        assert_eq!((files.len(), verify(&files[0]).unwrap().0), (1, 3), "one file, one chain");
        let newest = folder.path().join("00000001.log");
        let mut torn = std::fs::read(&newest).unwrap();
        torn.extend_from_slice(b"0123 {\"torn \xff");
        std::fs::write(&newest, torn).unwrap();
        let (log, thread) = AuditLog::open(folder.path()).unwrap();
        log.add(note("four"));
        drop(log);
        thread.join().unwrap();
        let files = read(folder.path());
        assert_eq!((files.len(), verify(&files[0]).unwrap().0), (1, 4), "{}", files[0]);
    }

    #[tokio::test]
    async fn x_15_whoever_waits_for_a_line_finds_it_on_the_disk() {
        let folder = tempfile::tempdir().unwrap();
        let (log, thread) = AuditLog::open(folder.path()).unwrap();
        for count in 1..=20 {
            log.add(note("work"));
            log.synced().await;
            assert_eq!(verify(&read(folder.path())[0]).unwrap().0, count);
            log.synced().await;
        }
        drop(log);
        thread.join().unwrap();
    }

    // X15: a caller with a good token cannot push the lines of others out by being refused.
    #[test]
    fn x_15_denials_of_one_caller_get_few_lines_and_others_keep_theirs() {
        let folder = tempfile::tempdir().unwrap();
        let (log, thread) = AuditLog::open(folder.path()).unwrap();
        let by = |name: &str, status| {
            let name = name.to_owned();
            let principal = Some(Arc::new(Principal { name, ..Principal::anyone() }));
            Note { principal, ..Note::new(1, Action::Unknown, status) }
        };
        (0..10_000).for_each(|_| log.add(by("noisy", 403)));
        assert_eq!(log.lost(), 10_000 - u64::from(DENIALS_MAX));
        (0..1_000).for_each(|_| log.add(by("noisy", 200)));
        log.add(by("quiet", 403));
        assert_eq!(log.lost(), 10_000 - u64::from(DENIALS_MAX), "work and others get theirs");
        drop(log);
        thread.join().unwrap();
        assert_eq!(told(&read(folder.path())[0]), 11_001);
    }

    #[test]
    fn x_15_denials_are_counted_anew_after_a_while_and_for_so_many_callers() {
        let (mut denials, now) = (Denials::default(), Instant::now());
        let taken = (0..1_000).filter(|_| denials.admit(Some("a"), now)).count();
        assert_eq!(taken, DENIALS_MAX as usize);
        assert!(!denials.admit(Some("a"), now + WINDOW / 2));
        assert!(denials.admit(Some("a"), now + WINDOW));
        let later = now + WINDOW;
        let names = (0..DENIED_MAX * 2).map(|number| format!("caller {number}"));
        let admitted = names.filter(|name| denials.admit(Some(name), later)).count();
        assert_eq!((admitted, denials.callers.len()), (DENIED_MAX - 1, DENIED_MAX));
        assert!(denials.admit(Some("new"), later + WINDOW), "there is room again");
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
        let log = AuditLog { shared: shared.clone(), denials: Mutex::default() };
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
