//! The cluster: whether all members are there, lead, follow, and agree on the time.

use ikada_api::Client;
use ikada_api::v1::{ClusterView, NodeSelf};

use super::Finding;
use crate::args::SharedArgs;
use crate::failure::Failure;

/// Schedules and delays go by the median of the clocks; a node further away is alarmed.
const CLOCK_BAD_MS: u64 = 5_000;
const CLOCK_DOUBTFUL_MS: u64 = 500;

/// Looks at the cluster, if one answers.
pub(super) async fn look(shared: &SharedArgs) -> Result<Vec<Finding>, Failure> {
    let client = shared.client()?;
    Ok(match client.cluster().await {
        Ok(view) => describe(&client, &view).await,
        Err(error) => {
            let advice =
                "fine before the first start; otherwise see the node's log, or name one with --url";
            vec![Finding::doubtful("cluster", format!("no answer: {error}"), advice)]
        }
    })
}

async fn describe(client: &Client, view: &ClusterView) -> Vec<Finding> {
    let mut findings = vec![members(view), leaders(view)];
    match client.node().await {
        Ok(node) => findings.extend(node_findings(&node)),
        Err(error) => {
            findings.push(Finding::doubtful(
                "node",
                error.to_string(),
                "ask with a token that may look at nodes",
            ));
        }
    }
    findings
}

fn members(view: &ClusterView) -> Finding {
    let check = "members";
    let away: Vec<String> = view
        .members
        .iter()
        .filter(|member| !member.connected)
        .map(|member| format!("{} ({})", member.node, member.peer_addr))
        .collect();
    let count = view.members.len();
    if away.is_empty() {
        return match count {
            2 | 4 | 6 => {
                let advice =
                    "an even number survives no more losses than one less: use 1, 3, 5 or 7";
                Finding::doubtful(check, format!("all {count} are connected"), advice)
            }
            _ => Finding::good(check, format!("all {count} are connected")),
        };
    }
    let seen = format!("{} of {count} are not connected: {}", away.len(), away.join(", "));
    Finding::bad(check, seen, "see whether they run and whether their peer ports can be reached")
}

fn leaders(view: &ClusterView) -> Finding {
    let check = "leaders";
    let without: Vec<String> = view
        .shards
        .iter()
        .filter(|shard| shard.leader.is_none())
        .map(|shard| shard.shard.to_string())
        .collect();
    match without.is_empty() {
        true => Finding::good(check, format!("all {} shards have one", view.shards.len())),
        false => {
            let seen = format!("shard {} has none", without.join(", "));
            Finding::bad(
                check,
                seen,
                "a majority of the nodes must be connected: start the missing ones",
            )
        }
    }
}

fn node_findings(node: &NodeSelf) -> Vec<Finding> {
    let mut clocks = vec![(node.node.0, node.clock_offset_ms)];
    let peers = node.peers.iter();
    clocks.extend(peers.filter_map(|peer| {
        // A peer's clock is told against the asked node's, and that one against the median.
        Some((peer.node.0, node.clock_offset_ms + peer.clock_offset_ms?))
    }));
    let farthest = clocks.into_iter().max_by_key(|(_, offset)| offset.unsigned_abs());
    let mut findings = Vec::new();
    if let Some((id, offset)) = farthest {
        let seen = format!("node {id} is farthest from the median, by {offset} ms");
        let advice = "let a time server keep its clock";
        findings.push(match offset.unsigned_abs() {
            far if far >= CLOCK_BAD_MS => Finding::bad("clocks", seen, advice),
            far if far >= CLOCK_DOUBTFUL_MS => Finding::doubtful("clocks", seen, advice),
            _ => Finding::good("clocks", seen),
        });
    }
    let repairing = node.shards.iter().filter(|shard| shard.repairing).count();
    findings.push(match repairing {
        0 => Finding::good("log", format!("of node {} is whole", node.node)),
        count => {
            let seen = format!("node {} fetches the log of {count} shards again", node.node);
            Finding::doubtful("log", seen, "its disk was damaged: wait, then look at the disk")
        }
    });
    findings
}
