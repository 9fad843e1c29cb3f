//! Programs by HTTP: pushed, checked, named by tasks, removed.

use hyper::StatusCode;
use serde_json::{Value, json};

use super::Bench;

fn module() -> Vec<u8> {
    wat::parse_str(r#"(module (memory (export "memory") 1) (func (export "_start")))"#).unwrap()
}

async fn upload(bench: &Bench, bytes: &[u8]) -> Value {
    bench.send("POST", "/v1/uploads", &[], bytes.to_vec()).await.json()
}

// B4-38, B4-40, B4-41
#[tokio::test]
async fn b4_40_code_arrives_through_the_api_and_tasks_name_it() {
    let bench = Bench::new();
    let file = upload(&bench, b"print('hello')").await;
    let body =
        json!({"name": "hello", "kind": "command", "argv": ["python3", "{file}"], "file": file});
    let pushed = bench.post("/v1/programs", &body.to_string()).await;
    assert_eq!(pushed.status, StatusCode::CREATED, "{}", pushed.json());
    let digest = pushed.json()["digest"].as_str().unwrap().to_owned();
    let shown = bench.get("/v1/programs/hello").await.json();
    assert_eq!(shown["manifest"]["argv"][1], "{file}");
    let manifest = bench.get(&format!("/v1/objects/programs/manifest/{digest}")).await.json();
    assert_eq!(manifest["file"]["digest"], file["digest"]);
    let place = format!("/v1/objects/programs/file/{}", file["digest"].as_str().unwrap());
    assert_eq!(bench.get(&place).await.body, "print('hello')");
    let listed = bench.get("/v1/programs").await.json();
    let names: Vec<&str> = listed["programs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["grep", "hello", "merge", "wordcount"]);
    let task = bench.post("/v1/tasks", r#"{"id":"t1","program":"hello"}"#).await;
    assert_eq!(task.status, StatusCode::CREATED, "{}", task.json());
    // Another program under the same name, and then none: the task keeps what it was submitted for.
    let again = json!({"name": "hello", "kind": "wasm", "file": upload(&bench, &module()).await});
    assert_eq!(bench.post("/v1/programs", &again.to_string()).await.status, StatusCode::CREATED);
    assert_eq!(bench.get("/v1/programs/hello").await.json()["kind"], "wasm");
    let removed = bench.send("DELETE", "/v1/programs/hello", &[], "").await;
    assert_eq!(removed.status, StatusCode::OK);
    assert_eq!(bench.get("/v1/programs/hello").await.code(), "program_not_found");
    let gone = bench.send("DELETE", "/v1/programs/hello", &[], "").await;
    assert_eq!(gone.code(), "program_not_found");
    let body = r#"{"worker":"w","queues":["default"]}"#;
    let claimed = bench.post("/v1/tasks/claim", body).await.json()["tasks"][0].clone();
    assert_eq!(claimed["work"]["program"]["kind"], "command");
    assert_eq!(claimed["work"]["program"]["digest"], digest);
    let late = bench.post("/v1/tasks", r#"{"program":"hello"}"#).await;
    assert_eq!(late.code(), "unknown_program");
}

// TQ-21: the same key and body have the first answer, whatever the names in it stand for by now.
#[tokio::test]
async fn tq_21_a_resend_after_a_program_was_pushed_again_has_the_first_answer() {
    let bench = Bench::new();
    let push = async |text: &'static [u8]| {
        let file = upload(&bench, text).await;
        let body = json!({"name": "p", "kind": "command", "argv": ["sh", "{file}"], "file": file});
        let pushed = bench.post("/v1/programs", &body.to_string()).await;
        assert_eq!(pushed.status, StatusCode::CREATED, "{}", pushed.json());
        bench.send("PUT", "/v1/objects/texts/a", &[], text.to_vec()).await;
    };
    let inputs = json!([{"name": "a", "bucket": "texts", "key": "a"}]);
    let requests = [
        ("/v1/tasks", "k1", json!({"id": "t1", "program": "p"})),
        ("/v1/tasks", "k2", json!({"tasks": [{"id": "t2", "then": [{"program": "p"}]}]})),
        ("/v1/tasks", "k3", json!({"id": "t3", "program": "p", "inputs": inputs, "reuse": true})),
        ("/v1/jobs", "k4", json!({"id": "j1", "map": {"program": "p", "inputs": inputs}})),
    ];
    let send = async |(path, key, body): &(&str, &str, serde_json::Value)| {
        bench.send("POST", path, &[("idempotency-key", *key)], body.to_string()).await
    };
    push(b"echo 1").await;
    let mut first = Vec::new();
    for request in &requests {
        first.push(send(request).await);
    }
    push(b"echo 2").await;
    for (request, first) in requests.iter().zip(first) {
        let again = send(request).await;
        assert_eq!(again.status, first.status, "{}: {}", request.1, again.json());
        let outcome = |heard: &super::Heard| heard.json()["tasks"][0]["outcome"].clone();
        assert_eq!(outcome(&again), outcome(&first), "{}", request.1);
    }
    let other = json!({"id": "t1", "program": "p", "priority": 7});
    let refused = send(&("/v1/tasks", "k1", other)).await;
    assert_eq!(refused.code(), "idempotency_conflict");
}

// B4-39
#[tokio::test]
async fn b4_39_bad_programs_are_refused_by_name() {
    let bench = Bench::new();
    let text = upload(&bench, b"#!/bin/sh").await;
    let mut huge = text.clone();
    huge["size"] = json!(11 << 20);
    let mut other = text.clone();
    other["digest"] = json!("0".repeat(64));
    let run = |file: &Value| json!({"name": "p", "kind": "command", "argv": ["sh", "{file}"], "file": file});
    let cases = [
        (json!({"name": "a b", "kind": "command", "argv": ["x"]}), "name"),
        (json!({"name": "grep", "kind": "command", "argv": ["x"]}), "name"),
        (json!({"name": "p", "kind": "shell", "argv": ["x"]}), "kind"),
        (run(&huge), "file.size"),
        (run(&other), "file.digest"),
        (json!({"name": "p", "kind": "command"}), "argv"),
        (json!({"name": "p", "kind": "command", "argv": [""]}), "argv"),
        (json!({"name": "p", "kind": "command", "argv": ["a\u{0}b"]}), "argv"),
        (json!({"name": "p", "kind": "command", "argv": ["sh", "{file}"]}), "file"),
        (json!({"name": "p", "kind": "command", "argv": vec!["x"; 300]}), "argv"),
    ];
    for (body, field) in cases {
        let refused = bench.post("/v1/programs", &body.to_string()).await;
        assert!(refused.status.is_client_error(), "{body}");
        assert_eq!(refused.json()["field"], field, "{}", refused.json());
    }
    let mut gone = text.clone();
    gone["chunks"] = json!(["1".repeat(64)]);
    let body = json!({"name": "p", "kind": "command", "argv": ["sh", "{file}"], "file": gone});
    assert_eq!(bench.post("/v1/programs", &body.to_string()).await.code(), "upload_expired");
    assert_eq!(bench.get("/v1/programs/p").await.code(), "program_not_found");
}

// B4-39
#[tokio::test]
async fn b4_39_bad_modules_are_refused_by_name() {
    let bench = Bench::new();
    let good = upload(&bench, &module()).await;
    let empty = upload(&bench, b"\0asm\x01\0\0\0").await;
    let text = upload(&bench, b"#!/bin/sh").await;
    let stranger = r#"(module (import "env" "fork" (func)) (memory (export "memory") 1)
        (func (export "_start")))"#;
    let stranger = upload(&bench, &wat::parse_str(stranger).unwrap()).await;
    let mut huge = good.clone();
    huge["size"] = json!((10 << 20) + 1);
    let cases = [
        (json!({"kind": "wasm"}), "file", "needs its file"),
        (json!({"kind": "wasm", "argv": ["x"], "file": good}), "argv", "has none"),
        (json!({"kind": "wasm", "file": empty}), "file", "\"_start\""),
        (json!({"kind": "wasm", "file": text}), "file", "no WebAssembly module"),
        (json!({"kind": "wasm", "file": stranger}), "file", "env.fork"),
        (json!({"kind": "wasm", "entry": "main", "file": good}), "file", "\"main\""),
        (json!({"kind": "wasm", "entry": "", "file": good}), "entry", "1 to"),
        (json!({"kind": "wasm", "file": huge}), "file.size", "at most"),
        (json!({"kind": "command", "argv": ["sh"], "entry": "x"}), "entry", "only a module"),
    ];
    for (mut body, field, words) in cases {
        body["name"] = json!("p");
        let refused = bench.post("/v1/programs", &body.to_string()).await;
        assert!(refused.status.is_client_error(), "{body}");
        let problem = refused.json();
        assert_eq!(problem["field"], field, "{problem}");
        assert!(problem["detail"].as_str().unwrap().contains(words), "{problem}");
    }
    assert_eq!(bench.get("/v1/programs/p").await.code(), "program_not_found");
}
