//! The task that tells others.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ikada_replica::status::{NodeStatus, ShardStatus};
use tokio::sync::watch;

use super::{Fact, ShardLag};
use crate::admission::Admission;
use crate::http::Door;

/// Mean time between two rounds; each is drawn anew, so that nodes do not fall into step.
pub(super) const ROUND_MS: u64 = 1_000;
/// Nodes told per round.
const TOLD_MAX: usize = 2;
/// How long a word about this node waits for how its shards stand; without them it says the rest.
const STATUS_PATIENCE: Duration = Duration::from_millis(500);

/// Tells others about this node, and hears about them, until it is told to stop.
pub(crate) async fn spread<D: Door>(
    door: D,
    admission: Arc<Admission>,
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
        let own = fact(&door, &admission, sequence).await;
        door.shelf().gossip().say(&own, Instant::now());
        for peer in choose(door.shelf().peers(), &mut random) {
            let shelf = door.shelf().clone();
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

async fn fact<D: Door>(door: &D, admission: &Admission, sequence: u64) -> Fact {
    let (load, blobs, info) = (admission.facts(), door.shelf().counters(), door.info());
    let status = tokio::time::timeout(STATUS_PATIENCE, door.status()).await;
    let lags = |status: NodeStatus| status.shards.iter().filter_map(lag).collect();
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
        lags: status.map_or_else(|_| Vec::new(), lags),
    }
}

/// How far others are in a shard that this node leads; none if it does not.
fn lag(shard: &ShardStatus) -> Option<ShardLag> {
    let behind = |(node, matched): &(u64, u64)| (*node, shard.last_index.saturating_sub(*matched));
    (!shard.followers.is_empty()).then(|| ShardLag {
        shard: shard.shard,
        term: shard.term,
        last_index: shard.last_index,
        behind: shard.followers.iter().map(behind).collect(),
    })
}
