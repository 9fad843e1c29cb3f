//! Snapshots in the database: this node's newest one goes there, and one stored there comes here.
//!
//! Promise: files are read, written and synced on threads of their own. The runtime that carries these snapshots also renews
//! the leases, and a disk that stands still must not cost them.

use std::sync::Arc;

use ikada_replica::consensus::{Conf, Start};
use ikada_store::postgres::{Connection, PostgresError};
use ikada_store::{Manifest, RealDisk, SnapshotError, Snapshots};

/// Where a fetched snapshot stands and the membership there; nothing if there is none.
pub(super) type Fetched = Option<(Start, Conf)>;

/// Stores this node's newest snapshot, which must be at the given index.
pub(super) async fn store(
    connection: &Connection,
    snapshots: &Arc<Snapshots<RealDisk>>,
    shard: u16,
    index: u64,
) -> Result<(), PostgresError> {
    let broken = |why: String| PostgresError::Statement(format!("shard {shard}: {why}"));
    let files = snapshots.clone();
    let found = on_disk(move || files.load(shard)).await.map_err(broken)?;
    let manifest = found.filter(|manifest| manifest.index == index);
    let manifest =
        Arc::new(manifest.ok_or_else(|| broken(format!("no snapshot at index {index}")))?);
    for chunk in 0..manifest.chunks.len() {
        let (files, facts) = (snapshots.clone(), manifest.clone());
        let bytes = on_disk(move || files.read_chunk(&facts, chunk)).await.map_err(broken)?;
        connection.put_snapshot_chunk(shard, index, chunk as u32, &bytes).await?;
    }
    connection.put_snapshot_manifest(shard, index, &manifest.encode()).await
}

/// Brings the newest stored snapshot into this node's files, every chunk checked against the manifest.
pub(super) async fn fetch(
    connection: &Connection,
    snapshots: &Arc<Snapshots<RealDisk>>,
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
    let (files, count) = (snapshots.clone(), manifest.chunks.len() as u32);
    let mut writer = on_disk(move || files.receive(&manifest)).await?;
    for chunk in 0..count {
        let bytes = connection.snapshot_chunk(shard, stored.index, chunk).await.map_err(words)?;
        // A newer one took its place: the next try fetches that.
        let Some(bytes) = bytes else { return Ok(None) };
        writer = on_disk(move || writer.chunk(&bytes).map(|()| writer)).await?;
    }
    on_disk(move || writer.finish_received()).await?;
    Ok(Some((start, conf)))
}

/// Does work on files beside the runtime.
async fn on_disk<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, SnapshotError> + Send + 'static,
) -> Result<T, String> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done.map_err(|error| error.to_string()),
        Err(broken) => Err(broken.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // LS-13: whoever renews shares this thread.
    #[test]
    fn ls_13_a_disk_that_stands_still_leaves_the_thread_of_the_renewals_free() {
        let (go_on, may_go_on) = std::sync::mpsc::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let done = runtime.block_on(async {
            // The disk answers only once this very thread has done something else meanwhile.
            let reading = on_disk(move || {
                let patience = std::time::Duration::from_secs(30);
                Ok(may_go_on.recv_timeout(patience).is_ok())
            });
            let renewing = async { go_on.send(()) };
            tokio::join!(reading, renewing)
        });
        assert_eq!(done.0, Ok(true), "the thread stood still with the disk");
    }
}
