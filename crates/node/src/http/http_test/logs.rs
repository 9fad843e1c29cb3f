//! Logs by HTTP: as text, and as streams that go on where a reader was.

use hyper::StatusCode;
use serde_json::Value;

use super::Bench;

const STREAM: (&str, &str) = ("accept", "text/event-stream");

async fn say(bench: &Bench, place: &str, text: impl Into<bytes::Bytes>) {
    let put = bench.send("PUT", &format!("/v1/objects/logs/{place}"), &[], text.into()).await;
    assert!(put.status.is_success(), "{}", put.json());
}

/// The events of a stream that has ended: kind, id and document.
fn events(body: &[u8]) -> Vec<(String, String, Value)> {
    let text = std::str::from_utf8(body).expect("text");
    let field = |piece: &str, name: &str| {
        let found = piece.lines().find_map(|line| line.strip_prefix(name));
        found.unwrap_or_default().trim().to_owned()
    };
    let pieces = text.split("\n\n").filter(|piece| piece.contains("data:"));
    let read = |piece: &str| {
        let data = serde_json::from_str(&field(piece, "data:")).expect("a document");
        (field(piece, "event:"), field(piece, "id:"), data)
    };
    pieces.map(read).collect()
}

#[tokio::test]
async fn logs_are_read_by_task_and_go_with_it() {
    let bench = Bench::new();
    bench.post("/v1/tasks", r#"{"id":"t1","program":"grep"}"#).await;
    assert_eq!(bench.get("/v1/tasks/t1/logs").await.code(), "log_not_found");
    for (place, text) in [("t1/1", "first"), ("t1/2", "second"), ("t1/10", "tenth")] {
        let put = bench.send("PUT", &format!("/v1/objects/logs/{place}"), &[], text).await;
        assert_eq!(put.status, StatusCode::CREATED, "{}", put.json());
    }
    assert_eq!(bench.get("/v1/tasks/t1/logs").await.body, "tenth");
    assert_eq!(bench.get("/v1/tasks/t1/logs?attempt=2").await.body, "second");
    let part = bench.send("GET", "/v1/tasks/t1/logs?attempt=1", &[("range", "bytes=3-")], "").await;
    assert_eq!(part.body, "st");
    assert_eq!(bench.get("/v1/tasks/t1/logs?attempt=3").await.code(), "object_not_found");
    assert!(bench.get("/v1/tasks/t1/logs?attempt=x").await.status.is_client_error());
    let stray = bench.send("PUT", "/v1/objects/logs/t9/1", &[], "x").await;
    assert_eq!(stray.code(), "task_not_found");
}

#[tokio::test]
async fn a_stream_tells_all_attempts_of_a_task_and_ends_with_it() {
    let bench = Bench::new();
    bench.post("/v1/tasks", r#"{"id":"t1","program":"grep"}"#).await;
    say(&bench, "t1/1", "one\ntwo\nopen").await;
    say(&bench, "t1/2", "three\n").await;
    say(&bench, "t1/10", b"\xff\n".to_vec()).await;
    bench.post("/v1/tasks/t1/cancel", "").await;
    let told = bench.send("GET", "/v1/tasks/t1/logs", &[STREAM], "").await;
    assert_eq!(told.status, StatusCode::OK);
    let told = events(&told.body);
    let kinds: Vec<&str> = told.iter().map(|(kind, ..)| kind.as_str()).collect();
    assert_eq!(kinds, ["log", "log", "log", "end"], "{told:?}");
    assert_eq!((&told[0].2["attempt"], &told[0].2["text"]), (&1.into(), &"one\ntwo\nopen".into()));
    assert_eq!((&told[1].2["attempt"], &told[1].2["offset"]), (&2.into(), &0.into()));
    assert_eq!((&told[2].2["attempt"], &told[2].2["text_base64"]), (&10.into(), &"/wo=".into()));
    assert_eq!(told[3].2["state"], "cancelled");
    let one = bench.send("GET", "/v1/tasks/t1/logs?attempt=2", &[STREAM], "").await;
    assert_eq!(events(&one.body).len(), 2);
    // What was written before the reader's last event is not told again.
    let later = (told[2].1.parse::<u64>().expect("a time") + 1).to_string();
    let place = [STREAM, ("last-event-id", later.as_str())];
    let again = bench.send("GET", "/v1/tasks/t1/logs", &place, "").await;
    assert_eq!(events(&again.body).len(), 1);
    let bad = bench.send("GET", "/v1/tasks/t1/logs", &[STREAM, ("last-event-id", "x")], "").await;
    assert_eq!(bad.status, StatusCode::BAD_REQUEST);
    let missing = bench.send("GET", "/v1/tasks/t9/logs", &[STREAM], "").await;
    assert_eq!(missing.code(), "task_not_found");
}

#[tokio::test]
async fn the_id_of_an_event_never_passes_over_what_is_not_told_yet() {
    let bench = Bench::new();
    let job = r#"{"id":"j","map":{"program":"grep","range":{"to":2}}}"#;
    assert!(bench.post("/v1/jobs", job).await.status.is_success());
    let claim = r#"{"worker":"w","queues":["default"],"max_tasks":2,"wait_ms":5000}"#;
    bench.post("/v1/tasks/claim", claim).await;
    say(&bench, "j:map.1/1", "first\nnot yet whole").await;
    say(&bench, "j:map.0/1", "later\n").await;
    // The bench's door closes, which ends a stream after its first look.
    let told = events(&bench.send("GET", "/v1/jobs/j/logs", &[STREAM], "").await.body);
    let texts: Vec<&str> = told.iter().filter_map(|(_, _, data)| data["text"].as_str()).collect();
    assert_eq!(texts, ["first\n", "later\n"], "in the order of writing, whole lines only");
    assert_eq!(told[0].1, told[1].1);
    say(&bench, "j:map.1/1", "first\nnot yet whole\n").await;
    let place = [STREAM, ("last-event-id", told[1].1.as_str())];
    let again = events(&bench.send("GET", "/v1/jobs/j/logs", &place, "").await.body);
    assert_eq!(again[1].2["text"], "first\nnot yet whole\n", "{again:?}");
    assert_ne!(again[0].1, again[1].1);
}

#[tokio::test]
async fn the_lines_of_a_job_bear_the_names_of_its_tasks() {
    let bench = Bench::new();
    let job = r#"{"id":"j","map":{"program":"grep","range":{"to":2}}}"#;
    assert!(bench.post("/v1/jobs", job).await.status.is_success());
    let claim = r#"{"worker":"w","queues":["default"],"max_tasks":2,"wait_ms":5000}"#;
    bench.post("/v1/tasks/claim", claim).await;
    say(&bench, "j:map.0/1", "a\nb\nnot yet whole").await;
    say(&bench, "j:map.1/2", "c\n").await;
    let lines = bench.get("/v1/jobs/j/logs").await;
    assert_eq!(lines.body, "map.0: a\nmap.0: b\nmap.0: not yet whole\nmap.1/2: c\n");
    let told = bench.send("GET", "/v1/jobs/j/logs?follow=false", &[STREAM], "").await;
    let told = events(&told.body);
    assert_eq!((told.len(), &told[0].2["task"]), (3, &"j:map.0".into()), "{told:?}");
    assert_eq!(told[2].2["state"], "open");
    assert_eq!(bench.get("/v1/jobs/other/logs").await.code(), "job_not_found");
    assert!(bench.get("/v1/jobs/j/logs?follow=maybe").await.status.is_client_error());
}

// What is no longer there is said, and not left out.
#[tokio::test]
async fn the_lines_of_a_job_say_what_was_retained_away() {
    let bench = Bench::new();
    let set = bench.send("PUT", "/v1/queues/default", &[], r#"{"retention_count":1}"#).await;
    assert!(set.status.is_success(), "{}", set.json());
    let job = r#"{"id":"j","map":{"program":"grep","range":{"to":3}}}"#;
    assert!(bench.post("/v1/jobs", job).await.status.is_success());
    let claim = r#"{"worker":"w","queues":["default"],"count_max":2,"wait_ms":5000}"#;
    let claimed = bench.post("/v1/tasks/claim", claim).await.json();
    say(&bench, "j:map.0/1", "gone\n").await;
    say(&bench, "j:map.1/1", "kept\n").await;
    for task in claimed["tasks"].as_array().expect("two") {
        let item = serde_json::json!({"id": task["id"], "fence": task["fence"]});
        let report = serde_json::json!({"worker": "w", "tasks": [item]}).to_string();
        let done = bench.post("/v1/tasks/complete", &report).await;
        assert_eq!(done.json()["tasks"][0]["outcome"], "completed", "{}", done.json());
    }
    let lines = bench.get("/v1/jobs/j/logs").await;
    let lines = String::from_utf8(lines.body.to_vec()).expect("text");
    assert!(lines.starts_with(": [a part is missing: 1 of its tasks"), "{lines}");
    assert!(lines.ends_with("map.1: kept\n") && !lines.contains("gone\n"), "{lines}");
    let told = bench.send("GET", "/v1/jobs/j/logs?follow=false", &[STREAM], "").await;
    let told = events(&told.body);
    assert_eq!((told.len(), &*told[0].0, &*told[1].0), (3, "gap", "log"), "{told:?}");
}
