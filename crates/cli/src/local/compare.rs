//! Whether all nodes hold the same state.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use ikada_api::Client;

use crate::failure::Failure;

/// Copies must be equal within this time after the last write.
const PATIENCE: Duration = Duration::from_secs(15);

/// Compares the state of every shard on all nodes. True when all copies at the same position are equal.
pub(crate) async fn compare_copies(urls: &[String]) -> Result<bool, Failure> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let mut copies: BTreeMap<u16, Vec<(String, String)>> = BTreeMap::new();
        for url in urls {
            let client = Client::new([url])?.with_timeout(Duration::from_secs(5));
            // The restarted node may still be on its way.
            let Ok(node) = client.node().await else {
                continue;
            };
            for shard in node.shards {
                copies.entry(shard.shard).or_default().push((shard.applied, shard.hash));
            }
        }
        let whole = !copies.is_empty() && copies.values().all(|all| all.len() == urls.len());
        if whole && copies.values().all(|all| all.iter().all(|copy| *copy == all[0])) {
            return Ok(true);
        }
        let diverged = copies.values().any(|all| {
            all.iter().any(|one| all.iter().any(|other| one.0 == other.0 && one.1 != other.1))
        });
        if diverged || Instant::now() > deadline {
            return Ok(false);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
