//! Schedules through the client door.

use serde_json::json;

use super::Bench;

#[tokio::test]
async fn a_schedule_is_made_shown_paused_and_removed() {
    let bench = Bench::new();
    let body = json!({
        "cron": "30 2 * * mon-fri", "zone": "Europe/Berlin", "missed": "all", "overlap": "skip",
        "task": {"queue": "reports", "payload": {"kind": "daily"}, "max_attempts": 3},
    });
    let heard = bench.send("PUT", "/v1/schedules/nightly", &[], body.to_string()).await;
    assert_eq!(heard.status, 200, "{}", heard.json());
    let made = heard.json();
    assert_eq!((&made["version"], &made["zone"]), (&json!(1), &json!("Europe/Berlin")));
    assert_eq!(made["next_ms"].as_array().unwrap().len(), 5);
    assert_eq!((&made["missed"], &made["overlap"]), (&json!("all"), &json!("skip")));
    assert_eq!(made["task"]["queue"], "reports");
    let paused = bench.post("/v1/schedules/nightly/pause", "").await.json();
    assert_eq!((&paused["paused"], &paused["next_ms"]), (&json!(true), &json!([])));
    let resumed = bench.post("/v1/schedules/nightly/resume", "").await.json();
    assert_eq!((&resumed["paused"], &resumed["version"]), (&json!(false), &json!(3)));
    let page = bench.get("/v1/schedules").await.json();
    assert_eq!(page["schedules"][0]["name"], "nightly");
    let metrics = bench.get("/metrics").await;
    let text = String::from_utf8_lossy(&metrics.body);
    let line = "ikada_schedule_missed_total{namespace=\"default\",schedule=\"nightly\"} 0";
    assert!(text.contains(line), "{text}");
    let heard = bench.send("DELETE", "/v1/schedules/nightly", &[], "").await;
    assert_eq!((heard.status.as_u16(), &heard.json()["name"]), (200, &json!("nightly")));
    let heard = bench.send("DELETE", "/v1/schedules/nightly", &[], "").await;
    assert_eq!((heard.status.as_u16(), heard.code().as_str()), (404, "schedule_not_found"));
    assert_eq!(bench.get("/v1/schedules/nightly").await.code(), "schedule_not_found");
    assert_eq!(bench.post("/v1/schedules/nightly/pause", "").await.code(), "schedule_not_found");
}

#[tokio::test]
async fn bad_schedules_are_told_by_their_field() {
    let bench = Bench::new();
    for (body, field) in [
        (json!({"cron": "61 * * * *"}), "cron"),
        (json!({"cron": "0 0 30 2 *"}), "cron"),
        (json!({"cron": "* * * * *", "zone": "Mars/Olympus"}), "zone"),
        (json!({}), "cron"),
        (json!({"every_ms": 10}), "every_ms"),
        (json!({"every_ms": 1000, "task": {"id": "x"}}), "task.id"),
        (json!({"every_ms": 1000, "task": {"ttl_ms": 0}}), "task.ttl_ms"),
    ] {
        let heard = bench.send("PUT", "/v1/schedules/s", &[], body.to_string()).await;
        assert_eq!(heard.status, 400, "{body}");
        assert_eq!(heard.json()["field"], field, "{body}");
    }
    for body in [r#"{"every_ms": 1000, "evry": 1}"#, r#"{"every_ms": 1000, "missed": "some"}"#] {
        let heard = bench.send("PUT", "/v1/schedules/s", &[], body).await;
        assert_eq!(heard.status, 400, "{body}");
    }
    let late = json!({"every_ms": 1000, "expected_version": 4}).to_string();
    let heard = bench.send("PUT", "/v1/schedules/s", &[], late).await;
    assert_eq!(heard.code(), "version_conflict");
    assert_eq!(bench.get("/v1/schedules").await.json()["schedules"], json!([]));
}
