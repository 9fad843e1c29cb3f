//! Brings back pieces that objects refer to and this node lacks: it was down, joined later, was skipped while it was
//! slow, or set a damaged file aside (CH-5, CH-14, F-37).

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use ikada_replica::call::{Answer, Consistency, Query, Request, Routing, View};
use ikada_replica::state::{Digest, References, ShardId};
use ikada_store::{BLOB_BYTES_MAX, BlobError};
use tracing::{info, warn};

use super::counters::Cells;
use super::{FetchError, Shelf};
use crate::config::REPAIR_ALL_EVERY_MS;
use crate::http::Door;

/// References looked at in one go.
const PAGE: usize = 1_000;
/// How long a look at the state may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is known of earlier rounds.
#[derive(Debug, Default)]
pub(super) struct Repair {
    /// For each shard: its count of changes when nothing was missing.
    whole_at: BTreeMap<ShardId, u64>,
    /// Damaged pieces counted then.
    damaged: u64,
    looked_at_all: Option<Instant>,
}

/// Why a piece was not brought back.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RepairError {
    /// No peer gave it; another piece may be had.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// This node's disk does not take it, and would take no other.
    #[error("a missing piece cannot be kept here: {0}")]
    Disk(#[from] BlobError),
}

impl Shelf {
    /// One round. Shards without changes since they were whole are passed over, except now and then.
    pub(super) async fn repair<D: Door>(&self, door: &D, known: &mut Repair) {
        let damaged = self.0.blobs.damaged();
        let all_due = known
            .looked_at_all
            .is_none_or(|looked| looked.elapsed() > Duration::from_millis(REPAIR_ALL_EVERY_MS));
        if damaged != known.damaged || all_due {
            known.whole_at.clear();
            (known.damaged, known.looked_at_all) = (damaged, Some(Instant::now()));
        }
        let shards = door.status().await.shards.len() as ShardId;
        for shard in 0..shards {
            let Some(begun_at) = self.references(door, shard, None, 0).await else { return };
            if known.whole_at.get(&shard) == Some(&begun_at.changes) {
                continue;
            }
            if self.repair_shard(door, shard).await {
                known.whole_at.insert(shard, begun_at.changes);
            }
        }
    }

    /// Repairs all of one shard; true if nothing is missing any more.
    async fn repair_shard<D: Door>(&self, door: &D, shard: ShardId) -> bool {
        let (mut after, mut whole, mut repaired) = (None, true, 0u64);
        loop {
            let Some(page) = self.references(door, shard, after, PAGE).await else { return false };
            after = page.digests.last().copied();
            let Some(missing) = self.missing(page.digests).await else { return false };
            let mut more = page.more;
            for digest in missing {
                let Err(error) = self.bring_back(digest).await else {
                    repaired += 1;
                    continue;
                };
                whole = false;
                Cells::add(&self.0.cells.unrepaired, 1);
                warn!(%error, shard, "a piece is missing; it is looked for again later");
                // What cannot be kept need not travel, round after round.
                if matches!(error, RepairError::Disk(_)) {
                    more = false;
                    break;
                }
            }
            if !more {
                break;
            }
        }
        if repaired > 0 {
            Cells::add(&self.0.cells.repaired, repaired);
            info!(shard, repaired, "missing pieces fetched from peers");
        }
        whole
    }

    /// Fetches a piece to keep it. Whether there is room is looked at first.
    pub(crate) async fn bring_back(&self, digest: Digest) -> Result<(), RepairError> {
        self.on_disk(|inner, _| inner.check_room(BLOB_BYTES_MAX as u64)).await?;
        let bytes = self.ask_peers(digest).await?;
        Ok(self.store_here(digest, bytes).await?)
    }

    /// Which pieces have no file here; none if nobody could look. What cannot be looked at counts as missing.
    async fn missing(&self, mut digests: Vec<Digest>) -> Option<Vec<Digest>> {
        let looked = self.on_disk(move |inner, _| {
            digests.retain(|digest| !inner.blobs.exists(&digest.0).unwrap_or(false));
            Ok(digests)
        });
        looked.await.ok()
    }

    /// As many references as are looked at in one go.
    pub(super) async fn page_of_references<D: Door>(
        &self,
        door: &D,
        shard: ShardId,
        after: Option<Digest>,
    ) -> Option<References> {
        self.references(door, shard, after, PAGE).await
    }

    /// A page of what this node's own state refers to.
    async fn references<D: Door>(
        &self,
        door: &D,
        shard: ShardId,
        after: Option<Digest>,
        limit: usize,
    ) -> Option<References> {
        self.references_as(door, Query::References { shard, after, limit }, Consistency::Stale)
            .await
    }

    /// Waits until this node's own state of a shard has all that was committed before; false if it does not in time.
    pub(super) async fn is_up_to_date<D: Door>(&self, door: &D, shard: ShardId) -> bool {
        let look = Query::References { shard, after: None, limit: 0 };
        self.references_as(door, look, Consistency::Linearizable).await.is_some()
    }

    async fn references_as<D: Door>(
        &self,
        door: &D,
        query: Query,
        consistency: Consistency,
    ) -> Option<References> {
        let read = Request::Read(query, consistency);
        match door.call(read, PATIENCE, Routing::Forward).await {
            Answer::View { view: View::References(page), .. } => Some(page),
            _ => None,
        }
    }
}
