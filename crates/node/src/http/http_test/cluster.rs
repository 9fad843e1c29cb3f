//! What a node says about itself and its cluster.

use std::time::{Duration, Instant};

use ikada_replica::consensus::{Ballot, Role};
use ikada_replica::status::RoleEvent;
use serde_json::json;

use super::Bench;
use crate::gossip::{Fact, ShardLag};
use crate::http::door::Door;

fn event(sequence: u64) -> RoleEvent {
    RoleEvent {
        sequence,
        wall_ms: 5,
        shard: 0,
        term: 7,
        role: Role::Leader,
        leader: Some(1),
        vote: Some(1),
        pre_votes: None,
        votes: Some(Ballot { granted: vec![1, 2], refused: vec![3] }),
        reason: "election won",
    }
}

#[tokio::test]
async fn the_cluster_is_healthy_degraded_or_unavailable() {
    let bench = Bench::new();
    let seen = bench.get("/v1/cluster").await.json();
    assert_eq!(seen["status"], "healthy");
    assert_eq!(seen["cluster"], u64::MAX.to_string());
    assert_eq!(seen["shards"][0]["leader"], "1");
    assert_eq!(seen["members"][0]["leads"], 1);
    bench.door().change_status(|status| status.peers[1].connected = false);
    assert_eq!(bench.get("/v1/cluster").await.json()["status"], "degraded");
    bench.door().change_status(|status| status.shards[0].leader = None);
    let seen = bench.get("/v1/cluster").await.json();
    assert_eq!(seen["status"], "unavailable");
    assert!(
        seen["shards"][0].get("leader").is_none(),
        "B4-47: no leader is named before it is proven"
    );
}

fn lagging(node: u64, shard: u16, term: u64, behind: Vec<(u64, u64)>) -> Fact {
    Fact {
        node,
        life_ms: 1,
        sequence: term,
        cpu: 0,
        memory: 0,
        admitted_last_minute: 0,
        shed_last_minute: 0,
        cache_hit_permille: 0,
        cache_bytes: 0,
        lags: vec![ShardLag { shard, term, last_index: 12, behind }],
    }
}

// B4-52: a leader tells of now; what it told others is shown by them, with its age, and only while it leads.
#[tokio::test]
async fn b4_52_a_node_tells_how_far_followers_of_other_leaders_are() {
    let bench = Bench::new();
    let own = bench.get("/v1/cluster").await.json();
    let told = json!([{"node": "2", "matched": 12, "behind": 0}, {"node": "3", "matched": 9, "behind": 3}]);
    assert_eq!(own["shards"][0]["followers"], told);
    assert!(own["shards"][0].get("followers_heard_ms_ago").is_none(), "{own}");
    bench.door().change_status(|status| {
        status.shards[0].leader = Some(2);
        status.shards[0].followers.clear();
    });
    let none = bench.get("/v1/cluster").await.json();
    assert!(none["shards"][0].get("followers").is_none(), "nothing was heard: {none}");
    let hear = |fact: Fact, age: Duration| {
        let then = Instant::now().checked_sub(age).unwrap();
        bench.door().shelf().gossip().hear(&[fact], &[2, 3], then);
    };
    hear(lagging(2, 0, 6, vec![(1, 4)]), Duration::ZERO);
    let none = bench.get("/v1/cluster").await.json();
    assert!(none["shards"][0].get("followers").is_none(), "of an earlier term: {none}");
    hear(lagging(3, 0, 7, vec![(1, 5)]), Duration::ZERO);
    let none = bench.get("/v1/cluster").await.json();
    assert!(none["shards"][0].get("followers").is_none(), "of who does not lead: {none}");
    hear(lagging(3, 1, 8, vec![]), Duration::ZERO);
    hear(lagging(2, 0, 7, vec![(1, 2), (3, 0)]), Duration::from_secs(6));
    let heard = bench.get("/v1/cluster").await.json();
    let told = json!([{"node": "1", "matched": 10, "behind": 2}, {"node": "3", "matched": 12, "behind": 0}]);
    assert_eq!(heard["shards"][0]["followers"], told);
    assert!(heard["shards"][0]["followers_heard_ms_ago"].as_u64() >= Some(6_000), "{heard}");
}

// B4-52
#[tokio::test]
async fn b4_52_a_node_tells_its_role_term_vote_and_peers() {
    let seen = Bench::new().get("/v1/nodes/self").await.json();
    let shard = &seen["shards"][0];
    assert_eq!((&shard["role"], &shard["term"]), (&json!("leader"), &json!(7)));
    assert_eq!((&shard["voted_for"], &shard["leader"]), (&json!("1"), &json!("1")));
    assert_eq!(shard["applied"], "0:7:12");
    assert_eq!(shard["hash"], "0000000000000abc");
    assert_eq!(seen["peers"][0]["heard_ms_ago"], 20);
    assert_eq!(seen["name"], "north");
}

