//! Bad input: each case a clear problem, no change, no panic.

use super::Bench;
use crate::http::HttpLimits;

/// Method, path, body, status, code, field.
type Case = (&'static str, &'static str, &'static str, u16, &'static str, Option<&'static str>);

const CASES: &[Case] = &[
    ("GET", "/nothing", "", 404, "no_route", None),
    ("GET", "/v1/task", "", 404, "no_route", None),
    ("GET", "/v1/tasks/", "", 404, "no_route", None),
    ("GET", "/x/v1/tasks", "", 404, "no_route", None),
    ("PATCH", "/v1/tasks/a", "", 405, "bad_method", None),
    ("BREW", "/v1/tasks", "", 405, "bad_method", None),
    ("POST", "/v1/tasks", "", 201, "", None),
    ("POST", "/v1/tasks", "not json", 400, "bad_json", None),
    ("POST", "/v1/tasks", "[1]", 400, "bad_json", None),
    ("POST", "/v1/tasks", "{\"queue\": 7}", 400, "bad_json", Some("queue")),
    ("POST", "/v1/tasks", "{\"priority\": 256}", 400, "bad_json", Some("priority")),
    ("POST", "/v1/tasks", "{\"delay_ms\": -1}", 400, "bad_json", Some("delay_ms")),
    ("POST", "/v1/tasks", "{\"delay_ms\": 1e30}", 400, "bad_json", Some("delay_ms")),
    ("POST", "/v1/tasks", "{\"delay_ms\": 9999999999999999}", 400, "bad_value", Some("delay_ms")),
    (
        "POST",
        "/v1/tasks",
        "{\"run_at_ms\": 18446744073709551615}",
        400,
        "bad_value",
        Some("run_at_ms"),
    ),
    ("POST", "/v1/tasks", "{\"run_at_ms\": -1}", 400, "bad_json", Some("run_at_ms")),
    (
        "POST",
        "/v1/tasks",
        "{\"deadline_ms\": 18446744073709551615}",
        400,
        "bad_value",
        Some("deadline_ms"),
    ),
    (
        "POST",
        "/v1/tasks",
        "{\"retention_ms\": 18446744073709551615}",
        400,
        "bad_value",
        Some("retention_ms"),
    ),
    (
        "PUT",
        "/v1/queues/a",
        "{\"retention_ms\": 18446744073709551615}",
        400,
        "bad_value",
        Some("retention_ms"),
    ),
    (
        "PUT",
        "/v1/queues/a",
        "{\"dead_retention_ms\": 18446744073709551615}",
        400,
        "bad_value",
        Some("dead_retention_ms"),
    ),
    ("POST", "/v1/tasks", "{\"id\": \"a\", \"id\": \"b\"}", 400, "bad_json", Some("id")),
    ("POST", "/v1/tasks", "{\"labels\": {\"a\": 1}}", 400, "bad_json", Some("labels")),
    ("POST", "/v1/tasks", "{\"key\": \"a\", \"id\": \"b:c\"}", 400, "key_conflict", Some("key")),
    ("POST", "/v1/tasks", "{\"key\": \"a:b\"}", 400, "bad_name", Some("key")),
    ("POST", "/v1/tasks", "{\"id\": \"a:\"}", 400, "bad_name", Some("id")),
    (
        "POST",
        "/v1/tasks",
        "{\"id\":\"a\",\"then\":[{\"key\":\"b\"}]}",
        400,
        "key_conflict",
        Some("then[0].key"),
    ),
    ("POST", "/v1/tasks", "{\"then\": [{\"x\": 1}]}", 400, "unknown_field", Some("x")),
    ("POST", "/v1/tasks", "{\"deadline_ms\": 1}", 409, "deadline_passed", None),
    ("POST", "/v1/tasks", "{\"priority\": 10}", 400, "bad_value", Some("priority")),
    ("POST", "/v1/tasks", "{\"prio\": 1}", 400, "unknown_field", Some("prio")),
    ("POST", "/v1/tasks", "{\"tasks\": [], \"x\": 1}", 400, "unknown_field", Some("x")),
    ("POST", "/v1/tasks", "{\"tasks\": []}", 400, "bad_count", Some("tasks")),
    ("POST", "/v1/tasks", "{\"id\": \"..\"}", 400, "bad_name", Some("id")),
    (
        "POST",
        "/v1/tasks",
        "{\"payload\": 1, \"payload_base64\": \"\"}",
        400,
        "bad_value",
        Some("payload_base64"),
    ),
    ("POST", "/v1/tasks?x=1", "{}", 400, "bad_parameter", Some("x")),
    ("POST", "/v1/tasks?namespace=a/b", "{}", 400, "bad_parameter", Some("namespace")),
    ("POST", "/v1/tasks?namespace=a&namespace=a", "{}", 400, "bad_parameter", Some("namespace")),
    ("POST", "/v1/tasks?namespace=%2", "{}", 400, "bad_parameter", Some("query")),
    ("POST", "/v1/tasks/claim", "{}", 400, "bad_json", Some("worker")),
    (
        "POST",
        "/v1/tasks/claim",
        "{\"worker\":\"w\",\"queues\":[]}",
        400,
        "bad_value",
        Some("queues"),
    ),
    (
        "POST",
        "/v1/tasks/claim",
        "{\"worker\":\"w w\",\"queues\":[\"a\"]}",
        400,
        "bad_name",
        Some("worker"),
    ),
    (
        "POST",
        "/v1/tasks/claim",
        "{\"worker\":\"w\",\"queues\":[\"a\"],\"count_max\":2000}",
        400,
        "bad_value",
        Some("count_max"),
    ),
    (
        "POST",
        "/v1/tasks/complete",
        "{\"worker\":\"w\",\"tasks\":[]}",
        400,
        "bad_count",
        Some("tasks"),
    ),
    (
        "POST",
        "/v1/tasks/complete",
        "{\"worker\":\"w\",\"tasks\":7}",
        400,
        "bad_json",
        Some("tasks"),
    ),
    ("POST", "/v1/tasks/fail", "{\"worker\":1,\"tasks\":[{}]}", 400, "bad_json", Some("worker")),
    (
        "POST",
        "/v1/tasks/renew",
        "{\"tasks\":[{\"id\":\"a\",\"fence\":1}]}",
        400,
        "bad_json",
        Some("worker"),
    ),
    ("GET", "/v1/tasks?limit=0", "", 400, "bad_parameter", Some("limit")),
    ("GET", "/v1/tasks?limit=1001", "", 400, "bad_parameter", Some("limit")),
    ("GET", "/v1/tasks?limit=x", "", 400, "bad_parameter", Some("limit")),
    ("GET", "/v1/tasks?state=open", "", 400, "bad_parameter", Some("state")),
    ("GET", "/v1/tasks?after=7", "", 400, "bad_parameter", Some("after")),
    ("GET", "/v1/tasks?consistency=fast", "", 400, "bad_parameter", Some("consistency")),
    ("GET", "/v1/tasks?min_lsn=1:2", "", 400, "bad_parameter", Some("min_lsn")),
    ("GET", "/v1/tasks?min_lsn=0:1:1&consistency=stale", "", 400, "bad_parameter", Some("min_lsn")),
    ("GET", "/v1/tasks/a%2Fb", "", 400, "bad_name", Some("id")),
    ("GET", "/v1/tasks/%2e%2e", "", 400, "bad_name", Some("id")),
    ("GET", "/v1/tasks/%00", "", 400, "bad_name", Some("id")),
    ("GET", "/v1/requests/a?item=-1", "", 400, "bad_parameter", Some("item")),
    ("PUT", "/v1/queues/a", "{\"ttl_ms\": 1}", 400, "bad_value", Some("ttl_ms")),
    ("PUT", "/v1/queues/a", "{\"key_limit\": 2000}", 400, "bad_value", Some("key_limit")),
    ("PUT", "/v1/queues/a", "{\"timeout_ms\": 4294967295}", 400, "bad_value", Some("timeout_ms")),
    ("PUT", "/v1/queues/a", "{\"deadline_in_ms\": -1}", 400, "bad_json", Some("deadline_in_ms")),
    ("PUT", "/v1/queues/a", "{\"tl_ms\": 1}", 400, "unknown_field", Some("tl_ms")),
    ("PUT", "/v1/queues/a%20b", "{}", 400, "bad_name", Some("queue")),
    ("GET", "/v1/cluster/events?after=x", "", 400, "bad_parameter", Some("after")),
    ("POST", "/v1/cluster/transfer", "{\"to\": true}", 400, "bad_json", Some("to")),
    ("POST", "/v1/cluster/transfer", "{\"to\": \"9\", \"shard\": 0}", 404, "node_not_found", None),
];

#[tokio::test]
async fn every_bad_request_is_told_what_is_wrong() {
    for (method, path, body, status, code, field) in CASES.iter().copied() {
        let bench = Bench::new();
        let heard = bench.send(method, path, &[], body).await;
        let case = format!("{method} {path} {body}: {}", String::from_utf8_lossy(&heard.body));
        assert_eq!(heard.status.as_u16(), status, "{case}");
        if status < 400 {
            continue;
        }
        assert_eq!(heard.code(), code, "{case}");
        assert_eq!(heard.json()["field"].as_str(), field, "{case}");
        assert!(!heard.json()["detail"].as_str().unwrap().is_empty(), "{case}");
    }
}

#[tokio::test]
async fn bad_headers_are_named() {
    let bench = Bench::new();
    let table: [(&str, &str, u16, &str); 8] = [
        ("ikada-timeout-ms", "0", 400, "bad_parameter"),
        ("ikada-timeout-ms", "120001", 400, "bad_parameter"),
        ("ikada-timeout-ms", "soon", 400, "bad_parameter"),
        ("ikada-routing", "proxy", 400, "bad_parameter"),
        ("idempotency-key", "a b", 400, "bad_parameter"),
        ("ikada-namespace", "..", 400, "bad_parameter"),
        ("content-type", "text/plain", 415, "unsupported_media_type"),
        ("origin", "http://evil.example", 403, "foreign_origin"),
    ];
    for (name, value, status, code) in table {
        let heard = bench.send("POST", "/v1/tasks", &[(name, value)], "{}").await;
        assert_eq!(
            (heard.status.as_u16(), heard.code().as_str()),
            (status, code),
            "{name}: {value}"
        );
    }
    let allowed = bench
        .send("POST", "/v1/tasks", &[("content-type", "application/json; charset=utf-8")], "{}")
        .await;
    assert_eq!(allowed.status, 201);
    assert_eq!(bench.send("PATCH", "/v1/queues/q", &[], "").await.header("allow"), "GET, PUT");
}

// X7
#[tokio::test]
async fn sizes_are_bounded() {
    let limits = HttpLimits { items_max: 3, requests_max: 4, ..HttpLimits::default() };
    let bench = Bench::with(limits);
    let payload = format!("{{\"payload\": \"{}\"}}", "x".repeat((1 << 20) - 2));
    assert_eq!(bench.post("/v1/tasks", &payload).await.status, 201, "the bound itself fits");
    let payload = format!("{{\"payload\": \"{}\"}}", "x".repeat((1 << 20) - 1));
    let heard = bench.post("/v1/tasks", &payload).await;
    assert_eq!((heard.status.as_u16(), heard.code().as_str()), (413, "too_large"));
    assert_eq!(heard.json()["field"], "payload");
    let base64 = format!("{{\"payload_base64\": \"{}\"}}", "A".repeat((1 << 20) / 3 * 4 + 4));
    let heard = bench.post("/v1/tasks", &base64).await;
    assert_eq!(
        (heard.code().as_str(), &heard.json()["field"]),
        ("too_large", &"payload_base64".into())
    );
    let result = format!(
        "{{\"worker\": \"w\", \"tasks\": [{{\"id\": \"a\", \"fence\": 1, \"result\": \"{}\"}}, {{\"id\": \"b\", \"fence\": 1}}]}}",
        "x".repeat(64 << 10)
    );
    let items = bench.post("/v1/tasks/complete", &result).await.json()["tasks"].clone();
    assert_eq!(
        (&items[0]["problem"]["code"], &items[0]["problem"]["field"]),
        (&"too_large".into(), &"tasks[0].result".into())
    );
    assert_eq!(items[1]["problem"]["code"], "task_not_found", "one bad item spoils no other");
    let huge = vec![b' '; (8 << 20) + 1];
    assert_eq!(bench.send("POST", "/v1/tasks", &[], huge).await.code(), "too_large");
    let by_word = bench.send("POST", "/v1/tasks", &[("content-length", "99999999999")], "").await;
    assert_eq!(by_word.status, 413);
    let long = bench.post("/v1/tasks", "{\"tasks\": [{},{},{},{}]}").await;
    assert_eq!((long.status.as_u16(), long.code().as_str()), (413, "bad_count"));
    assert_eq!(long.json()["field"], "tasks");
    let deep = format!("{{\"payload\": {}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(bench.post("/v1/tasks", &deep).await.code(), "json_too_deep");
    let headers = [("content-type", "application/cbor"), ("accept", "application/json")];
    // {"then": [{"then": [..
    let deep = b"\xa1\x64then\x81".repeat(100_000);
    for path in ["/v1/tasks", "/v1/tasks/complete"] {
        let heard = bench.send("POST", path, &headers, deep.clone()).await;
        assert_eq!(heard.code(), "json_too_deep", "{path}");
    }
    let long = format!("/v1/tasks?after={}", "x".repeat(9_000));
    assert_eq!(bench.get(&long).await.status, 414);
}

#[tokio::test]
async fn a_full_door_says_come_back() {
    let bench = Bench::with(HttpLimits { requests_max: 0, ..HttpLimits::default() });
    let heard = bench.get("/v1/tasks").await;
    assert_eq!((heard.status.as_u16(), heard.code().as_str()), (429, "overloaded"));
    assert_eq!(heard.header("retry-after"), "1");
    assert_eq!(bench.get("/healthz").await.status, 200, "health answers even then");
    let bench = Bench::with(HttpLimits { bodies_bytes_max: 0, ..HttpLimits::default() });
    assert_eq!(bench.post("/v1/tasks", "{}").await.status, 429);
}
