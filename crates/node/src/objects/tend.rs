//! What a node does about its blobs on its own: repair, scrub, collect, each at its pace until the node stops.

use std::time::Duration;

use tokio::sync::watch;

use super::Shelf;
use super::repair::Repair;
use crate::config::{COLLECT_EVERY_MS, REPAIR_EVERY_MS, SCRUB_EVERY_MS};
use crate::http::Door;

/// Tends the blobs until told to stop.
pub async fn tend<D: Door>(shelf: Shelf, door: D, stopping: watch::Receiver<bool>) {
    let repair = async {
        let mut repair = Repair::default();
        loop {
            pause(REPAIR_EVERY_MS).await;
            shelf.repair(&door, &mut repair).await;
        }
    };
    let scrub = async {
        loop {
            pause(SCRUB_EVERY_MS).await;
            shelf.scrub(true).await;
        }
    };
    let collect = async {
        loop {
            pause(COLLECT_EVERY_MS).await;
            shelf.collect(&door).await;
        }
    };
    let mut stopping = stopping;
    tokio::select! {
        () = repair => {}
        () = scrub => {}
        () = collect => {}
        // A sender that is gone means the same.
        _ = stopping.wait_for(|stopping| *stopping) => {}
    }
}

/// Waits so long, give or take a tenth: nodes should not all tidy up at once.
async fn pause(about_ms: u64) {
    let spread_ms = fastrand::u64(0..=about_ms / 5);
    tokio::time::sleep(Duration::from_millis(about_ms * 9 / 10 + spread_ms)).await;
}
