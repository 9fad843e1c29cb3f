//! Leases through the client door.

use serde_json::json;

use super::Bench;

#[tokio::test]
async fn ls_a_lease_is_taken_kept_watched_and_passed_on() {
    let bench = Bench::new();
    let take = |who: &str, wait_ms: u64| json!({"holder": who, "wait_ms": wait_ms}).to_string();
    let heard = bench.post("/v1/leases/l/acquire", &take("a", 0)).await;
    assert_eq!(heard.status, 200, "{}", heard.json());
    let first = heard.json();
    assert_eq!((&first["state"], &first["ttl_ms"]), (&json!("held"), &json!(15_000)));
    let again = bench.post("/v1/leases/l/acquire", &take("a", 0)).await.json();
    assert_eq!(again["fence"], first["fence"], "the name is the identity");
    let heard = bench.post("/v1/leases/l/acquire", &take("b", 0)).await;
    assert_eq!((heard.status.as_u16(), heard.code().as_str()), (409, "lease_held"));
    let waits = bench.post("/v1/leases/l/acquire", &take("b", 1)).await.json();
    assert_eq!((&waits["state"], &waits["ahead"]), (&json!("waiting"), &json!(0)));
    let renew = |who: &str| json!({"holder": who, "fence": first["fence"]}).to_string();
    let kept = bench.post("/v1/leases/l/renew", &renew("a")).await.json();
    assert_eq!(kept["ttl_ms"], 15_000);
    assert_eq!(bench.post("/v1/leases/l/renew", &renew("b")).await.code(), "not_owner");
    let shown = bench.get("/v1/leases/l").await.json();
    assert_eq!((&shown["holder"], &shown["waiters"][0]["holder"]), (&json!("a"), &json!("b")));
    assert_eq!(bench.get("/v1/leases").await.json()["leases"][0]["name"], "l");
    // A watch with an older fence answers at once.
    let news = bench.get("/v1/leases/l?wait_ms=60000&seen=0").await.json();
    assert_eq!(news["holder"], "a");
    assert_eq!(bench.post("/v1/leases/l/release", &renew("a")).await.status, 200);
    let path = format!("/v1/leases/l?wait_ms=60000&seen={}", first["fence"].as_str().unwrap());
    assert_eq!(bench.get(&path).await.json()["holder"], "b", "the next in line has it");
    assert_eq!(bench.post("/v1/leases/l/renew", &renew("a")).await.code(), "stale_fence");
    let leave = json!({"holder": "b"}).to_string();
    assert_eq!(bench.post("/v1/leases/l/release", &leave).await.status, 200);
    assert_eq!(bench.get("/v1/leases/l").await.json()["state"], "free");
    assert_eq!(bench.post("/v1/leases/l/release", &leave).await.code(), "lease_not_held");
}

#[tokio::test]
async fn ls_bad_wishes_are_told_by_their_field() {
    let bench = Bench::new();
    for (body, field) in [
        (json!({"holder": ""}), "holder"),
        (json!({"holder": "a", "ttl_ms": 1}), "ttl_ms"),
        (json!({"holder": "a", "wait_ms": 99_999_999_u64}), "wait_ms"),
        (json!({"holder": "a", "task": {"id": "no/name", "fence": "1"}}), "task.id"),
    ] {
        let heard = bench.post("/v1/leases/l/acquire", &body.to_string()).await;
        assert_eq!(heard.status, 400, "{body}");
        assert_eq!(heard.json()["field"], field, "{body}");
    }
    assert_eq!(bench.post("/v1/leases/l/acquire", r#"{"holdr": "a"}"#).await.status, 400);
    assert_eq!(bench.get("/v1/leases?limit=0").await.status, 400);
    assert_eq!(bench.get("/v1/leases/l?wait_ms=soon").await.status, 400);
}