#[tokio::test]
async fn readiness_gives_its_reason() {
    let bench = Bench::new();
    assert_eq!(bench.get("/readyz").await.status, 200);
    bench.door().change_status(|status| status.shards[0].repairing = true);
    let heard = bench.get("/readyz").await;
    assert_eq!((heard.status.as_u16(), heard.code().as_str()), (503, "not_ready"));
    assert!(heard.json()["detail"].as_str().unwrap().contains("shard 0 is being fetched"));
    bench.door().change_status(|status| status.shards[0].leader = None);
    assert!(bench.get("/readyz").await.json()["detail"].as_str().unwrap().contains("no leader"));
    bench.door().change_status(|status| status.shards.clear());
    assert_eq!(bench.get("/readyz").await.status, 503);
    assert_eq!(bench.get("/healthz").await.status, 200);
}

// MQ-27
#[tokio::test]
async fn events_come_with_reasons_and_from_a_place_on() {
    let bench = Bench::new();
    assert_eq!(bench.get("/v1/cluster/events").await.json()["next"], 0);
    for sequence in 1..=3 {
        bench.door().add_event(event(sequence));
    }
    let page = bench.get("/v1/cluster/events?after=1").await.json();
    assert_eq!(page["events"].as_array().unwrap().len(), 2);
    assert_eq!(page["events"][0]["reason"], "election won");
    assert_eq!(page["events"][0]["votes"], json!({"granted": ["1", "2"], "refused": ["3"]}));
    assert_eq!(page["next"], 3);
}

// MQ-29
#[tokio::test]
async fn transfer_of_one_shard_or_all() {
    let bench = Bench::new();
    let one = bench.post("/v1/cluster/transfer", r#"{"shard": 0, "to": "2"}"#).await;
    assert_eq!(one.json()["shards"], json!([{"shard": 0, "accepted": true}]));
    assert_eq!(bench.post("/v1/cluster/transfer", "").await.json()["shards"][0]["accepted"], true);
    let refused = bench.post("/v1/cluster/transfer", r#"{"to": 9}"#).await;
    assert_eq!(refused.status, 200, "all shards: each has its own outcome");
    assert_eq!(refused.json()["shards"][0]["problem"]["code"], "node_not_found");
}

// TQ-23
#[tokio::test]
async fn tq_23_metrics_are_prometheus_text() {
    let bench = Bench::new();
    bench.get("/v1/nothing").await;
    let heard = bench.get("/metrics").await;
    let page = String::from_utf8(heard.body.to_vec()).unwrap();
    assert!(heard.header("content-type").starts_with("text/plain; version=0.0.4"));
    for line in [
        "ikada_info{version=\"0.0.0-test\",node=\"1\"} 1",
        "ikada_tasks_ready{shard=\"0\"} 3",
        "ikada_shard_is_leader{shard=\"0\"} 1",
        "ikada_peer_connected{peer=\"2\"} 1",
        "ikada_clock_offset_ms -3",
        "ikada_log_syncs_total 17",
        "ikada_http_answers_total{class=\"4xx\"} 1",
    ] {
        assert!(page.lines().any(|found| found == line), "{line}\n{page}");
    }
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        let value = line.rsplit(' ').next().unwrap();
        assert!(value.parse::<f64>().is_ok(), "{line}");
    }
}

#[tokio::test]
async fn the_description_is_served() {
    let heard = Bench::new().get("/openapi.json").await;
    assert_eq!(heard.header("content-type"), "application/json");
    assert_eq!(heard.json()["openapi"], "3.1.0");
}

#[tokio::test]
async fn tq_29_growth_is_begun_once_and_refused_in_words() {
    let bench = Bench::new();
    let path = "/v1/cluster/growth";
    let few = bench.post(path, r#"{"shards":1}"#).await;
    assert_eq!((few.status.as_u16(), few.code().as_str()), (400, "bad_shard_count"));
    assert!(few.json()["detail"].as_str().unwrap().contains("has 1 shards"));
    let many = bench.post(path, r#"{"shards":257}"#).await;
    assert_eq!((many.status.as_u16(), many.code().as_str()), (400, "bad_shard_count"));
    let key = [("idempotency-key", "g")];
    for _ in 0..2 {
        let begun = bench.send("POST", path, &key, r#"{"shards":2}"#).await;
        assert_eq!(begun.status.as_u16(), 202);
        assert_eq!(begun.json(), json!({"shards": 2, "slots": 2048, "request": "g"}));
    }
    let again = bench.post(path, r#"{"shards":3}"#).await;
    assert_eq!((again.status.as_u16(), again.code().as_str()), (409, "growth_running"));
}
