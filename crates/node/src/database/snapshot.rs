//! Snapshots on their way: from this node's files into the database before the log is purged, and back to a node that is behind.

use ikada_replica::consensus::{Conf, Start};
use ikada_store::postgres::{Connection, PostgresError};
use ikada_store::{Manifest, RealDisk, Snapshots};

/// Where a fetched snapshot stands and the membership there; nothing if there is none.
pub(super) type Fetched = Option<(Start, Conf)>;

/// Stores this node's newest snapshot, which must be at the given index.
pub(super) async fn store(
    connection: &Connection,
    snapshots: &Snapshots<RealDisk>,
    shard: u16,
    index: u64,
) -> Result<(), PostgresError> {
    let broken = |why: String| PostgresError::Statement(format!("shard {shard}: {why}"));
    let found = snapshots.load(shard).map_err(|error| broken(error.to_string()))?;
    let manifest = found.filter(|manifest| manifest.index == index);
    let manifest = manifest.ok_or_else(|| broken(format!("no snapshot at index {index}")))?;
    for chunk in 0..manifest.chunks.len() {
        let bytes = snapshots.read_chunk(&manifest, chunk);
        let bytes = bytes.map_err(|error| broken(error.to_string()))?;
        connection.put_snapshot_chunk(shard, index, chunk as u32, &bytes).await?;
    }
    connection.put_snapshot_manifest(shard, index, &manifest.encode()).await
}

/// Brings the newest stored snapshot into this node's files, every chunk checked against the manifest.
pub(super) async fn fetch(
    connection: &Connection,
    snapshots: &Snapshots<RealDisk>,
    shard: u16,
) -> Result<Fetched, String> {
    let words = |error: PostgresError| error.to_string();
    let Some(stored) = connection.newest_snapshot(shard).await.map_err(words)? else {
        return Ok(None);
    };
    let manifest = Manifest::decode(&stored.manifest).map_err(|error| error.to_string())?;
    if (manifest.shard, manifest.index) != (shard, stored.index) {
        return Err("its manifest describes another snapshot".to_owned());
    }
    let conf = Conf::decode(&manifest.conf).map_err(|error| error.to_string())?;
    let start = Start { index: manifest.index, term: manifest.term };
    let mut writer = snapshots.receive(&manifest).map_err(|error| error.to_string())?;
    for chunk in 0..manifest.chunks.len() as u32 {
        let bytes = connection.snapshot_chunk(shard, stored.index, chunk).await.map_err(words)?;
        // A newer one took its place: the next try fetches that.
        let Some(bytes) = bytes else { return Ok(None) };
        writer.chunk(&bytes).map_err(|error| error.to_string())?;
    }
    writer.finish_received().map_err(|error| error.to_string())?;
    Ok(Some((start, conf)))
}
