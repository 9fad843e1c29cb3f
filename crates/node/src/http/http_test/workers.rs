//! Workers through the client door.

use serde_json::json;

use super::Bench;

#[tokio::test]
async fn b4_16_the_cluster_tells_workers_and_slots() {
    let bench = Bench::new();
    let empty = bench.get("/v1/cluster").await.json();
    assert_eq!(empty["workers"]["status"], "dead", "no worker is alive");
    let beat = json!({"session": "7", "slots": 2, "queues": ["mail"], "labels": {"zone": "a"}});
    for name in ["w-1", "w-2"] {
        let path = format!("/v1/workers/{name}");
        let heard = bench.send("PUT", &path, &[], beat.to_string()).await;
        assert_eq!(heard.status, 200, "{}", heard.json());
        assert_eq!((&heard.json()["wanted"], &heard.json()["term"]), (&json!("work"), &json!(7)));
    }
    let healthy = bench.get("/v1/cluster").await.json();
    assert_eq!(healthy["workers"]["status"], "healthy");
    assert_eq!(healthy["workers"]["slots"], json!({"open": 2, "total": 4}));
    bench.send("PUT", "/v1/workers/w-dead", &[], beat.to_string()).await;
    let page = bench.get("/v1/workers").await.json();
    assert_eq!(page["summary"]["status"], "degraded");
    assert_eq!(page["summary"]["slots"]["total"], 4, "a dead worker has no slots");
    assert_eq!(page["workers"].as_array().unwrap().len(), 3);
    let shown = bench.get("/v1/workers/w-1").await.json();
    assert_eq!((&shown["state"], &shown["labels"]["zone"]), (&json!("alive"), &json!("a")));
    let drained = bench.post("/v1/workers/w-1/drain", "").await.json();
    assert_eq!(drained["outcome"], "draining");
    assert_eq!(bench.get("/v1/workers/w-1").await.json()["state"], "draining");
    let open = bench.get("/v1/workers").await.json()["summary"]["slots"]["open"].clone();
    assert_eq!(open, 1, "draining slots are not open");
    assert_eq!(bench.send("DELETE", "/v1/workers/w-2", &[], "").await.status, 200);
    let heard = bench.send("DELETE", "/v1/workers/nobody", &[], "").await;
    assert_eq!((heard.status.as_u16(), heard.code().as_str()), (404, "worker_not_found"));
    assert_eq!(bench.get("/v1/workers/nobody").await.code(), "worker_not_found");
}

#[tokio::test]
async fn bad_beats_are_told_by_their_field() {
    let bench = Bench::new();
    for (body, field) in [
        (json!({"session": "1", "slots": 0}), "slots"),
        (json!({"session": "1", "slots": 1, "queues": ["a b"]}), "queues"),
        (json!({"session": "1", "slots": 1, "version": "x".repeat(65)}), "version"),
    ] {
        let heard = bench.send("PUT", "/v1/workers/w", &[], body.to_string()).await;
        assert_eq!(heard.json()["field"], field, "{body}");
    }
}
