//! What a caller is told when the node cannot simply answer.

use crate::admission::Lane;
use std::time::Duration;

use ikada_api::state::{FailNext, LEVEL, Lsn, RefusalCode, Reply};
use ikada_replica::call::{Answer, Outcome, RenewOutcome, Routing, Unavailable};
use serde_json::json;

use super::Bench;
use super::door::Script;

// B4-54
#[tokio::test]
async fn b4_54_no_leader_is_503_with_retry_after() {
    let bench = Bench::new();
    bench.door().answer_next(Answer::Unavailable(Unavailable::NoLeader { shard: 2 }));
    let heard = bench.get("/v1/tasks/a").await;
    assert_eq!((heard.status.as_u16(), heard.code().as_str()), (503, "no_leader"));
    assert_eq!(heard.header("retry-after"), "1");
    assert!(heard.json()["detail"].as_str().unwrap().contains("shard 2"));
    let outcome = Outcome::Unavailable(Unavailable::NoLeader { shard: 0 });
    bench.door().answer_next(Answer::Written(vec![outcome]));
    assert_eq!(bench.post("/v1/tasks", "{}").await.status, 503);
    bench.door().answer_next(Answer::Unavailable(Unavailable::Overloaded { what: "calls" }));
    assert_eq!(bench.post("/v1/tasks", "{}").await.status, 429);
    bench.door().answer_next(Answer::Unavailable(Unavailable::Stopping));
    assert_eq!(bench.post("/v1/tasks", "{}").await.code(), "stopping");
}

