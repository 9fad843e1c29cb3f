//! Changing members and steering leaders: what is asked of the cluster, and what is refused at the door.

use ikada_api::state::{LEVEL, Roster};
use ikada_replica::founding::{Candidate, FoundingMessage, Plan};
use serde_json::json;

use super::Bench;
use crate::peers::PROTOCOL;

fn candidate(node: u64) -> Candidate {
    let (peer_addr, client_addr) = (format!("10.0.0.{node}:7401"), format!("10.0.0.{node}:7400"));
    Candidate { node, incarnation: node, peer_addr, client_addr }
}

fn waiting(node: u64, protocol: u16) -> FoundingMessage {
    FoundingMessage::Waiting { me: candidate(node), protocol, level: LEVEL }
}

/// What a node of this version says that waits to be added.
pub(super) fn waits(node: u64) -> FoundingMessage {
    waiting(node, PROTOCOL)
}

fn add(peer_addr: &str) -> String {
    json!({ "peer_addr": peer_addr }).to_string()
}

#[tokio::test]
async fn a_waiting_node_is_added_and_progress_is_shown() {
    let bench = Bench::new();
    bench.door().add_stranger("10.0.0.4:7401", waiting(4, PROTOCOL));
    let heard = bench.post("/v1/cluster/nodes", &add("10.0.0.4:7401")).await;
    assert_eq!(heard.status, 202, "{:?}", heard.body);
    assert_eq!(heard.json()["add"], "4");
    // One at a time.
    bench.door().add_stranger("10.0.0.5:7401", waiting(5, PROTOCOL));
    let heard = bench.post("/v1/cluster/nodes", &add("10.0.0.5:7401")).await;
    assert_eq!((heard.status.as_u16(), heard.code().as_str()), (409, "change_pending"));
    // The same again is no second change.
    let heard = bench.post("/v1/cluster/nodes", &add("10.0.0.4:7401")).await;
    assert_eq!(heard.status, 202);
    let change =
        ikada_api::state::MemberChange { number: 9, add: Some(4), remove: None, since_ms: 5 };
    let roster = Roster { change: Some(change), ..Roster::default() };
    bench.door().change_status(|status| status.roster = Some(roster));
    let seen = bench.get("/v1/cluster").await.json();
    assert_eq!(seen["change"]["stage"], "node 4 becomes a learner");
    assert_eq!((&seen["change"]["shards_done"], &seen["change"]["shards"]), (&json!(0), &json!(1)));
    bench.door().change_status(|status| status.shards[0].learners = vec![4]);
    let seen = bench.get("/v1/cluster").await.json();
    assert_eq!(seen["change"]["stage"], "node 4 catches up");
}

#[tokio::test]
async fn a_node_that_cannot_be_added_is_refused_with_the_reason() {
    let bench = Bench::new();
    let foreign = Plan { cluster: 7, members: vec![candidate(9)], shards: 1 };
    bench.door().add_stranger("10.0.0.9:7401", FoundingMessage::Founded(foreign));
    bench.door().add_stranger("10.0.0.8:7401", waiting(8, PROTOCOL + 1));
    bench.door().add_stranger("10.0.0.3:7401", waiting(3, PROTOCOL));
    for (addr, code) in [
        ("10.0.0.7:7401", "node_unreachable"),
        ("10.0.0.9:7401", "other_cluster"),
        ("10.0.0.8:7401", "other_version"),
        ("10.0.0.3:7401", "node_exists"),
    ] {
        let heard = bench.post("/v1/cluster/nodes", &add(addr)).await;
        assert_eq!((heard.status.as_u16(), heard.code().as_str()), (409, code), "{addr}");
    }
    let heard = bench.post("/v1/cluster/nodes", "{}").await;
    assert_eq!(heard.status, 400);
    let heard = bench.send("DELETE", "/v1/cluster/nodes/x", &[], "").await;
    assert_eq!((heard.status.as_u16(), heard.code().as_str()), (400, "bad_parameter"));
    let heard = bench.send("DELETE", "/v1/cluster/nodes/77", &[], "").await;
    assert_eq!((heard.status.as_u16(), heard.code().as_str()), (404, "node_not_found"));
}

