//! A task's life through the public routes.

use serde_json::json;

use super::Bench;

#[tokio::test]
async fn one_task_is_created_once_under_its_key() {
    let bench = Bench::new();
    let key = [("idempotency-key", "k1")];
    let body = r#"{"queue": "mail", "payload": {"to":  "a"}, "priority": 9}"#;
    let first = bench.send("POST", "/v1/tasks", &key, body).await;
    assert_eq!(first.status, 201);
    assert_eq!(first.header("ikada-lsn"), "0:7:2");
    let document = first.json();
    assert_eq!(document["request"], "k1");
    assert_eq!(document["tasks"][0]["outcome"], "created");
    let id = document["tasks"][0]["id"].as_str().unwrap().to_owned();
    // TQ-21: a resend finds the same task, and the first outcome.
    let again = bench.send("POST", "/v1/tasks", &key, body).await;
    assert_eq!(again.json()["tasks"][0]["id"], id.as_str());
    assert_eq!(bench.get("/v1/queues/mail").await.json()["counts"]["submitted_total"], 1);
    // The same key with another body is refused.
    let other = bench.send("POST", "/v1/tasks", &key, r#"{"queue": "mail"}"#).await;
    assert_eq!((other.status.as_u16(), other.code().as_str()), (409, "idempotency_conflict"));
    let shown = bench.get(&format!("/v1/tasks/{id}")).await;
    assert_eq!(shown.json()["payload"], json!({"to": "a"}));
    assert_eq!(shown.json()["state"], "ready");
    let request = bench.get("/v1/requests/k1").await.json();
    assert_eq!((&request["status"], &request["outcome"]), (&json!("committed"), &json!("created")));
    assert_eq!(bench.get("/v1/requests/k2").await.json()["status"], "not_yet");
    assert_eq!(bench.get("/v1/requests/k1?item=1").await.json()["status"], "not_yet");
}

#[tokio::test]
async fn a_list_gives_each_item_its_own_outcome() {
    let bench = Bench::new();
    assert_eq!(bench.post("/v1/tasks", r#"{"id": "a", "payload": 1}"#).await.status, 201);
    let body = r#"{"tasks": [{"id": "a", "payload": 1}, {"id": "a", "payload": 2}, {"id": "b"}]}"#;
    let heard = bench.post("/v1/tasks", body).await;
    assert_eq!(heard.status, 200);
    let document = heard.json();
    let outcomes: Vec<_> =
        document["tasks"].as_array().unwrap().iter().map(|item| &item["outcome"]).collect();
    assert_eq!(outcomes, ["existing", "refused", "created"]);
    assert_eq!(document["tasks"][1]["problem"]["code"], "conflict");
}

#[tokio::test]
async fn claim_renew_complete_and_the_stale_fence() {
    let bench = Bench::new();
    bench
        .post("/v1/tasks", r#"{"tasks": [{"id": "a", "payload_base64": "AHw="}, {"id": "b"}]}"#)
        .await;
    let claim = r#"{"worker": "w1", "session": "18446744073709551615", "queues": ["default"], "count_max": 1}"#;
    let claimed = bench.post("/v1/tasks/claim", claim).await;
    assert_eq!(claimed.status, 200);
    let task = claimed.json()["tasks"][0].clone();
    assert_eq!((&task["id"], &task["attempt"]), (&json!("a"), &json!(1)));
    assert_eq!(task["payload_base64"], "AHw=");
    assert!(task["fence"].is_string(), "fences exceed what JSON numbers carry");
    let fence = task["fence"].as_str().unwrap();
    let items = format!(r#"[{{"id": "a", "fence": "{fence}"}}, {{"id": "a", "fence": "999"}}]"#);
    let renew = format!(r#"{{"worker": "w1", "tasks": {items}}}"#);
    let renewed = bench.post("/v1/tasks/renew", &renew).await.json();
    assert_eq!(renewed["tasks"][0]["outcome"], "renewed");
    assert_eq!(renewed["tasks"][0]["ttl_ms"], 30_000);
    assert_eq!(renewed["tasks"][1]["problem"]["code"], "stale_fence");
    // TQ-18: only the live claim's fence counts.
    let complete = |fence: &str| {
        format!(
            r#"{{"worker": "w1", "tasks": [{{"id": "a", "fence": "{fence}", "result": [1]}}]}}"#
        )
    };
    let stale = bench.post("/v1/tasks/complete", &complete("999")).await.json();
    assert_eq!(stale["tasks"][0]["outcome"], "refused");
    for _ in 0..2 {
        let done = bench.post("/v1/tasks/complete", &complete(fence)).await;
        assert_eq!(
            done.json()["tasks"][0]["outcome"],
            "completed",
            "a repeat gives the first outcome"
        );
        assert!(done.header("ikada-lsn").starts_with("0:7:"));
    }
    let shown = bench.get("/v1/tasks/a").await.json();
    assert_eq!((&shown["state"], &shown["result"]), (&json!("done"), &json!([1])));
    assert_eq!(shown["attempts"][0]["outcome"], "completed");
}

#[tokio::test]
async fn failures_retry_then_die() {
    let bench = Bench::new();
    bench.post("/v1/tasks", r#"{"id": "a", "max_attempts": 1}"#).await;
    let claim = r#"{"worker": "w", "queues": ["default"]}"#;
    let fence = bench.post("/v1/tasks/claim", claim).await.json()["tasks"][0]["fence"].clone();
    let fail = json!({"worker": "w", "tasks": [{"id": "a", "fence": fence, "error": "disk"}]});
    let failed = bench.post("/v1/tasks/fail", &fail.to_string()).await.json();
    assert_eq!(failed["tasks"][0]["outcome"], "dead");
    let shown = bench.get("/v1/tasks/a").await.json();
    assert_eq!(shown["dead_reason"], "attempts_exhausted");
    assert_eq!(shown["attempts"][0]["error"], "disk");
}

#[tokio::test]
async fn cancel_list_and_pages() {
    let bench = Bench::new();
    for id in ["a", "b", "c"] {
        bench.post("/v1/tasks", &format!(r#"{{"id": "{id}", "queue": "q"}}"#)).await;
    }
    let cancelled = bench.post("/v1/tasks/a/cancel", "").await;
    assert_eq!(
        (cancelled.status.as_u16(), &cancelled.json()["outcome"]),
        (200, &json!("cancelled"))
    );
    assert_eq!(bench.post("/v1/tasks/a/cancel", "").await.code(), "task_finished");
    assert_eq!(bench.post("/v1/tasks/zzz/cancel", "").await.code(), "task_not_found");
    assert_eq!(bench.get("/v1/tasks/zzz").await.code(), "task_not_found");
    let ready = bench.get("/v1/tasks?state=ready&queue=q").await.json();
    assert_eq!(ready["tasks"].as_array().unwrap().len(), 2);
    let mut seen = 0;
    let mut path = "/v1/tasks?limit=1".to_owned();
    loop {
        let page = bench.get(&path).await.json();
        seen += page["tasks"].as_array().unwrap().len();
        match page["next"].as_str() {
            Some(next) => path = format!("/v1/tasks?limit=1&after={next}"),
            None => break,
        }
    }
    assert_eq!(seen, 3);
}

#[tokio::test]
async fn queues_are_set_paused_and_resumed() {
    let bench = Bench::new();
    assert_eq!(bench.get("/v1/queues/q").await.code(), "queue_not_found");
    let set =
        bench.send("PUT", "/v1/queues/q", &[], r#"{"max_attempts": 2, "ttl_ms": 5000}"#).await;
    assert_eq!(set.status, 200);
    assert_eq!(set.json()["settings"]["max_attempts"], 2);
    assert_eq!(set.json()["settings"]["version"], 1);
    let late =
        bench.send("PUT", "/v1/queues/q", &[], r#"{"ttl_ms": 9000, "expected_version": 0}"#).await;
    assert_eq!(late.code(), "version_conflict");
    assert_eq!(bench.post("/v1/queues/q/pause", "").await.json()["settings"]["paused"], true);
    bench.post("/v1/tasks", r#"{"queue": "q"}"#).await;
    let claim = r#"{"worker": "w", "queues": ["q"]}"#;
    assert_eq!(bench.post("/v1/tasks/claim", claim).await.json()["tasks"], json!([]));
    assert_eq!(bench.post("/v1/queues/q/resume", "").await.json()["settings"]["paused"], false);
    assert_eq!(
        bench.post("/v1/tasks/claim", claim).await.json()["tasks"].as_array().unwrap().len(),
        1
    );
    let listed = bench.get("/v1/queues").await.json();
    assert_eq!(listed["queues"][0]["name"], "q");
}

#[tokio::test]
async fn namespaces_are_apart() {
    let bench = Bench::new();
    bench.post("/v1/tasks?namespace=blue", r#"{"id": "a"}"#).await;
    assert_eq!(bench.get("/v1/tasks/a").await.status, 404);
    assert_eq!(bench.get("/v1/tasks/a?namespace=blue").await.status, 200);
    let by_header = bench.send("GET", "/v1/tasks/a", &[("ikada-namespace", "blue")], "").await;
    assert_eq!(by_header.status, 200);
    let both =
        bench.send("GET", "/v1/tasks/a?namespace=red", &[("ikada-namespace", "blue")], "").await;
    assert_eq!(both.code(), "bad_parameter");
}
