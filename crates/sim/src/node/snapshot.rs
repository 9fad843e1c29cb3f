//! Snapshot work on a node's disk, one step at a time, as the replica asks for it.

use std::collections::BTreeMap;

use bytes::Bytes;
use ikada_consensus::Start;
use ikada_replica::output::{SnapshotDone, SnapshotWork};
use ikada_state::{Shard, ShardId};
use ikada_store::{Manifest, SimDisk, SnapshotError, SnapshotWriter, Snapshots};

/// Snapshots kept per shard: the newest, and one to fall back to.
const SNAPSHOTS_KEPT: usize = 2;

/// Snapshots being received.
#[derive(Debug, Default)]
pub struct Receiving {
    writers: BTreeMap<ShardId, (Start, u32, SnapshotWriter<SimDisk>)>,
}

impl Receiving {
    /// Whether any is under way.
    pub fn is_empty(&self) -> bool {
        self.writers.is_empty()
    }

    /// Does one piece of work. An error means that the disk failed and the process must stop.
    pub fn perform(
        &mut self,
        snapshots: &Snapshots<SimDisk>,
        work: SnapshotWork,
    ) -> Result<SnapshotDone, SnapshotError> {
        match work {
            SnapshotWork::Save { shard, frozen, start, conf } => {
                match save(snapshots, shard, &frozen, start, &conf) {
                    Ok(bytes) => Ok(SnapshotDone::Saved { shard, start, conf, bytes }),
                    Err(error) if error.is_disk_full() => Ok(SnapshotDone::SaveFailed { shard }),
                    Err(error) => Err(error),
                }
            }
            SnapshotWork::Describe { shard, to } => {
                let found = snapshots
                    .load(shard)?
                    .map(|manifest| (start_of(&manifest), Bytes::from(manifest.encode())));
                Ok(SnapshotDone::Manifest { shard, to, found })
            }
            SnapshotWork::Read { shard, start, chunk, to } => {
                let bytes = read(snapshots, shard, start, chunk);
                Ok(SnapshotDone::Chunk { shard, start, chunk, to, bytes })
            }
            SnapshotWork::Receive { shard, start, manifest } => {
                let chunks = self.receive(snapshots, shard, start, &manifest)?;
                Ok(SnapshotDone::Receiving { shard, start, chunks })
            }
            SnapshotWork::Write { shard, start, chunk, bytes } => {
                let ok = self.write(shard, start, chunk, &bytes)?;
                Ok(SnapshotDone::Wrote { shard, start, chunk, ok })
            }
            SnapshotWork::Load { shard, start } => {
                let state = load(snapshots, shard, start).map(Box::new);
                Ok(SnapshotDone::Loaded { shard, start, state })
            }
        }
    }

    fn receive(
        &mut self,
        snapshots: &Snapshots<SimDisk>,
        shard: ShardId,
        start: Start,
        manifest: &[u8],
    ) -> Result<Option<u32>, SnapshotError> {
        let Ok(manifest) = Manifest::decode(manifest) else {
            return Ok(None);
        };
        if manifest.shard != shard || start_of(&manifest) != start {
            return Ok(None);
        }
        let chunks = manifest.chunks.len() as u32;
        match snapshots.receive(&manifest) {
            Ok(writer) => {
                self.writers.insert(shard, (start, chunks, writer));
                Ok(Some(chunks))
            }
            Err(SnapshotError::Foreign { .. }) => Ok(None),
            Err(error) if error.is_disk_full() => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn write(
        &mut self,
        shard: ShardId,
        start: Start,
        chunk: u32,
        bytes: &[u8],
    ) -> Result<bool, SnapshotError> {
        let Some((at, chunks, mut writer)) = self.writers.remove(&shard) else {
            return Ok(false);
        };
        if at == start && (chunk as usize) < writer.chunk_count() {
            // Sent twice: it is there already.
            self.writers.insert(shard, (at, chunks, writer));
            return Ok(true);
        }
        if at != start || writer.chunk_count() != chunk as usize {
            self.writers.insert(shard, (at, chunks, writer));
            return Ok(false);
        }
        match writer.chunk(bytes) {
            Ok(()) if chunk + 1 == chunks => {
                writer.finish_received()?;
                Ok(true)
            }
            Ok(()) => {
                self.writers.insert(shard, (at, chunks, writer));
                Ok(true)
            }
            Err(error @ SnapshotError::Io { .. }) if !error.is_disk_full() => Err(error),
            Err(_) => {
                self.writers.insert(shard, (at, chunks, writer));
                Ok(false)
            }
        }
    }
}

fn start_of(manifest: &Manifest) -> Start {
    Start { index: manifest.index, term: manifest.term }
}

fn save(
    snapshots: &Snapshots<SimDisk>,
    shard: ShardId,
    frozen: &ikada_state::Frozen,
    start: Start,
    conf: &ikada_consensus::Conf,
) -> Result<u64, SnapshotError> {
    let mut writer = snapshots.begin(shard, start.index, start.term)?;
    for chunk in frozen.chunks() {
        writer.chunk(&chunk)?;
    }
    let mut encoded = Vec::new();
    conf.encode(&mut encoded);
    let manifest = writer.finish(&encoded, frozen.hash())?;
    snapshots.remove_older(shard, SNAPSHOTS_KEPT)?;
    Ok(manifest.data_bytes())
}

/// A chunk, if the snapshot is still there and whole.
fn read(snapshots: &Snapshots<SimDisk>, shard: ShardId, start: Start, chunk: u32) -> Option<Bytes> {
    let manifest = snapshots.load(shard).ok()??;
    if start_of(&manifest) != start {
        return None;
    }
    snapshots.read_chunk(&manifest, chunk as usize).ok().map(Bytes::from)
}

fn load(snapshots: &Snapshots<SimDisk>, shard: ShardId, start: Start) -> Result<Shard, String> {
    let words = |error: SnapshotError| error.to_string();
    let Some(manifest) = snapshots.load_at(shard, start.index, start.term).map_err(words)? else {
        return Err(format!("no whole snapshot at {start:?}"));
    };
    let mut chunks = Vec::new();
    for chunk in 0..manifest.chunks.len() {
        chunks.push(snapshots.read_chunk(&manifest, chunk).map_err(words)?);
    }
    let state = Shard::restore(chunks.into_iter()).map_err(|error| error.to_string())?;
    snapshots.remove_newer(shard, start.index, start.term).map_err(words)?;
    Ok(state)
}
