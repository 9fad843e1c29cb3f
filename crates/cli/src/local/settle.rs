//! Waiting until the running nodes agree: exactly one leader per shard, the same on every node (B4-44).

use std::time::{Duration, Instant};

use ikada_api::Client;
use ikada_api::client::ClientOptions;
use ikada_api::v1::NodeSelf;
use tokio::task::JoinSet;

use super::Nodes;
use crate::failure::Failure;

/// How finely it is watched.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// One look may take this long; a node that is still starting holds the call until it serves.
const LOOK_PATIENCE: Duration = Duration::from_secs(2);

/// Who leads one shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LedShard {
    /// Which shard.
    pub(crate) shard: u16,
    /// Its leader.
    pub(crate) leader: u64,
    /// Its term.
    pub(crate) term: u64,
}

/// What all running nodes say alike: the leader of every shard, in shard order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Agreement {
    /// One per shard.
    pub(crate) shards: Vec<LedShard>,
}

impl Agreement {
    /// What a node leads.
    pub(crate) fn led_by(&self, node: u64) -> Vec<LedShard> {
        self.shards.iter().filter(|shard| shard.leader == node).copied().collect()
    }

    /// The node that leads the most.
    pub(crate) fn busiest(&self) -> Option<u64> {
        let leaders = self.shards.iter().map(|shard| shard.leader);
        leaders.max_by_key(|leader| self.led_by(*leader).len())
    }
}

impl Nodes {
    /// Waits until the running nodes agree on leaders.
    pub(crate) async fn agree(&mut self, patience: Duration) -> Result<Agreement, Failure> {
        let clients = self.watchers()?;
        let deadline = Instant::now() + patience;
        Ok(self.agree_as_seen(&clients, deadline).await?.0)
    }

    /// Waits until the running nodes agree on leaders and all have what was committed when they did.
    pub(crate) async fn settle(&mut self, patience: Duration) -> Result<Agreement, Failure> {
        let clients = self.watchers()?;
        let deadline = Instant::now() + patience;
        let (agreed, first) = self.agree_as_seen(&clients, deadline).await?;
        loop {
            match look(&clients).await {
                Some(seen) if caught_up(&first, &seen) => return Ok(agreed),
                _ => self.wait_on(deadline).await?,
            }
        }
    }

    async fn agree_as_seen(
        &mut self,
        clients: &[Client],
        deadline: Instant,
    ) -> Result<(Agreement, Vec<NodeSelf>), Failure> {
        loop {
            if let Some(seen) = look(clients).await
                && let Some(agreed) = agreement(&seen)
            {
                return Ok((agreed, seen));
            }
            self.wait_on(deadline).await?;
        }
    }

    async fn wait_on(&mut self, deadline: Instant) -> Result<(), Failure> {
        self.check_alive()?;
        if Instant::now() < deadline {
            tokio::time::sleep(LOOK_EVERY).await;
            return Ok(());
        }
        let detail = "the nodes did not agree on one leader per shard in time";
        Err(Failure::failed_next(detail, self.keep_logs()))
    }

    fn watchers(&self) -> Result<Vec<Client>, Failure> {
        let options = ClientOptions { timeout: LOOK_PATIENCE, ..self.options()? };
        let one = |url: String| Ok(Client::with([url], options.clone())?);
        self.urls_running().into_iter().map(one).collect()
    }
}

/// What every node says of itself; `None` unless all answer.
async fn look(clients: &[Client]) -> Option<Vec<NodeSelf>> {
    let mut calls = JoinSet::new();
    for client in clients {
        let client = client.clone();
        calls.spawn(async move { client.node().await });
    }
    let mut seen = Vec::new();
    while let Some(answer) = calls.join_next().await {
        seen.push(answer.ok()?.ok()?);
    }
    Some(seen)
}

/// The leaders, if every node names the same ones in the same terms and exactly they say so of themselves.
fn agreement(seen: &[NodeSelf]) -> Option<Agreement> {
    let first = seen.first()?;
    let mut shards = Vec::new();
    for part in &first.shards {
        let leader = part.leader?.0;
        for node in seen {
            let same = node.shards.iter().find(|other| other.shard == part.shard)?;
            let leads = same.role == "leader";
            if same.leader?.0 != leader
                || same.term != part.term
                || leads != (node.node.0 == leader)
            {
                return None;
            }
        }
        shards.push(LedShard { shard: part.shard, leader, term: part.term });
    }
    // Every leader must be among those who answered.
    let known = |shard: &LedShard| seen.iter().any(|node| node.node.0 == shard.leader);
    (!shards.is_empty() && shards.iter().all(known)).then_some(Agreement { shards })
}

/// Whether every node has committed what any had at the first look.
fn caught_up(first: &[NodeSelf], now: &[NodeSelf]) -> bool {
    let parts = || first.iter().flat_map(|node| &node.shards);
    now.iter().flat_map(|node| &node.shards).all(|part| {
        let wanted = parts().filter(|old| old.shard == part.shard).map(|old| old.commit).max();
        Some(part.commit) >= wanted && !part.repairing
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(id: u64, leader: Option<u64>, term: u64, role: &str) -> NodeSelf {
        let leader = leader.map(|leader| format!("\"{leader}\"")).unwrap_or("null".to_owned());
        let text = format!(
            r#"{{"node":"{id}","name":"","cluster":"1","version":"","client_addr":"","peer_addr":"","started_ms":0,
            "clock_offset_ms":0,"calls_waiting":0,"claims_parked":0,"stopping":false,"peers":[],
            "shards":[{{"shard":0,"role":"{role}","term":{term},"leader":{leader},"commit":5,"applied":"0:1:5",
            "log_time_ms":0,"last_index":5,"start_index":0,"hash":"","role_since_ms":0,"repairing":false}}]}}"#
        );
        serde_json::from_str(&text).expect("a node")
    }

    // B4-44
    #[test]
    fn nodes_agree_only_on_one_leader_of_one_term() {
        let good = [node(1, Some(1), 2, "leader"), node(2, Some(1), 2, "follower")];
        let agreed = agreement(&good).expect("agreed");
        assert_eq!(agreed.shards, [LedShard { shard: 0, leader: 1, term: 2 }]);
        for bad in [
            [node(1, Some(1), 2, "leader"), node(2, None, 2, "follower")],
            [node(1, Some(1), 2, "leader"), node(2, Some(1), 1, "follower")],
            [node(1, Some(1), 2, "leader"), node(2, Some(2), 2, "leader")],
            [node(1, Some(2), 2, "follower"), node(2, Some(2), 2, "follower")],
            [node(1, Some(3), 2, "follower"), node(2, Some(3), 2, "follower")],
        ] {
            assert_eq!(agreement(&bad), None, "{bad:?}");
        }
    }
}
