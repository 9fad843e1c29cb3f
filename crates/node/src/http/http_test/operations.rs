//! Dead letters, sweeps and tombstones through the client door.

use serde_json::{Value, json};

use super::Bench;

/// Submits a task with one attempt and lets it fail for good.
async fn kill(bench: &Bench, id: &str) {
    let task = json!({"id": id, "queue": "mail", "max_attempts": 1});
    assert_eq!(bench.post("/v1/tasks", &task.to_string()).await.status, 201);
    let claim = json!({"worker": "w", "queues": ["mail"]}).to_string();
    let claimed = bench.post("/v1/tasks/claim", &claim).await.json()["tasks"][0].clone();
    assert_eq!(claimed["id"], id);
    let item = json!({"id": id, "fence": claimed["fence"], "error": "smtp refused"});
    let fail = json!({"worker": "w", "tasks": [item]}).to_string();
    let failed = bench.post("/v1/tasks/fail", &fail).await.json();
    assert_eq!(failed["tasks"][0]["outcome"], "dead");
}

async fn state(bench: &Bench, id: &str) -> Value {
    bench.get(&format!("/v1/tasks/{id}")).await.json()["state"].clone()
}

// TQ-19
#[tokio::test]
async fn tq_19_dead_tasks_are_listed_inspected_retried_and_dropped() {
    let bench = Bench::new();
    kill(&bench, "a").await;
    kill(&bench, "b").await;
    let page = bench.get("/v1/tasks?state=dead&queue=mail").await.json();
    assert_eq!(page["tasks"].as_array().unwrap().len(), 2);
    let attempt = &bench.get("/v1/tasks/a").await.json()["attempts"][0];
    assert_eq!(
        (&attempt["worker"], &attempt["outcome"], &attempt["error"]),
        (&json!("w"), &json!("failed"), &json!("smtp refused"))
    );
    assert!(attempt["started_ms"].is_u64() && attempt["ended_ms"].is_u64());
    let heard = bench.post("/v1/tasks/a/retry", "").await;
    assert_eq!((heard.status.as_u16(), &heard.json()["outcome"]), (200, &json!("retried")));
    assert_eq!(state(&bench, "a").await, "ready");
    assert_eq!(bench.post("/v1/tasks/a/retry", "").await.code(), "task_not_finished");
    assert_eq!(bench.send("DELETE", "/v1/tasks/a", &[], "").await.code(), "task_not_finished");
    let heard = bench.send("DELETE", "/v1/tasks/b", &[], "").await;
    assert_eq!((heard.status.as_u16(), &heard.json()["outcome"]), (200, &json!("dropped")));
    assert_eq!(bench.get("/v1/tasks/b").await.status, 404);
    assert_eq!(bench.post("/v1/tasks/b/retry", "").await.code(), "task_not_found");
    assert_eq!(bench.send("DELETE", "/v1/tasks/..", &[], "").await.code(), "bad_name");
}

#[tokio::test]
async fn whole_queues_are_retried_dropped_and_purged() {
    let bench = Bench::new();
    for id in ["a", "b", "c"] {
        kill(&bench, id).await;
    }
    let key = [("idempotency-key", "again")];
    for _ in 0..2 {
        // A resend gives the first count.
        let heard = bench.send("POST", "/v1/queues/mail/retry", &key, "").await;
        let expected = json!({"queue": "mail", "request": "again", "count": 3, "complete": true});
        assert_eq!((heard.status.as_u16(), heard.json()), (200, expected));
        assert!(heard.header("ikada-lsn").starts_with("0:7:"));
    }
    let info = bench.get("/v1/requests/again").await.json();
    assert_eq!((&info["status"], &info["count"]), (&json!("committed"), &json!(3)));
    let claim = json!({"worker": "w", "queues": ["mail"]}).to_string();
    assert_eq!(bench.post("/v1/tasks/claim", &claim).await.json()["tasks"][0]["id"], "a");
    assert_eq!(bench.post("/v1/queues/mail/purge", "").await.json()["count"], 2);
    assert_eq!(state(&bench, "a").await, "claimed");
    assert_eq!(bench.post("/v1/queues/mail/purge?claimed=true", "").await.json()["count"], 1);
    assert_eq!(bench.post("/v1/queues/mail/drop", "").await.json()["count"], 0);
    assert_eq!(bench.post("/v1/queues/mail/drop?finished=true", "").await.json()["count"], 3);
    assert_eq!(bench.post("/v1/queues/none/purge", "").await.code(), "queue_not_found");
    assert_eq!(bench.post("/v1/queues/mail/purge?claimed=2", "").await.code(), "bad_parameter");
}

#[tokio::test]
async fn a_purge_larger_than_one_step_takes_them_all() {
    let bench = Bench::new();
    let tasks: Vec<Value> = (0..2_300).map(|_| json!({"queue": "mail"})).collect();
    let heard = bench.post("/v1/tasks", &json!({ "tasks": tasks }).to_string()).await;
    assert_eq!(heard.status, 200);
    let answer = bench.post("/v1/queues/mail/purge", "").await.json();
    assert_eq!((&answer["count"], &answer["complete"]), (&json!(2_300), &json!(true)));
    let counts = bench.get("/v1/queues/mail").await.json()["counts"].clone();
    assert_eq!((&counts["ready"], &counts["cancelled_total"]), (&json!(0), &json!(2_300)));
}

// TQ-20
#[tokio::test]
async fn tq_20_a_voided_request_never_happens_and_a_committed_one_stays() {
    let bench = Bench::new();
    assert_eq!(bench.get("/v1/requests/late").await.json()["status"], "not_yet");
    let voided = bench.post("/v1/requests/late/void", "").await.json();
    assert_eq!(voided["status"], "voided");
    assert!(voided["voided_ms"].is_u64());
    assert_eq!(bench.get("/v1/requests/late").await.json()["status"], "voided");
    let key = [("idempotency-key", "late")];
    let heard = bench.send("POST", "/v1/tasks", &key, r#"{"id": "x"}"#).await;
    assert_eq!((heard.status.as_u16(), heard.code().as_str()), (409, "request_voided"));
    assert_eq!(bench.get("/v1/tasks/x").await.status, 404);
    let key = [("idempotency-key", "early")];
    assert_eq!(bench.send("POST", "/v1/tasks", &key, r#"{"id": "y"}"#).await.status, 201);
    let kept = bench.post("/v1/requests/early/void", "").await.json();
    assert_eq!((&kept["status"], &kept["outcome"]), (&json!("committed"), &json!("created")));
}
