//! The thread for bulk work on snapshot files.

use std::collections::BTreeMap;
use std::sync::mpsc::Receiver;
use std::thread;

use bytes::Bytes;
use ikada_replica::consensus::Start;
use ikada_replica::state::Lsn;
use ikada_replica::{Input, SnapshotDone, SnapshotWork};
use ikada_store::{Manifest, RealDisk, SnapshotError, SnapshotWriter, Snapshots};
use tracing::{info, warn};

use super::message::{DriverMessage, DriverSender};
use crate::boot::load_state;
use crate::config::SNAPSHOTS_KEPT;
use crate::counters::SharedCounters;

/// How far this thread stands behind the others: it has about a tenth of what one of them gets when all want more.
const NICE: i32 = 10;

/// Snapshots being received, by shard.
type Writers = BTreeMap<u16, (Manifest, SnapshotWriter<RealDisk>)>;

/// Starts the thread.
pub fn start(
    snapshots: Snapshots<RealDisk>,
    work: Receiver<SnapshotWork>,
    driver: DriverSender,
    counters: SharedCounters,
) -> std::io::Result<thread::JoinHandle<()>> {
    thread::Builder::new().name("ikada-snapshots".into()).spawn(move || {
        step_back();
        let mut writers = Writers::new();
        while let Ok(work) = work.recv() {
            let done = carry_out(&snapshots, &mut writers, work);
            match &done {
                SnapshotDone::Saved { .. } => counters.snapshot(true),
                SnapshotDone::SaveFailed { .. } => counters.snapshot(false),
                _ => {}
            }
            if driver.send(DriverMessage::Input(Input::Snapshot(done))).is_err() {
                return;
            }
        }
    })
}

/// On a busy machine commits go first. Where the kernel refuses, all are equal.
fn step_back() {
    let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICE);
}

fn carry_out(
    snapshots: &Snapshots<RealDisk>,
    writers: &mut Writers,
    work: SnapshotWork,
) -> SnapshotDone {
    match work {
        SnapshotWork::Save { shard, frozen, start, conf } => {
            let mut encoded = Vec::new();
            conf.encode(&mut encoded);
            match save(snapshots, shard, start, &encoded, &frozen) {
                Ok(bytes) => {
                    info!(shard, lsn = %Lsn { term: start.term, index: start.index }, bytes, "snapshot saved");
                    SnapshotDone::Saved { shard, start, conf, bytes }
                }
                Err(error) => {
                    warn!(shard, %error, "snapshot failed; it is tried again later");
                    SnapshotDone::SaveFailed { shard }
                }
            }
        }
        SnapshotWork::Describe { shard, to } => {
            let found = newest(snapshots, shard).map(|manifest| {
                let start = Start { index: manifest.index, term: manifest.term };
                (start, Bytes::from(manifest.encode()))
            });
            SnapshotDone::Manifest { shard, to, found }
        }
        SnapshotWork::Read { shard, start, chunk, to } => {
            let bytes = newest(snapshots, shard)
                .filter(|manifest| (manifest.index, manifest.term) == (start.index, start.term))
                .and_then(|manifest| snapshots.read_chunk(&manifest, chunk as usize).ok())
                .map(Bytes::from);
            SnapshotDone::Chunk { shard, start, chunk, to, bytes }
        }
        SnapshotWork::Receive { shard, start, manifest } => {
            let chunks = receive(snapshots, writers, shard, start, &manifest)
                .map_err(|error| warn!(shard, %error, "offered snapshot refused"))
                .ok();
            SnapshotDone::Receiving { shard, start, chunks }
        }
        SnapshotWork::Write { shard, start, chunk, bytes } => {
            let ok = write(writers, shard, start, chunk, &bytes)
                .map_err(|error| warn!(shard, chunk, %error, "received chunk refused"))
                .is_ok();
            SnapshotDone::Wrote { shard, start, chunk, ok }
        }
        SnapshotWork::Load { shard, start } => {
            let state = load(snapshots, shard, start);
            SnapshotDone::Loaded { shard, start, state }
        }
    }
}

fn save(
    snapshots: &Snapshots<RealDisk>,
    shard: u16,
    start: Start,
    conf: &[u8],
    frozen: &ikada_replica::state::Frozen,
) -> Result<u64, SnapshotError> {
    let mut writer = snapshots.begin(shard, start.index, start.term)?;
    let mut bytes = 0;
    for chunk in frozen.chunks() {
        bytes += chunk.len() as u64;
        writer.chunk(&chunk)?;
    }
    writer.finish(conf, frozen.hash())?;
    snapshots.remove_older(shard, SNAPSHOTS_KEPT)?;
    Ok(bytes)
}

fn newest(snapshots: &Snapshots<RealDisk>, shard: u16) -> Option<Manifest> {
    snapshots
        .load(shard)
        .map_err(|error| warn!(shard, %error, "snapshot unreadable"))
        .ok()
        .flatten()
}

fn receive(
    snapshots: &Snapshots<RealDisk>,
    writers: &mut Writers,
    shard: u16,
    start: Start,
    manifest: &[u8],
) -> Result<u32, String> {
    let manifest = Manifest::decode(manifest).map_err(|error| error.to_string())?;
    if (manifest.shard, manifest.index, manifest.term) != (shard, start.index, start.term) {
        return Err("the manifest describes another snapshot".to_owned());
    }
    let chunks = manifest.chunks.len() as u32;
    let writer = snapshots.receive(&manifest).map_err(|error| error.to_string())?;
    writers.insert(shard, (manifest, writer));
    Ok(chunks)
}

fn write(
    writers: &mut Writers,
    shard: u16,
    start: Start,
    chunk: u32,
    bytes: &[u8],
) -> Result<(), String> {
    let (manifest, writer) = writers.get_mut(&shard).ok_or("no snapshot is being received")?;
    if (manifest.index, manifest.term) != (start.index, start.term) {
        return Err("another snapshot is being received".to_owned());
    }
    if writer.chunk_count() > chunk as usize {
        // A repeated chunk is there already.
        return Ok(());
    }
    if writer.chunk_count() != chunk as usize {
        return Err(format!("chunk {chunk} where {} was due", writer.chunk_count()));
    }
    writer.chunk(bytes).map_err(|error| error.to_string())?;
    if chunk as usize + 1 == manifest.chunks.len()
        && let Some((_, writer)) = writers.remove(&shard)
    {
        writer.finish_received().map_err(|error| error.to_string())?;
    }
    Ok(())
}

fn load(
    snapshots: &Snapshots<RealDisk>,
    shard: u16,
    start: Start,
) -> Result<Box<ikada_replica::state::Shard>, String> {
    let words = |error: SnapshotError| error.to_string();
    let manifest = snapshots.load_at(shard, start.index, start.term).map_err(words)?;
    let manifest = manifest.ok_or_else(|| format!("no whole snapshot at index {}", start.index))?;
    let state = load_state(snapshots, &manifest).map_err(|error| error.to_string())?;
    snapshots.remove_newer(shard, start.index, start.term).map_err(words)?;
    Ok(Box::new(state))
}
