//! Quotas as a tenant and an admin meet them: set, shown, refused item by item, and slowed down (X4, X7).

use super::roles::{guarded, make_token};
use super::{Bench, HttpLimits};
use ikada_api::state::Role;

const TEAM: (&str, &str) = ("ikada-namespace", "team");

async fn set(bench: &Bench, body: &str) -> super::Heard {
    bench.send("PUT", "/v1/namespaces/team", &[], body.to_owned()).await
}

#[tokio::test]
async fn x_7_a_quota_is_set_shown_and_refuses_the_items_that_do_not_fit() {
    let bench = Bench::new();
    let unused = bench.get("/v1/namespaces/team").await.json();
    assert_eq!((&unused["quota"]["version"], &unused["pending"]), (&0.into(), &0.into()));
    let heard = set(&bench, r#"{"pending_max": 2}"#).await;
    assert_eq!((heard.status.as_u16(), &heard.json()["quota"]["pending_max"]), (200, &2.into()));
    let list = r#"{"tasks": [{"id": "a"}, {"id": "b"}, {"id": "c"}]}"#;
    let answer = bench.send("POST", "/v1/tasks", &[TEAM], list).await.json();
    let problems: Vec<_> = (0..3).map(|item| &answer["tasks"][item]["problem"]["code"]).collect();
    assert_eq!(problems, [&().into(), &().into(), &serde_json::json!("namespace_full")]);
    let alone = bench.send("POST", "/v1/tasks", &[TEAM], r#"{"id": "c"}"#).await;
    assert_eq!((alone.status.as_u16(), alone.code()), (429, "namespace_full".to_owned()));
    assert_eq!(alone.header("retry-after"), "1");
    assert_eq!(bench.post("/v1/tasks", r#"{"id": "c"}"#).await.status.as_u16(), 201);
    let page = bench.get("/v1/namespaces").await.json();
    let used = page["namespaces"].as_array().unwrap().iter();
    let used: Vec<_> =
        used.map(|space| (space["name"].clone(), space["pending"].clone())).collect();
    assert_eq!(used, [("default".into(), 1.into()), ("team".into(), 2.into())]);
    let own = bench.send("GET", "/v1/quota", &[TEAM], "").await.json();
    assert_eq!((&own["name"], &own["submitted_total"]), (&"team".into(), &2.into()));
}

#[tokio::test]
async fn x_7_bad_quotas_are_refused_by_name() {
    let bench = Bench::new();
    let heard = set(&bench, r#"{"bytes_max": 5}"#).await;
    assert_eq!((heard.status.as_u16(), heard.code()), (400, "bad_value".to_owned()));
    assert!(heard.json()["detail"].as_str().unwrap().contains("at least 1048576"));
    for body in [r#"{"pending_max": -1}"#, r#"{"pending": 1}"#, "7", "{"] {
        assert_eq!(set(&bench, body).await.status.as_u16(), 400, "{body}");
    }
    let bad = bench.send("PUT", "/v1/namespaces/a%2Fb", &[], "{}").await;
    assert!(bad.status.is_client_error());
}

#[tokio::test]
async fn x_7_whoever_submits_too_fast_is_told_when_to_come_back() {
    let bench = Bench::new();
    set(&bench, r#"{"rate_max": 1}"#).await;
    let list = r#"{"tasks": [{"id": "a"}, {"id": "b"}, {"id": "c"}, {"id": "d"}, {"id": "e"}]}"#;
    let whole = bench.send("POST", "/v1/tasks", &[TEAM], list).await;
    assert_eq!(whole.status.as_u16(), 200, "a list is admitted whole, and those after it wait");
    let next = bench.send("POST", "/v1/tasks", &[TEAM], "{}").await;
    assert_eq!((next.status.as_u16(), next.code()), (429, "rate_exceeded".to_owned()));
    assert_eq!(next.header("retry-after"), "5");
    let job = r#"{"map": "wordcount", "inputs": ["x/y"]}"#;
    let job = bench.send("POST", "/v1/jobs", &[TEAM], job).await;
    assert!(job.code() == "rate_exceeded" || job.status.as_u16() == 400, "{:?}", job.body);
    assert_eq!(bench.post("/v1/tasks", "{}").await.status.as_u16(), 201, "others are not slowed");
}

// X7: a list below a follow-up comes into being later, with a completion that brings nothing: it counts with its parent.
#[tokio::test]
async fn x_7_follow_ups_of_follow_ups_count_when_a_worker_brings_them() {
    let bench = Bench::new();
    set(&bench, r#"{"pending_max": 3}"#).await;
    let list = r#"{"tasks": [{"id": "a"}, {"id": "b"}]}"#;
    assert_eq!(bench.send("POST", "/v1/tasks", &[TEAM], list).await.status.as_u16(), 200);
    let claim = r#"{"worker": "w", "queues": ["default"], "count_max": 2}"#;
    let claimed = bench.send("POST", "/v1/tasks/claim", &[TEAM], claim).await.json();
    let complete = |place: usize| {
        let task = &claimed["tasks"][place];
        let lowest = vec![serde_json::json!({}); 16];
        let below = vec![serde_json::json!({"then": lowest}); 3];
        let body = serde_json::json!({"worker": "w", "tasks": [
            {"id": task["id"], "fence": task["fence"], "then": [{"then": below}]}]});
        let bench = &bench;
        async move {
            let heard = bench.send("POST", "/v1/tasks/complete", &[TEAM], body.to_string()).await;
            heard.json()["tasks"][0].clone()
        }
    };
    // One at the top, and 51 below it: no other turn comes while this test runs.
    let first = complete(0).await;
    assert_eq!(first["problem"], serde_json::Value::Null, "the first takes the turn: {first}");
    let second = complete(1).await;
    assert_eq!(
        (&second["outcome"], &second["problem"]["code"]),
        (&"unavailable".into(), &"rate_exceeded".into())
    );
    let resent = complete(0).await;
    assert_ne!(resent["outcome"], "unavailable", "what was let in needs no turn again");
}

#[tokio::test]
async fn x_7_objects_stop_at_the_quota_before_their_bytes_are_taken() {
    let bench = Bench::new();
    set(&bench, r#"{"object_bytes_max": 10}"#).await;
    let put = |name: &'static str, body: &'static str, key: &'static str| {
        let path = format!("/v1/objects/b/{name}");
        let bench = &bench;
        async move {
            let headers = [TEAM, ("idempotency-key", key)];
            bench.send("PUT", &path, &headers, body).await
        }
    };
    assert_eq!(put("one", "12345678", "k1").await.status.as_u16(), 201);
    let heard = put("two", "123", "k2").await;
    assert_eq!((heard.status.as_u16(), heard.code()), (429, "namespace_objects_full".to_owned()));
    assert_eq!(put("two", "12", "k3").await.status.as_u16(), 201);
    assert_eq!(put("one", "12345678", "k1").await.status.as_u16(), 201, "a resend is answered");
}

#[tokio::test]
async fn x_4_a_tenant_sees_its_own_quota_and_no_other() {
    let bench = Bench::guarded(HttpLimits::default(), guarded());
    let token = make_token(bench.door(), "ann", Role::Submitter, &["team"]).await;
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str())];
    let own = bench.send("GET", "/v1/quota", &headers, "").await;
    assert_eq!(own.json()["name"], "team");
    for path in ["/v1/namespaces", "/v1/namespaces/team"] {
        assert_eq!(bench.send("GET", path, &headers, "").await.status.as_u16(), 403);
    }
    let raised = bench.send("PUT", "/v1/namespaces/team", &headers, "{}").await;
    assert_eq!(raised.status.as_u16(), 403);
}
