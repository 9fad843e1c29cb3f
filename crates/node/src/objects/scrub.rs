//! Reads every piece on this node's disk and checks it. Damaged ones are set aside by the reading itself; repair brings
//! them back (F-37).

use std::time::Duration;

use ikada_replica::state::Digest;
use tracing::{info, warn};

use super::Shelf;
use super::counters::Cells;

/// Pause after each piece: a scrub may take a third of a disk's time at most, and mostly far less.
const PAUSE: Duration = Duration::from_millis(20);

impl Shelf {
    /// One round over all pieces; gives how many were damaged.
    pub async fn scrub(&self, gently: bool) -> u64 {
        let before = self.0.blobs.damaged();
        for first in 0..=u8::MAX {
            let listed = self.on_disk(move |inner, _| inner.blobs.list(first)).await;
            if let Err(error) = &listed {
                warn!(%error, "some pieces could not be listed, and are not checked");
            }
            for id in listed.unwrap_or_default() {
                if let Err(error) = self.read_here(Digest(id)).await {
                    warn!(%error, "a piece could not be read");
                }
                Cells::add(&self.0.cells.scrubbed, 1);
                if gently {
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
        let damaged = self.0.blobs.damaged() - before;
        if damaged > 0 {
            info!(damaged, "damaged pieces were set aside; they are fetched from peers");
        }
        damaged
    }
}
