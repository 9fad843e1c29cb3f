//! Removes pieces that nothing refers to (A3).
//!
//! In this order, for pieces without a pin: a linearizable look at all shards; a committed `Collect`; another such look;
//! removal, which refuses whatever was pinned meanwhile. An upload that is about to refer to a piece has had a majority
//! pin it less than half a grace time ago, so either this node is not part of that majority or the pin still holds.

use std::time::Duration;

use ikada_replica::call::{Answer, Consistency, Outcome, Query, Request, Routing, View};
use ikada_replica::state::limits::COLLECT_DIGESTS_MAX;
use ikada_replica::state::{Collect, Command, Digest, Namespace, Order, Reply};
use ikada_store::BlobId;
use ikada_store::blob::Candidates;
use tracing::{info, warn};

use super::Shelf;
use super::counters::Cells;
use crate::http::Door;

/// How long a look or an entry may take.
const PATIENCE: Duration = Duration::from_secs(10);

impl Shelf {
    /// One round over all pieces; gives how many went.
    pub async fn collect<D: Door>(&self, door: &D) -> u64 {
        let mut collected = 0;
        for first in 0..=u8::MAX {
            let unpinned = self.on_disk(move |inner, now_ms| {
                inner.blobs.candidates(first, COLLECT_DIGESTS_MAX, now_ms)
            });
            for some in unpinned.await.unwrap_or_default() {
                collected += self.collect_some(door, some).await.unwrap_or(0);
            }
        }
        if collected > 0 {
            Cells::add(&self.0.cells.collected, collected);
            info!(collected, "pieces that nothing refers to were removed");
        }
        collected
    }

    async fn collect_some<D: Door>(&self, door: &D, candidates: Candidates) -> Option<u64> {
        let free = unreferenced(door, candidates.ids()).await?;
        let announcement = candidates.looked(&free);
        if announcement.ids().is_empty() {
            return Some(0);
        }
        let digests: Vec<Digest> = announcement.ids().iter().copied().map(Digest).collect();
        let collect = Collect { node: door.info().node, digests: digests.into() };
        let command = Command::Collect(collect);
        let order = Order { namespace: Namespace::default(), request: None, command };
        let written = door.call(Request::Write(vec![order]), PATIENCE, Routing::Forward).await;
        let Answer::Written(outcomes) = written else { return None };
        let [Outcome::Reply { reply: Reply::Collected, .. }] = outcomes.as_slice() else {
            return None;
        };
        let announced = announcement.committed();
        let free = unreferenced(door, announced.ids()).await?;
        let removable = announced.looked(&free);
        let removed = self.on_disk(move |inner, now_ms| {
            removable.ids().iter().for_each(|id| inner.cache.forget(&Digest(*id)));
            inner.blobs.remove_all(&removable, now_ms)
        });
        removed.await.map_err(|error| warn!(%error, "a piece could not be removed")).ok()
    }
}

/// Those of the pieces that no object has, as of now.
async fn unreferenced<D: Door>(door: &D, ids: &[BlobId]) -> Option<Vec<BlobId>> {
    let digests = ids.iter().copied().map(Digest).collect();
    let read = Request::Read(Query::Unreferenced(digests), Consistency::Linearizable);
    match door.call(read, PATIENCE, Routing::Forward).await {
        Answer::View { view: View::Unreferenced(free), .. } => {
            Some(free.into_iter().map(|digest| digest.0).collect())
        }
        _ => None,
    }
}
