//! The killed leader: which one, and how long the others needed to replace it.

use std::time::{Duration, Instant};

use ikada_api::Client;

use crate::failure::Failure;
use crate::local::Nodes;

/// An election that takes longer than this has failed.
const PATIENCE: Duration = Duration::from_secs(20);
/// How finely the election is watched.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// The node to kill, and what it leads.
pub(super) struct Target {
    pub(super) node: u64,
    shards: Vec<u16>,
}

impl std::fmt::Display for Target {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shards: Vec<String> = self.shards.iter().map(u16::to_string).collect();
        write!(formatter, "node {}, the leader of shard {}", self.node, shards.join(", "))
    }
}

/// What the kill came to.
#[derive(Debug, Clone)]
pub(super) struct Strike {
    /// The killed node.
    pub(super) node: u64,
    /// How many shards it led.
    pub(super) led: usize,
    /// Until every one of them had a new leader, as the others saw it.
    pub(super) replaced: Duration,
    /// The longest time without a finished task after the kill.
    pub(super) gap: Duration,
}

/// Chooses the node that leads the most shards.
pub(super) async fn choose(nodes: &mut Nodes) -> Result<Target, Failure> {
    let agreed = nodes.settle(PATIENCE).await?;
    let node = agreed.busiest().ok_or_else(|| Failure::failed("no node leads anything"))?;
    let shards = agreed.led_by(node).into_iter().map(|led| led.shard).collect();
    Ok(Target { node, shards })
}

/// Watches the survivors until all the killed node's shards have new leaders.
pub(super) async fn watch(survivors: Vec<String>, target: Target) -> Result<Strike, Failure> {
    let killed = Instant::now();
    let client = Client::new(&survivors)?.with_timeout(Duration::from_millis(500));
    loop {
        let replaced = client.cluster().await.is_ok_and(|seen| {
            target.shards.iter().all(|wanted| {
                let shard = seen.shards.iter().find(|shard| shard.shard == *wanted);
                let leader = shard.and_then(|shard| shard.leader);
                leader.is_some_and(|leader| leader.0 != target.node)
            })
        });
        let elapsed = killed.elapsed();
        if replaced {
            return Ok(Strike {
                node: target.node,
                led: target.shards.len(),
                replaced: elapsed,
                gap: Duration::ZERO,
            });
        }
        if elapsed > PATIENCE {
            return Err(Failure::failed(format!("no new leader within {} s", PATIENCE.as_secs())));
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
