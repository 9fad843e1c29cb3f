//! The task that tells others.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::Fact;
use crate::admission::Admission;
use crate::http::NodeInfo;
use crate::objects::Shelf;

/// Mean time between two rounds; each is drawn anew, so that nodes do not fall into step.
pub(super) const ROUND_MS: u64 = 1_000;
/// Nodes told per round.
const TOLD_MAX: usize = 2;

/// Tells others about this node, and hears about them, until it is told to stop.
pub(crate) async fn spread(
    shelf: Shelf,
    admission: Arc<Admission>,
    info: NodeInfo,
    mut stopping: watch::Receiver<bool>,
) {
    let (mut sequence, mut random) = (0, fastrand::Rng::new());
    loop {
        let pause = Duration::from_millis(random.u64(ROUND_MS / 2..=ROUND_MS * 3 / 2));
        tokio::select! {
            _ = stopping.wait_for(|stopping| *stopping) => return,
            () = tokio::time::sleep(pause) => {}
        }
        sequence += 1;
        let own = fact(&shelf, &admission, &info, sequence);
        shelf.gossip().say(own, Instant::now());
        for peer in choose(shelf.peers(), &mut random) {
            let shelf = shelf.clone();
            tokio::spawn(async move {
                // No answer is no news; links and leaders notice a dead node.
                if let Ok(facts) = peer.gossip(shelf.gossip().facts(Instant::now())).await {
                    shelf.hear(&facts);
                }
            });
        }
    }
}

/// Whom to tell in one round.
pub(super) fn choose<T>(mut peers: Vec<T>, random: &mut fastrand::Rng) -> Vec<T> {
    random.shuffle(&mut peers);
    peers.truncate(TOLD_MAX);
    peers
}

fn fact(shelf: &Shelf, admission: &Admission, info: &NodeInfo, sequence: u64) -> Fact {
    let (load, blobs) = (admission.facts(), shelf.counters());
    let looked = blobs.cache_hits + blobs.cache_misses;
    Fact {
        node: info.node,
        life_ms: info.started_wall_ms,
        sequence,
        cpu: load.cpu,
        memory: load.memory,
        admitted_last_minute: load.admitted_last_minute,
        shed_last_minute: load.shed_last_minute,
        cache_hit_permille: (blobs.cache_hits * 1000).checked_div(looked).unwrap_or(0) as u16,
        cache_bytes: blobs.cache_bytes,
    }
}
