//! The thread that owns the log: appends what it is given, syncs once for all of it, says so.

use std::sync::mpsc::{Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use ikada_replica::Input;
use ikada_replica::consensus::{Io, IoRecord, Start};
use ikada_store::{Fault, Log, RealDisk, Record};
use tracing::error;

use super::message::{DriverMessage, DriverSender};
use crate::counters::SharedCounters;

/// Work for the log thread.
pub enum LogWork {
    /// Append these records.
    Append(Io),
    /// A durable snapshot covers the log up to here.
    Purge(u16, Start),
}

/// Starts the thread.
pub fn start(
    mut log: Log<RealDisk>,
    work: Receiver<LogWork>,
    driver: DriverSender,
    counters: SharedCounters,
) -> std::io::Result<thread::JoinHandle<()>> {
    thread::Builder::new().name("ikada-log".into()).spawn(move || {
        while let Ok(first) = work.recv() {
            match turn(&mut log, first, &work) {
                Ok((persisted, sync)) => {
                    counters.set_log(log.stats(), sync);
                    if let Some(sequence) = persisted
                        && driver.send(DriverMessage::Input(Input::Persisted(sequence))).is_err()
                    {
                        return;
                    }
                }
                Err(fault) => die(&fault),
            }
        }
    })
}

/// Takes all that waits, appends it in order, syncs once.
fn turn(
    log: &mut Log<RealDisk>,
    first: LogWork,
    work: &Receiver<LogWork>,
) -> Result<(Option<u64>, Duration), Fault> {
    let mut records = Vec::new();
    let mut purges = Vec::new();
    let mut persisted = None;
    let mut must_sync = false;
    let mut next = Some(first);
    while let Some(item) = next {
        match item {
            LogWork::Append(io) => {
                persisted = Some(io.seq);
                must_sync |= io.must_sync;
                convert(io.records, &mut records);
            }
            LogWork::Purge(shard, start) => purges.push((shard, start)),
        }
        next = work.try_recv().ok();
    }
    log.append(&records)?;
    let before = Instant::now();
    if must_sync {
        log.sync()?;
    }
    let sync = before.elapsed();
    let purged = !purges.is_empty();
    for (shard, start) in purges {
        log.purge(shard, start.index, start.term)?;
    }
    if purged {
        log.settle()?;
    }
    Ok((persisted, sync))
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
