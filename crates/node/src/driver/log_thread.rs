//! The thread that owns the log: appends what it is given, syncs once for all of it, says so. A full disk it waits out.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

use ikada_replica::Input;
use ikada_replica::consensus::{Io, IoRecord, Start};
use ikada_store::{Fault, Log, RealDisk, Record};
use tracing::{error, info, warn};

use super::message::{DriverMessage, DriverSender};
use crate::counters::SharedCounters;

/// Work for the log thread.
pub enum LogWork {
    /// Append these records.
    Append(Io),
    /// A durable snapshot covers the log up to here.
    Purge(u16, Start),
}

/// How often a disk without room is looked at.
const ROOM_LOOK: Duration = Duration::from_millis(200);

/// The log and what waits for it.
struct LogThread {
    log: Log<RealDisk>,
    work: Receiver<LogWork>,
    driver: DriverSender,
    counters: SharedCounters,
    /// Batches that were taken and not written.
    appends: VecDeque<Io>,
    /// Prefixes to give up.
    purges: Vec<(u16, Start)>,
    /// What the driver was last told of the disk's room.
    is_low: bool,
}

/// Starts the thread.
pub fn start(
    log: Log<RealDisk>,
    work: Receiver<LogWork>,
    driver: DriverSender,
    counters: SharedCounters,
) -> std::io::Result<thread::JoinHandle<()>> {
    let (appends, purges) = (VecDeque::new(), Vec::new());
    let mut thread = LogThread { log, work, driver, counters, appends, purges, is_low: false };
    thread::Builder::new()
        .name("ikada-log".into())
        .spawn(move || while thread.wait() && thread.turn().unwrap_or_else(|fault| die(&fault)) {})
}

/// Those that tell something answer whether anybody is there to hear it.
impl LogThread {
    fn tell(&self, input: Input) -> bool {
        self.driver.send(DriverMessage::Input(input)).is_ok()
    }

    /// Says whether there is room, when that has changed.
    fn tell_room(&mut self) -> Result<bool, Fault> {
        let is_low = !self.log.make_spare()?;
        if is_low == self.is_low {
            return Ok(true);
        }
        self.is_low = is_low;
        self.counters.set_disk_low(is_low);
        if is_low {
            warn!(
                "the disk is nearly full: nothing new is taken, what is under way goes on from the log's reserve"
            );
        } else {
            info!("the disk has room again");
        }
        Ok(self.tell(Input::DiskLow(is_low)))
    }

    /// Waits for work, and not for long while the disk's room is watched; takes all there is. False when no more comes.
    fn wait(&mut self) -> bool {
        let first = match self.is_low {
            true => self.work.recv_timeout(ROOM_LOOK),
            false => self.work.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match first {
            Ok(work) => self.take(work),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return false,
        }
        // What was taken is written even if it was the last.
        self.gather();
        true
    }

    fn take(&mut self, work: LogWork) {
        match work {
            LogWork::Append(io) => self.appends.push_back(io),
            LogWork::Purge(shard, start) => self.purges.push((shard, start)),
        }
    }

    /// Takes all that waits. False when no more comes.
    fn gather(&mut self) -> bool {
        loop {
            match self.work.try_recv() {
                Ok(work) => self.take(work),
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
    }

    /// Appends what was taken, in order, syncs once, gives up what may go.
    fn turn(&mut self) -> Result<bool, Fault> {
        let mut records = Vec::new();
        let mut persisted = None;
        let mut must_sync = false;
        for io in self.appends.drain(..) {
            persisted = Some(io.seq);
            must_sync |= io.must_sync;
            convert(io.records, &mut records);
        }
        if !self.append(&records)? {
            return Ok(false);
        }
        let before = Instant::now();
        if must_sync {
            self.log.sync()?;
        }
        let sync = before.elapsed();
        self.purge(&[])?;
        self.counters.set_log(self.log.stats(), sync);
        let heard = persisted.is_none_or(|sequence| self.tell(Input::Persisted(sequence)));
        Ok(heard && self.tell_room()?)
    }

    /// Writes a batch. On a full disk nothing of it was written, and nothing else may go before it but what makes room:
    /// it waits for that as long as it takes.
    fn append(&mut self, records: &[Record]) -> Result<bool, Fault> {
        loop {
            match self.log.append(records) {
                Err(fault) if fault.is_retryable() => {}
                written => return written.map(|()| true),
            }
            // A log that is about to begin anew elsewhere must not be cut short before.
            let restarts = records.iter().filter_map(|record| match record {
                Record::Start { shard, .. } => Some(*shard),
                _ => None,
            });
            let restarts: Vec<u16> = restarts.collect();
            self.purge(&restarts)?;
            if !self.tell_room()? || !self.gather() {
                return Ok(false);
            }
            thread::sleep(ROOM_LOOK);
        }
    }

    /// Gives up what snapshots cover, but for these shards. What the disk has no room to note is kept for the next time.
    fn purge(&mut self, except: &[u16]) -> Result<(), Fault> {
        let mut kept = Vec::new();
        let mut purged = false;
        for (shard, start) in std::mem::take(&mut self.purges) {
            if except.contains(&shard) {
                kept.push((shard, start));
                continue;
            }
            match self.log.purge(shard, start.index, start.term) {
                Err(fault) if fault.is_retryable() => kept.push((shard, start)),
                result => result?,
            }
            purged = true;
        }
        self.purges = kept;
        if purged { self.log.settle() } else { Ok(()) }
    }
}

fn convert(records: Vec<IoRecord>, out: &mut Vec<Record>) {
    for record in records {
        match record {
            IoRecord::Hard { shard, term, vote, commit } => {
                out.push(Record::Hard { shard, term, vote, commit });
            }
            IoRecord::Append { shard, entries } => {
                out.extend(entries.into_iter().map(|entry| Record::Entry {
                    shard,
                    term: entry.term,
                    index: entry.index,
                    kind: entry.kind.number(),
                    data: entry.data,
                    context: entry.context,
                }));
            }
            IoRecord::Restart { shard, start } => {
                out.push(Record::Start { shard, index: start.index, term: start.term });
            }
        }
    }
}

/// After a failed write or sync nothing may be assumed about the file: the process ends and reads the disk anew.
fn die(fault: &Fault) -> ! {
    error!(%fault, "the log failed; stopping at once, a restart will read the disk and catch up from peers");
    eprintln!(
        "ikada: {fault}; stopping at once, a restart will read the disk and catch up from peers"
    );
    std::process::exit(70);
}

/// Sends work; false when the thread is gone.
pub fn send(to: &Sender<LogWork>, work: LogWork) -> bool {
    to.send(work).is_ok()
}