#[tokio::test]
async fn a_removal_that_costs_the_majority_is_refused() {
    let bench = Bench::new();
    bench.door().change_status(|status| status.peers[1].connected = false);
    let heard = bench.send("DELETE", "/v1/cluster/nodes/2", &[], "").await;
    assert_eq!((heard.status.as_u16(), heard.code().as_str()), (409, "no_majority_left"));
    let heard = bench.send("DELETE", "/v1/cluster/nodes/3", &[], "").await;
    assert_eq!(heard.status, 202, "the one that is gone may go: {:?}", heard.body);
}

// MQ-29
#[tokio::test]
async fn mq_29_a_node_is_cordoned_and_preferred_by_name() {
    let bench = Bench::new();
    let put = |path: &'static str, body: &'static str| bench.send("PUT", path, &[], body);
    assert_eq!(put("/v1/cluster/nodes/2", "{\"cordoned\": true}").await.status, 200);
    let heard = put("/v1/cluster/nodes/9", "{\"cordoned\": true}").await;
    assert_eq!((heard.status.as_u16(), heard.code().as_str()), (404, "node_not_found"));
    let heard = put("/v1/cluster/nodes/2", "{\"priority\": 5000}").await;
    assert_eq!((heard.status.as_u16(), heard.code().as_str()), (400, "bad_value"));
    let heard = put("/v1/cluster/nodes/2", "{\"cordon\": true}").await;
    assert_eq!(heard.code().as_str(), "unknown_field");
}

// MQ-33
#[tokio::test]
async fn mq_33_settings_of_elections_are_shown_and_changed() {
    let bench = Bench::new();
    let seen = bench.get("/v1/cluster").await.json();
    let usual = json!({
        "timeout_ms": 1000, "timeout_ms_max": 2000, "heartbeat_ms": 100, "changed": false
    });
    assert_eq!(seen["elections"], usual);
    let place = "/v1/cluster/elections";
    for timeout_ms in ["5000", "null"] {
        let body = format!(r#"{{"timeout_ms":{timeout_ms}}}"#);
        let heard = bench.send("PUT", place, &[], body).await;
        assert_eq!(heard.status, 200, "{:?}", heard.body);
    }
    for timeout_ms in ["199", "60001", "-1", "\"soon\""] {
        let body = format!(r#"{{"timeout_ms":{timeout_ms}}}"#);
        let heard = bench.send("PUT", place, &[], body).await;
        assert_eq!(heard.status, 400, "{timeout_ms}");
        assert!(heard.json().to_string().contains("timeout_ms"), "{:?}", heard.body);
    }
    bench.door().change_status(|status| status.elections_ms = None);
    let heard = bench.send("PUT", place, &[], r#"{"timeout_ms":5000}"#).await;
    assert_eq!((heard.status.as_u16(), heard.code().as_str()), (409, "no_elections"));
    assert!(
        heard.json()["detail"].as_str().unwrap().contains("5000 ms"),
        "LS-7: what holds instead"
    );
}

#[tokio::test]
async fn where_logs_live_in_a_database_no_change_of_members_begins() {
    let bench = Bench::new();
    bench.door().change_status(|status| status.elections_ms = None);
    let body = r#"{"peer_addr":"127.0.0.1:1"}"#;
    let added = bench.send("POST", "/v1/cluster/nodes", &[], body).await;
    let removed = bench.send("DELETE", "/v1/cluster/nodes/2", &[], "").await;
    for heard in [added, removed] {
        assert_eq!((heard.status.as_u16(), heard.code().as_str()), (409, "members_unsupported"));
    }
}