// F-28: while a cluster is being upgraded.
#[tokio::test]
async fn f_28_an_order_that_some_nodes_do_not_know_is_503() {
    let bench = Bench::new();
    let outcome = Outcome::Unavailable(Unavailable::LevelTooLow { needed: 4, level: 3 });
    bench.door().answer_next(Answer::Written(vec![outcome]));
    let heard = bench.post("/v1/tasks", "{}").await;
    assert_eq!((heard.status.as_u16(), heard.code().as_str()), (503, "level_too_low"));
    let detail = heard.json()["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("level 4") && detail.contains("ikada cluster status"), "{detail}");
    let seen = bench.get("/v1/cluster").await.json();
    assert_eq!((&seen["level"], &seen["members"][1]["level"]), (&json!(LEVEL), &json!(LEVEL)));
}

#[tokio::test]
async fn an_unknown_outcome_is_504_and_names_the_request() {
    let bench = Bench::new();
    bench.door().answer_next(Answer::Written(vec![Outcome::Unknown]));
    let heard = bench.send("POST", "/v1/tasks", &[("idempotency-key", "k9")], "{}").await;
    assert_eq!((heard.status.as_u16(), heard.code().as_str()), (504, "unknown"));
    assert_eq!(heard.json()["request"], "k9");
    // Without a key the one drawn here is named, so that the caller can still ask.
    bench.door().answer_next(Answer::Written(vec![Outcome::Unknown]));
    let heard = bench.post("/v1/tasks", "{}").await;
    assert_eq!(heard.json()["request"], "fresh-0");
}

#[tokio::test]
async fn partly_decided_lists_speak_item_by_item() {
    let bench = Bench::new();
    let lsn = Lsn { term: 3, index: 9 };
    let reply = Reply::refused(RefusalCode::QueueFull);
    bench.door().answer_next(Answer::Written(vec![
        Outcome::Reply { reply, shard: 1, lsn },
        Outcome::Unknown,
        Outcome::Unavailable(Unavailable::NoLeader { shard: 2 }),
    ]));
    let heard = bench.post("/v1/tasks", r#"{"tasks": [{}, {}, {}]}"#).await;
    assert_eq!(heard.status, 200);
    assert_eq!(heard.header("ikada-lsn"), "1:3:9");
    let items = heard.json()["tasks"].clone();
    let outcomes: Vec<_> = items.as_array().unwrap().iter().map(|item| &item["outcome"]).collect();
    assert_eq!(outcomes, ["unavailable", "unknown", "unavailable"]);
    assert_eq!(items[0]["problem"]["code"], "queue_full");
    // One open item leaves the whole open when none was decided.
    bench.door().answer_next(Answer::Written(vec![
        Outcome::Unknown,
        Outcome::Unavailable(Unavailable::NoLeader { shard: 2 }),
    ]));
    assert_eq!(bench.post("/v1/tasks", r#"{"tasks": [{}, {}]}"#).await.status, 504);
}

#[tokio::test]
async fn retries_and_renewals_tell_their_times() {
    let bench = Bench::new();
    let reply = Reply::Failed { next: FailNext::Scheduled { at_ms: 777 } };
    let lsn = Lsn { term: 1, index: 1 };
    bench.door().answer_next(Answer::Written(vec![Outcome::Reply { reply, shard: 0, lsn }]));
    let fail = json!({"worker": "w", "tasks": [{"id": "a", "fence": "1", "error": "x"}]});
    let item = bench.post("/v1/tasks/fail", &fail.to_string()).await.json()["tasks"][0].clone();
    assert_eq!((&item["outcome"], &item["retry_at_ms"]), (&json!("retrying"), &json!(777)));
    bench.door().answer_next(Answer::Renewed(vec![RenewOutcome::Unknown]));
    let renew = json!({"worker": "w", "tasks": [{"id": "a", "fence": "1"}]});
    let item = bench.post("/v1/tasks/renew", &renew.to_string()).await.json()["tasks"][0].clone();
    assert_eq!(item["outcome"], "unknown");
}

// B4-53, B4-55
#[tokio::test]
async fn b4_53_b4_55_a_redirect_keeps_path_and_query_and_names_the_advertised_address() {
    let bench = Bench::new();
    bench.door().answer_next(Answer::Redirect(2));
    let redirect = [("ikada-routing", "redirect")];
    let heard =
        bench.send("GET", "/v1/tasks/raft?namespace=a&consistency=stale", &redirect, "").await;
    assert_eq!(heard.status, 307);
    let location = "http://10.0.0.2:7400/v1/tasks/raft?namespace=a&consistency=stale";
    assert_eq!(heard.header("location"), location);
    assert_eq!(bench.door().last().1, Routing::Redirect);
    // B4-54: a leader whose address nobody knows
    bench.door().answer_next(Answer::Redirect(77));
    let heard = bench.send("GET", "/v1/tasks/a", &redirect, "").await;
    assert_eq!((heard.status.as_u16(), heard.code().as_str()), (503, "leader_address_unknown"));
}

// B4-61
#[tokio::test]
async fn b4_61_reads_are_labelled() {
    let bench = Bench::new();
    bench.post("/v1/tasks", r#"{"id": "a"}"#).await;
    let fresh = bench.get("/v1/tasks/a").await;
    assert_eq!((fresh.header("ikada-lsn"), fresh.header("ikada-age-ms")), ("0:7:2", ""));
    let stale = bench.get("/v1/tasks/a?consistency=stale").await;
    assert_eq!(stale.header("ikada-age-ms"), "42");
    assert_eq!(bench.get("/v1/tasks/a?min_lsn=0:7:2").await.status, 200);
}

#[tokio::test]
async fn the_callers_time_is_passed_on() {
    let bench = Bench::new();
    bench.get("/v1/queues").await;
    assert_eq!(bench.door().last().0, Duration::from_secs(10));
    bench.send("GET", "/v1/queues", &[("ikada-timeout-ms", "1500")], "").await;
    assert_eq!(bench.door().last().0, Duration::from_millis(1500));
}

#[tokio::test]
async fn a_panic_in_a_handler_is_a_500_and_the_door_lives() {
    let bench = Bench::new();
    bench.door().script(Script::Panic);
    let heard = bench.get("/v1/queues").await;
    assert_eq!((heard.status.as_u16(), heard.code().as_str()), (500, "internal"));
    assert!(Lane::ALL.iter().all(|lane| bench.app.rooms.under_way(*lane) == 0));
    assert_eq!(bench.get("/healthz").await.status, 200);
    // An answer to another question is a defect, not a crash.
    bench.door().answer_next(Answer::Accepted);
    assert_eq!(bench.post("/v1/tasks", "{}").await.status, 500);
}
