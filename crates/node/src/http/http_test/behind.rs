//! Completions that ask for further tasks in the same call.

use std::time::Duration;

use ikada_api::cbor::{from_slice, to_vec};
use ikada_api::pipe::PipeVerb;
use ikada_api::v1::{ClaimRequest, CompleteRequest, NewTask, OutcomeKind, OutcomeList};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use super::Bench;
use super::door::Script;
use super::pipe::{answer, claim_one, frame, open};
use super::socket::Server;
use crate::http::HttpLimits;

/// Much longer than an answer takes, and shorter than a call may take.
const LIMIT: Duration = Duration::from_secs(8);

/// The claims of a worker with one slot.
fn wish() -> Value {
    json!({ "worker": "w", "session": "1", "queues": ["default"], "count_max": 1 })
}

/// Three tasks, the first of which is claimed; gives its fence.
async fn begun(bench: &Bench) -> String {
    bench.post("/v1/tasks", r#"{"tasks": [{"id": "a"}, {"id": "b"}, {"id": "c"}]}"#).await;
    let claimed = bench.post("/v1/tasks/claim", &wish().to_string()).await.json();
    claimed["tasks"][0]["fence"].as_str().unwrap().to_owned()
}

// TQ-9: what is asked for again under the key is what was granted, and a plain claim under it finds the same.
#[tokio::test]
async fn tq_9_a_completion_takes_the_next_task_in_the_same_call() {
    let bench = Bench::new();
    let fence = begun(&bench).await;
    let tasks = json!([{ "id": "a", "fence": fence }]);
    let body = json!({ "worker": "w", "tasks": tasks, "claim": wish() }).to_string();
    let key = [("idempotency-key", "run-2")];
    for _ in 0..2 {
        let heard = bench.send("POST", "/v1/tasks/complete", &key, body.clone()).await.json();
        assert_eq!(heard["tasks"][0]["outcome"], "completed", "{heard}");
        assert_eq!(heard["claimed"][0]["id"], "b", "{heard}");
        assert_eq!(heard["claimed"].as_array().map(Vec::len), Some(1));
    }
    let again = bench.send("POST", "/v1/tasks/claim", &key, wish().to_string()).await.json();
    assert_eq!(again["tasks"][0]["id"], "b");
    // Who asks for nothing is told of nothing; who finds nothing is told that.
    let plain = json!({ "worker": "w", "tasks": tasks }).to_string();
    let heard = bench.post("/v1/tasks/complete", &plain).await.json();
    assert!(heard.get("claimed").is_none(), "{heard}");
    bench.post("/v1/tasks/claim", &wish().to_string()).await;
    let heard = bench.post("/v1/tasks/complete", &body).await.json();
    assert_eq!(heard["claimed"], json!([]));
}

// TQ-1: the claim is behind the completion, so that the next of the same key is free by then.
#[tokio::test]
async fn tq_1_the_claim_comes_after_what_is_told_with_it() {
    let bench = Bench::new();
    bench
        .post("/v1/tasks", r#"{"tasks": [{"id": "a", "key": "k"}, {"id": "b", "key": "k"}]}"#)
        .await;
    let claimed = bench.post("/v1/tasks/claim", &wish().to_string()).await.json();
    let first = &claimed["tasks"][0];
    let none = bench.post("/v1/tasks/claim", &wish().to_string()).await.json();
    assert_eq!(none["tasks"], json!([]), "one of a key at a time");
    let tasks = json!([{ "id": first["id"], "fence": first["fence"] }]);
    let body = json!({ "worker": "w", "tasks": tasks, "claim": wish() }).to_string();
    let heard = bench.post("/v1/tasks/complete", &body).await.json();
    assert_eq!(heard["tasks"][0]["outcome"], "completed", "{heard}");
    assert_eq!(heard["claimed"].as_array().map(Vec::len), Some(1), "{heard}");
}

#[tokio::test]
async fn a_claim_in_a_completion_is_judged_before_anything_is_done() {
    let bench = Bench::new();
    let fence = begun(&bench).await;
    let tasks = json!([{ "id": "a", "fence": fence }]);
    for (field, value, told) in [
        ("wait_ms", json!(5), "claim.wait_ms"),
        ("worker", json!("other"), "claim.worker"),
        ("queues", json!(["no/name"]), "claim.queues"),
        ("count_max", json!(0), "claim.count_max"),
    ] {
        let mut claim = wish();
        claim[field] = value;
        let body = json!({ "worker": "w", "tasks": tasks, "claim": claim }).to_string();
        let heard = bench.post("/v1/tasks/complete", &body).await;
        assert_eq!(heard.status, 400, "{field}");
        let named = heard.json()["field"].as_str().unwrap_or_default().to_owned();
        assert!(named.starts_with(told), "{field}: {named}");
    }
    let shown = bench.get("/v1/tasks/a").await.json();
    assert_eq!(shown["state"], "claimed", "nothing was done");
}

// B5: a bad item spoils nothing; what was asked for beside it is left for another try.
#[tokio::test]
async fn tq_8_a_bad_item_leaves_the_claim_for_another_try() {
    let bench = Bench::new();
    let fence = begun(&bench).await;
    let good = json!({ "id": "a", "fence": fence });
    let bad = json!({ "id": "b", "fence": "1", "unknown": true });
    let body = json!({ "worker": "w", "tasks": [good, bad], "claim": wish() }).to_string();
    let heard = bench.post("/v1/tasks/complete", &body).await.json();
    assert_eq!(heard["tasks"][0]["outcome"], "completed", "{heard}");
    assert_eq!(heard["tasks"][1]["problem"]["code"], "unknown_field", "{heard}");
    assert!(heard.get("claimed").is_none(), "{heard}");
    assert_eq!(bench.get("/v1/tasks/b").await.json()["state"], "ready");
}

// What is decided is told, whatever becomes of the claim; what that was granted is found under its key.
#[tokio::test]
async fn tq_9_a_claim_without_an_answer_holds_no_outcome_up() {
    let bench = Bench::new();
    let fence = begun(&bench).await;
    let tasks = json!([{ "id": "a", "fence": fence }]);
    let body = json!({ "worker": "w", "tasks": tasks, "claim": wish() }).to_string();
    let key = [("idempotency-key", "run-2")];
    bench.door().script(Script::SilentClaim);
    let heard = bench.send("POST", "/v1/tasks/complete", &key, body);
    // The claim itself would be given up after the call's whole time and more.
    let heard = tokio::time::timeout(LIMIT, heard).await.expect("it is told").json();
    assert_eq!(heard["tasks"][0]["outcome"], "completed", "{heard}");
    assert!(heard.get("claimed").is_none(), "{heard}");
    let again = bench.send("POST", "/v1/tasks/claim", &key, wish().to_string()).await.json();
    assert_eq!(again["tasks"][0]["id"], "b");
}

// With several logs nothing but the wait keeps a claim behind the completions: as long as these are open, none is made.
#[tokio::test]
async fn tq_9_with_several_logs_the_claim_waits_for_the_outcome() {
    for (has_others, state) in [(true, "ready"), (false, "claimed")] {
        let bench = Bench::new();
        let fence = begun(&bench).await;
        let tasks = json!([{ "id": "a", "fence": fence }]);
        let body = json!({ "worker": "w", "tasks": tasks, "claim": wish() }).to_string();
        if has_others {
            bench.door().add_logs();
        }
        bench.door().script(Script::Silence);
        let soon = [("ikada-timeout-ms", "100")];
        let heard = bench.send("POST", "/v1/tasks/complete", &soon, body).await;
        assert_eq!(heard.status, 504);
        assert_eq!(bench.get("/v1/tasks/b").await.json()["state"], state, "{has_others}");
    }
}

#[tokio::test]
async fn tq_9_a_pipe_carries_completions_that_claim() {
    let server = Server::start(HttpLimits::default()).await;
    let (client, mut stream) = (server.client(), open(&server).await);
    client.enqueue(vec![NewTask::default(), NewTask::default()]).await.unwrap();
    let item = claim_one(&client).await;
    let claim: ClaimRequest = serde_json::from_value(wish()).unwrap();
    let request = CompleteRequest { worker: "w".into(), tasks: vec![item], claim: Some(claim) };
    let body = to_vec(&request).unwrap();
    stream.write_all(&frame(1, PipeVerb::Complete, Some("k"), &body)).await.unwrap();
    let list: OutcomeList = from_slice(&answer(&mut stream).await.2).unwrap();
    assert_eq!(list.tasks[0].outcome, OutcomeKind::Completed);
    let first = list.claimed.expect("one is there")[0].id.clone();
    // The same through the client, under the same key.
    let list = client.complete_and_claim("k", &request).await.unwrap();
    assert_eq!(list.claimed.expect("it is found again")[0].id, first);
    server.stop().await;
}
