//! Removes pieces that nothing refers to (A3).
//!
//! In this order, for pieces without a pin: a linearizable look at all shards; a committed `Collect`; another such look;
//! removal, which refuses whatever was pinned meanwhile. An upload that is about to refer to a piece has had a majority
//! pin it less than half a grace time ago, so either this node is not part of that majority or the pin still holds.

use std::time::Duration;

use ikada_replica::call::{Answer, Consistency, Outcome, Query, Request, Routing, View};
use ikada_replica::state::limits::COLLECT_DIGESTS_MAX;
use ikada_replica::state::{Collect, Command, Digest, Namespace, Order, Reply};
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
            let listed = self.on_disk(move |inner, now_ms| {
                let mut ids = inner.blobs.list(first)?;
                ids.retain(|id| !inner.blobs.is_pinned(id, now_ms));
                Ok(ids)
            });
            let free: Vec<Digest> =
                listed.await.unwrap_or_default().into_iter().map(Digest).collect();
            for some in free.chunks(COLLECT_DIGESTS_MAX) {
                collected += self.collect_some(door, some.to_vec()).await.unwrap_or(0);
            }
        }
        if collected > 0 {
            Cells::add(&self.0.cells.collected, collected);
            info!(collected, "pieces that nothing refers to were removed");
        }
        collected
    }

    async fn collect_some<D: Door>(&self, door: &D, digests: Vec<Digest>) -> Option<u64> {
        let free = unreferenced(door, digests).await?;
        if free.is_empty() {
            return Some(0);
        }
        let collect = Collect { node: door.info().node, digests: free.clone().into() };
        let command = Command::Collect(collect);
        let order = Order { namespace: Namespace::default(), request: None, command };
        let written = door.call(Request::Write(vec![order]), PATIENCE, Routing::Forward).await;
        let Answer::Written(outcomes) = written else { return None };
        let [Outcome::Reply { reply: Reply::Collected, .. }] = outcomes.as_slice() else {
            return None;
        };
        let free = unreferenced(door, free).await?;
        let removed = self.on_disk(move |inner, now_ms| {
            let mut removed = 0;
            for digest in free {
                inner.cache.forget(&digest);
                removed += u64::from(inner.blobs.remove(&digest.0, now_ms)?);
            }
            Ok(removed)
        });
        removed.await.map_err(|error| warn!(%error, "a piece could not be removed")).ok()
    }
}

/// Those of the pieces that no object has, as of now.
async fn unreferenced<D: Door>(door: &D, digests: Vec<Digest>) -> Option<Vec<Digest>> {
    let read = Request::Read(Query::Unreferenced(digests), Consistency::Linearizable);
    match door.call(read, PATIENCE, Routing::Forward).await {
        Answer::View { view: View::Unreferenced(free), .. } => Some(free),
        _ => None,
    }
}
