//! Lists: every item has an outcome of its own, and a bad one spoils nothing else.

use serde_json::{Value, json};

use super::{Bench, Heard};

/// Outcome, code and field of each item.
fn items(heard: &Heard) -> Vec<(String, String, String)> {
    assert_eq!(heard.status, 200, "{}", String::from_utf8_lossy(&heard.body));
    let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
    let tasks = heard.json()["tasks"].as_array().unwrap().clone();
    let show = |item: &Value| {
        let problem = &item["problem"];
        (text(&item["outcome"]), text(&problem["code"]), text(&problem["field"]))
    };
    tasks.iter().map(show).collect()
}

fn outcome(outcome: &str, code: &str, field: &str) -> (String, String, String) {
    (outcome.to_owned(), code.to_owned(), field.to_owned())
}

#[tokio::test]
async fn one_bad_submission_spoils_nothing_else() {
    let bench = Bench::new();
    let big = "x".repeat((1 << 20) - 1);
    let body = json!({"tasks": [
        {"id": "good-1"},
        {"id": "a/b"},
        {"id": "wrong-kind", "delay_ms": "soon"},
        {"id": "unknown", "prio": 1},
        "not a task",
        {"id": "big", "payload": big},
        {"id": "k:x", "key": "other"},
        {"key": "u", "id": "good-2"},
        {"id": "p", "then": [{"key": "q"}]},
    ]});
    let heard = bench.post("/v1/tasks", &body.to_string()).await;
    assert_eq!(
        items(&heard),
        [
            outcome("created", "", ""),
            outcome("refused", "bad_name", "tasks[1].id"),
            outcome("refused", "bad_json", "tasks[2].delay_ms"),
            outcome("refused", "unknown_field", "tasks[3].prio"),
            outcome("refused", "bad_json", "tasks[4]"),
            outcome("refused", "too_large", "tasks[5].payload"),
            outcome("refused", "key_conflict", "tasks[6].key"),
            outcome("created", "", ""),
            outcome("refused", "key_conflict", "tasks[8].then[0].key"),
        ]
    );
    let tasks = heard.json()["tasks"].clone();
    assert_eq!((&tasks[2]["id"], &tasks[4]["id"]), (&json!("wrong-kind"), &json!("")));
    assert_eq!(tasks[7]["id"], "u:good-2");
    assert_eq!(bench.get("/v1/tasks/good-1").await.status, 200);
    assert_eq!(bench.get("/v1/tasks/u:good-2").await.status, 200);
    assert_eq!(bench.get("/v1/tasks/wrong-kind").await.status, 404);
    // A list of nothing but bad items is still a list.
    let heard = bench.post("/v1/tasks", r#"{"tasks": [{"x": 1}]}"#).await;
    assert_eq!(items(&heard), [outcome("refused", "unknown_field", "tasks[0].x")]);
    // What is wrong outside the items refuses the request.
    let heard = bench.post("/v1/tasks", r#"{"tasks": [{"x": 1}], "y": 1}"#).await;
    assert_eq!((heard.status.as_u16(), heard.code().as_str()), (400, "unknown_field"));
}

// An input that is not there is the fault of the task that names it.
#[tokio::test]
async fn one_task_without_its_input_spoils_nothing_else() {
    let bench = Bench::new();
    bench.send("PUT", "/v1/objects/texts/a", &[], b"one".to_vec()).await;
    let task = |id: &str, key: &str| {
        let inputs = json!([{"name": "a", "bucket": "texts", "key": key}]);
        json!({"id": id, "program": "wordcount", "inputs": inputs, "reuse": true})
    };
    let body = json!({"tasks": [{"id": "t1"}, task("t2", "none"), task("t3", "a")]});
    let heard = bench.post("/v1/tasks", &body.to_string()).await;
    assert_eq!(
        items(&heard),
        [
            outcome("created", "", ""),
            outcome("refused", "object_not_found", "tasks[1].inputs[0]"),
            outcome("created", "", ""),
        ]
    );
    assert_eq!(heard.json()["tasks"][1]["id"], "t2");
    assert_eq!(bench.get("/v1/tasks/t2").await.status, 404);
    let alone = bench.post("/v1/tasks", &task("t2", "none").to_string()).await;
    assert_eq!((alone.status.as_u16(), alone.code().as_str()), (404, "object_not_found"));
    assert_eq!(alone.json()["field"], "inputs[0]");
}

#[tokio::test]
async fn one_bad_report_spoils_nothing_else() {
    let bench = Bench::new();
    bench.post("/v1/tasks", r#"{"tasks": [{"id": "a"}, {"id": "b"}, {"id": "c"}]}"#).await;
    let claim = r#"{"worker": "w", "queues": ["default"], "count_max": 3}"#;
    let heard = bench.post("/v1/tasks/claim", claim).await.json();
    let fence = |place: usize| heard["tasks"][place]["fence"].clone();
    let body = json!({"worker": "w", "tasks": [
        {"id": "%", "fence": "1"},
        {"id": "a", "fence": fence(0)},
        {"id": "b", "fence": -1},
        {"id": "b", "fence": fence(1), "then": [{"key": "z"}]},
        {"id": "c"},
    ]});
    let bad = |code, field| outcome("refused", code, field);
    let complete = bench.post("/v1/tasks/complete", &body.to_string()).await;
    assert_eq!(
        items(&complete),
        [
            bad("bad_name", "tasks[0].id"),
            outcome("completed", "", ""),
            bad("bad_json", "tasks[2].fence"),
            bad("key_conflict", "tasks[3].then[0].key"),
            bad("bad_json", "tasks[4].fence"),
        ]
    );
    let body = json!({"worker": "w", "tasks": [
        {"id": "b", "fence": fence(1), "error": 7},
        {"id": "b", "fence": fence(1), "error": "boom"},
    ]});
    let fail = bench.post("/v1/tasks/fail", &body.to_string()).await;
    assert_eq!(items(&fail)[0], bad("bad_json", "tasks[0].error"));
    assert_eq!(items(&fail)[1].0, "retrying");
    let body = json!({"worker": "w", "tasks": [
        {"id": "c", "fence": fence(2)},
        {"id": "..", "fence": "1"},
        {"id": "c", "fence": true},
    ]});
    let renew = bench.post("/v1/tasks/renew", &body.to_string()).await;
    assert_eq!(items(&renew)[0].0, "renewed");
    assert_eq!(items(&renew)[1], bad("bad_name", "tasks[1].id"));
    assert_eq!(items(&renew)[2], bad("bad_json", "tasks[2].fence"));
}

// TQ-1: one handle everywhere.
#[tokio::test]
async fn tq_1_a_keyed_task_goes_by_its_handle() {
    let bench = Bench::new();
    let heard = bench.post("/v1/tasks", r#"{"key": "u", "id": "a", "labels": {"gpu": "x"}}"#).await;
    assert_eq!(heard.json()["tasks"][0]["id"], "u:a");
    bench.post("/v1/tasks", r#"{"id": "u:b"}"#).await;
    let shown = bench.get("/v1/tasks/u:a").await.json();
    assert_eq!((&shown["id"], &shown["key"]), (&json!("u:a"), &json!("u")));
    assert_eq!((&shown["key_limit"], &shown["labels"]), (&json!(1), &json!({"gpu": "x"})));
    let claim = |labels: &str| {
        format!(r#"{{"worker": "w", "queues": ["default"], "count_max": 9, "labels": {labels}}}"#)
    };
    let none = bench.post("/v1/tasks/claim", &claim("{}")).await.json();
    assert_eq!(none["tasks"], json!([]), "the head of the key wants a label");
    let got = bench.post("/v1/tasks/claim", &claim(r#"{"gpu": "x"}"#)).await.json();
    assert_eq!(got["tasks"][0]["id"], "u:a");
    assert_eq!(got["tasks"].as_array().unwrap().len(), 1);
    assert_eq!(bench.post("/v1/tasks/u:b/cancel", "").await.json()["outcome"], "cancelled");
    assert_eq!(bench.get("/v1/tasks/u%3Ab").await.json()["state"], "cancelled");
    let bad = bench.post("/v1/tasks/claim", &claim(r#"{"a b": "x"}"#)).await;
    assert_eq!((bad.code().as_str(), &bad.json()["field"]), ("bad_name", &json!("labels.a b")));
}
