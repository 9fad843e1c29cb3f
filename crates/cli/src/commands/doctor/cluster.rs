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
    findings.extend(node.database.as_deref().map(database));
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

/// How the database that holds the logs does, by the word of a node that works with it.
fn database(health: &str) -> Finding {
    let check = "database";
    match health {
        "well" => Finding::good(check, "takes writes"),
        "full" => Finding::bad(check, "has no room", "give it more; all goes on by itself then"),
        "read_only" => Finding::bad(
            check,
            "takes no writes",
            "end its read-only mode, or bring its primary back; all goes on by itself then",
        ),
        _ => {
            Finding::bad(check, "does not answer", "see its log, and the way to it from the nodes")
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::Verdict;
    use super::*;

    fn member(node: u64, connected: bool) -> Value {
        json!({"node": node.to_string(), "peer_addr": format!("10.0.0.{node}:7401"),
            "client_addr": format!("10.0.0.{node}:7400"), "connected": connected, "leads": 1})
    }

    fn shard(leader: Option<&str>) -> Value {
        json!({"shard": 0, "leader": leader, "term": 3, "commit": 9, "voters": [], "learners": [],
            "joint": false, "scheduled": 0, "ready": 0, "claimed": 0, "finished": 0})
    }

    fn view(members: &[Value], shards: &[Value]) -> ClusterView {
        let view = json!({"cluster": "1", "answered_by": "1", "status": "healthy",
            "members": members, "shards": shards});
        serde_json::from_value(view).unwrap()
    }

    fn node(own_ms: i64, peer_ms: Option<i64>) -> NodeSelf {
        let peer = json!({"node": "2", "connected": true, "clock_offset_ms": peer_ms});
        let node = json!({"node": "1", "name": "a", "cluster": "1", "version": "0", "client_addr": "a:1",
            "peer_addr": "a:2", "started_ms": 0, "clock_offset_ms": own_ms, "calls_waiting": 0,
            "claims_parked": 0, "stopping": false, "shards": [], "peers": [peer]});
        serde_json::from_value(node).unwrap()
    }

    #[test]
    fn missing_members_are_named_and_even_numbers_doubtful() {
        let all: Vec<Value> = (1..=3).map(|id| member(id, true)).collect();
        assert_eq!(members(&view(&all, &[])).verdict, Verdict::Good);
        assert_eq!(members(&view(&all[..2], &[])).verdict, Verdict::Doubtful);
        let found = members(&view(&[member(1, true), member(2, false), member(3, true)], &[]));
        assert_eq!(found.verdict, Verdict::Bad);
        assert!(found.seen.contains("10.0.0.2:7401") && !found.advice.is_empty(), "{found:?}");
    }

    #[test]
    fn a_shard_without_a_leader_is_bad() {
        assert_eq!(leaders(&view(&[], &[shard(Some("1"))])).verdict, Verdict::Good);
        let found = leaders(&view(&[], &[shard(Some("1")), shard(None)]));
        assert_eq!(found.verdict, Verdict::Bad, "{found:?}");
    }

    // LS-14
    #[test]
    fn ls_14_a_database_that_takes_no_writes_is_bad() {
        let found = |health: &str| {
            let of_node = NodeSelf { database: Some(health.to_owned()), ..node(0, None) };
            node_findings(&of_node).into_iter().find(|finding| finding.check == "database")
        };
        assert_eq!(found("well").unwrap().verdict, Verdict::Good);
        for health in ["full", "read_only", "away"] {
            let finding = found(health).unwrap();
            assert_eq!(finding.verdict, Verdict::Bad, "{finding:?}");
            assert!(!finding.advice.is_empty());
        }
        assert!(node_findings(&node(0, None)).iter().all(|finding| finding.check != "database"));
    }

    #[test]
    fn the_clock_that_is_farthest_away_is_judged() {
        let clocks = |own, peer| node_findings(&node(own, peer)).remove(0);
        assert_eq!(clocks(3, Some(-4)).verdict, Verdict::Good);
        let found = clocks(10, Some(CLOCK_DOUBTFUL_MS as i64));
        assert_eq!(found.verdict, Verdict::Doubtful);
        assert!(found.seen.contains("node 2"), "{found:?}");
        assert_eq!(clocks(-(CLOCK_BAD_MS as i64), None).verdict, Verdict::Bad);
    }
}
