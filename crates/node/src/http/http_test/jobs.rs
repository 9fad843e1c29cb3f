//! Jobs through the door (B4-2 to B4-8, B4-13, B4-39).

use hyper::StatusCode;
use ikada_replica::call::{Answer, View};
use serde_json::{Value, json};

use super::Bench;

const STREAM: (&str, &str) = ("accept", "text/event-stream");

async fn claim(bench: &Bench, count: u32) -> Vec<Value> {
    let body = json!({"worker": "w", "queues": ["default"], "count_max": count}).to_string();
    let claimed = bench.post("/v1/tasks/claim", &body).await.json();
    claimed["tasks"].as_array().unwrap().clone()
}

async fn finish(bench: &Bench, task: &Value, output: &str) -> Value {
    let upload = bench.send("POST", "/v1/uploads", &[], b"abc".to_vec()).await.json();
    let body = json!({"worker": "w", "tasks": [{"id": task["id"], "fence": task["fence"], "result": 7,
        "outputs": [{"name": output, "size": 3, "digest": upload["digest"]}]}]});
    let done = bench.post("/v1/tasks/complete", &body.to_string()).await.json();
    done["tasks"][0].clone()
}

// B4-3: one refusal lists everything, so that a sender mends it in one go.
#[tokio::test]
async fn b4_3_one_error_lists_all_that_is_wrong_with_a_job() {
    let bench = Bench::new();
    let job = json!({"id": "a b", "priority": 10, "ttl_ms": 1, "queue": "no queue",
        "retention_ms": u64::MAX, "stages": [
            {"name": "one", "program": "nobody", "range": {"from": 0, "to": 0}},
            {"name": "two", "program": "wordcount", "gather": {"of": ["one"]}, "settings": {"": "x"}}]});
    let refused = bench.post("/v1/jobs", &job.to_string()).await;
    assert_eq!((refused.status.as_u16(), refused.code().as_str()), (400, "bad_name"));
    let problem = refused.json();
    assert_eq!(problem["field"], "id", "the first one");
    let detail = problem["detail"].as_str().unwrap();
    let fields = [
        "id: ",
        "priority: ",
        "ttl_ms: ",
        "retention_ms: ",
        "queue: ",
        "stages[0].range: ",
        "stages[1].settings.",
    ];
    for field in fields {
        assert!(detail.contains(field), "{field} is missing in {detail}");
    }
    // A map and its reduce are looked at together, and so are programs that nobody knows.
    let job = json!({"map": {"program": "nobody", "range": {"from": 0, "to": 3}},
        "reduce": {"program": "no-one"}});
    let detail = bench.post("/v1/jobs", &job.to_string()).await.json()["detail"].to_string();
    assert!(detail.contains("nobody") && detail.contains("no-one"), "{detail}");
    // Nothing of them was taken.
    assert_eq!(bench.get("/v1/jobs").await.json()["jobs"], json!([]));
}

// B4-3, B4-4, B4-5, B4-8, B4-10
#[tokio::test]
async fn b4_3_b4_4_b4_5_b4_8_a_job_runs_from_submission_to_result() {
    let bench = Bench::new();
    for name in ["a.txt", "b.txt"] {
        let path = format!("/v1/objects/texts/{name}");
        bench.send("PUT", &path, &[], name.as_bytes().to_vec()).await;
    }
    let job = json!({"id": "j1", "name": "count", "settings": {"case": "fold"},
        "map": {"program": "wordcount", "inputs": [
            {"name": "a.txt", "bucket": "texts", "key": "a.txt"},
            {"name": "b.txt", "bucket": "texts", "key": "b.txt"}]},
        "reduce": {"program": "merge"}})
    .to_string();
    let made = bench.send("POST", "/v1/jobs", &[("idempotency-key", "r1")], job.clone()).await;
    let said = String::from_utf8_lossy(&made.body).into_owned();
    assert_eq!(made.status, StatusCode::CREATED, "{said}");
    let shown = made.json();
    assert_eq!(
        (&shown["status"], &shown["assignment"]),
        (&json!("not_started"), &json!("not_assigned"))
    );
    assert_eq!(shown["tasks_total"], 3);
    let again = bench.send("POST", "/v1/jobs", &[("idempotency-key", "r1")], job).await;
    assert_eq!(again.json()["id"], "j1");
    let early = bench.get("/v1/jobs/j1/result").await.json();
    assert_eq!((&early["status"], &early["outputs"]), (&json!("not_started"), &Value::Null));
    let one = claim(&bench, 1).await.remove(0);
    assert_eq!(one["work"]["settings"]["case"], "fold");
    assert_eq!(one["work"]["job"], json!({"job": "j1", "stage": "map", "index": 0}));
    assert!(one["work"]["inputs"][0]["version"].is_string(), "inputs are pinned");
    let half = bench.get("/v1/jobs/j1").await.json();
    assert_eq!(
        (&half["status"], &half["assignment"]),
        (&json!("in_progress"), &json!("partially_assigned"))
    );
    let two = claim(&bench, 5).await.remove(0);
    for task in [&one, &two] {
        assert_eq!(finish(&bench, task, "counts").await["outcome"], "completed");
    }
    assert_eq!(bench.get("/v1/jobs/j1").await.json()["status"], "halted");
    let merge = claim(&bench, 5).await.remove(0);
    assert_eq!(merge["work"]["inputs"].as_array().map(Vec::len), Some(2));
    finish(&bench, &merge, "total").await;
    let done = bench.get("/v1/jobs/j1/events?after=1&wait_ms=5000").await.json();
    assert_eq!(done["status"], "done");
    let result = bench.get("/v1/jobs/j1/result").await.json();
    assert_eq!((&result["result"], &result["task"]), (&json!(7), &json!("j1:reduce.0")));
    assert_eq!(result["outputs"][0]["key"], "j1/reduce/0/total");
    let read = bench.get("/v1/objects/jobs/j1/reduce/0/total").await;
    assert_eq!(&read.body[..], b"abc");
    let page = bench.get("/v1/jobs/j1/tasks?limit=2").await.json();
    assert_eq!((&page["tasks"][1]["id"], &page["next"]), (&json!("j1:map.1"), &json!("reduce.0")));
    let rest = bench.get("/v1/jobs/j1/tasks?after=reduce.0").await.json();
    assert_eq!((&rest["tasks"][0]["state"], &rest["next"]), (&json!("done"), &Value::Null));
    assert_eq!(bench.get("/v1/jobs").await.json()["jobs"][0]["id"], "j1");
    let late = bench.post("/v1/jobs/j1/cancel", "").await;
    assert_eq!((late.status, late.code().as_str()), (StatusCode::CONFLICT, "job_finished"));
}

// B4-8, X7: whatever the length of a page, each output of the last stages is told once, in order.
#[tokio::test]
async fn b4_8_x_7_pages_of_a_result_go_over_all_last_stages() {
    let bench = Bench::new();
    let stage =
        |name: &str, to: u32| json!({"name": name, "program": "wordcount", "range": {"to": to}});
    let job = json!({"id": "j1", "stages": [stage("left", 2), stage("right", 3)]});
    assert_eq!(bench.post("/v1/jobs", &job.to_string()).await.status, StatusCode::CREATED);
    for _ in 0..5 {
        let task = claim(&bench, 1).await.remove(0);
        assert_eq!(finish(&bench, &task, "out").await["outcome"], "completed");
    }
    let all: Vec<String> = [("left", 0), ("left", 1), ("right", 0), ("right", 1), ("right", 2)]
        .map(|(stage, index)| format!("j1/{stage}/{index}/out"))
        .into();
    for limit in 1..=6 {
        let (mut found, mut after): (Vec<String>, String) = (Vec::new(), String::new());
        // One page more than can be needed, so that a circle ends.
        for _ in 0..6 {
            let path = format!("/v1/jobs/j1/result?limit={limit}{after}");
            let page = bench.get(&path).await.json();
            let outputs = page["outputs"].as_array().unwrap();
            assert!(outputs.len() <= limit, "{path}: {page}");
            found.extend(outputs.iter().map(|output| output["key"].as_str().unwrap().to_owned()));
            let Some(next) = page["next"].as_str() else { break };
            after = format!("&after={next}");
        }
        assert_eq!(found, all, "{limit} on a page");
    }
    for (query, field) in
        [("limit=0", "limit"), ("limit=1001", "limit"), ("after=j2/left/0/out", "after")]
    {
        let refused = bench.get(&format!("/v1/jobs/j1/result?{query}")).await;
        assert_eq!((refused.status.as_u16(), &refused.json()["field"]), (400, &json!(field)));
    }
}

// B4-2, B4-3, B4-39
#[tokio::test]
async fn b4_2_what_cannot_run_is_refused_by_name() {
    let bench = Bench::new();
    let map = |more: Value| {
        let mut map = json!({"program": "wordcount"});
        map.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({ "map": map })
    };
    let stage = |name: &str, more: Value| {
        let mut stage = json!({"name": name, "program": "grep"});
        stage.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        stage
    };
    let range = json!({"range": {"to": 3}});
    let circle = json!([
        stage("a", json!({"gather": {"of": ["b"]}})),
        stage("b", json!({"gather": {"of": ["a"]}}))
    ]);
    let cases = [
        (json!({}), "map", "bad_value"),
        (map(json!({"inputs": []})), "inputs", "bad_value"),
        (map(json!({"range": {"to": 0}})), "map.range", "bad_value"),
        (
            json!({"map": {"program": "wrodcount", "range": {"to": 1}}}),
            "map.program",
            "unknown_program",
        ),
        (map(json!({"inputs": [{"name": "x"}]})), "map.inputs[0].name", "bad_value"),
        (
            map(json!({"inputs": [{"name": "x", "bucket": "b", "key": "no"}]})),
            "map.inputs[0]",
            "object_not_found",
        ),
        (map(json!({"range": {"to": 2}, "settle": {"quorum": 3}})), "settle", "bad_value"),
        (json!({"stages": circle}), "stages", "bad_value"),
        (
            json!({"stages": [stage("a", range.clone()), stage("a", range.clone())]}),
            "stages[1].name",
            "bad_value",
        ),
        (
            json!({"stages": [stage("a", json!({"gather": {"of": ["x"]}}))]}),
            "stages[0]",
            "bad_value",
        ),
        (json!({"stages": [stage("a b", range.clone())]}), "stages[0].name", "bad_name"),
    ];
    for (body, field, code) in cases {
        let refused = bench.post("/v1/jobs", &body.to_string()).await;
        assert!(refused.status.is_client_error(), "{body}");
        assert_eq!(
            (refused.code().as_str(), refused.json()["field"].as_str()),
            (code, Some(field)),
            "{body}"
        );
    }
    let number = bench.post("/v1/jobs", r#"{"settings":{"a":1},"map":{"program":"grep"}}"#).await;
    assert_eq!(number.status, StatusCode::BAD_REQUEST);
    let strange = bench.post("/v1/jobs", r#"{"mapp":{}}"#).await.json();
    assert!(strange["detail"].as_str().unwrap().contains("mapp"), "{strange}");
    assert_eq!(bench.get("/v1/jobs/none").await.code(), "job_not_found");
    assert_eq!(bench.get("/v1/jobs").await.json()["jobs"], json!([]));
}

// B4-30, B4-32
#[tokio::test]
async fn b4_30_a_cancelled_job_ends_and_its_tasks_with_it() {
    let bench = Bench::new();
    let job = json!({"id": "j1", "stages": [
        {"name": "join", "program": "merge", "shuffle": {"of": ["split"], "partitions": 2}},
        {"name": "split", "program": "wordcount", "range": {"to": 5, "step": 2}}]});
    let made = bench.post("/v1/jobs", &job.to_string()).await.json();
    assert_eq!(
        (&made["stages"][0]["name"], &made["stages"][0]["tasks"]),
        (&json!("split"), &json!(3))
    );
    let held = claim(&bench, 1).await.remove(0);
    let cancelled = bench.post("/v1/jobs/j1/cancel", "").await.json();
    assert_eq!(cancelled["status"], "cancelled");
    assert_eq!(cancelled["stages"][0]["cancelled"], 3);
    let late = finish(&bench, &held, "late").await;
    assert_eq!(late["problem"]["code"], "task_finished");
    assert!(claim(&bench, 5).await.is_empty());
}

/// Keeps a command, so that tasks can name it by a digest.
async fn push_program(bench: &Bench) {
    let file = bench.send("POST", "/v1/uploads", &[], b"echo 1".to_vec()).await.json();
    let body = json!({"name": "p", "kind": "command", "argv": ["sh", "{file}"], "file": file});
    let pushed = bench.post("/v1/programs", &body.to_string()).await;
    assert_eq!(pushed.status, StatusCode::CREATED, "{}", pushed.json());
}

// B4-28
#[tokio::test]
async fn b4_28_the_same_work_is_not_run_again_if_its_submitter_says_so() {
    let bench = Bench::new();
    push_program(&bench).await;
    bench.send("PUT", "/v1/objects/texts/a", &[], b"one".to_vec()).await;
    let task = |id: &str, reuse: bool| {
        let inputs = json!([{"name": "a", "bucket": "texts", "key": "a"}]);
        json!({"id": id, "program": "p", "inputs": inputs, "reuse": reuse}).to_string()
    };
    bench.post("/v1/tasks", &task("t1", true)).await;
    let first = claim(&bench, 5).await.remove(0);
    assert!(first["work"]["inputs"][0]["digest"].is_string(), "inputs are pinned by content");
    assert_eq!(finish(&bench, &first, "out").await["outcome"], "completed");
    bench.post("/v1/tasks", &task("t2", true)).await;
    let second = bench.get("/v1/tasks/t2").await.json();
    assert_eq!((&second["state"], &second["result"]), (&json!("done"), &json!(7)));
    assert_eq!(second["attempts"][0]["worker"], "reused");
    assert_eq!(&bench.get("/v1/objects/tasks/t2/out").await.body[..], b"abc");
    // Who does not ask runs; so does what reads other bytes under the same name.
    bench.post("/v1/tasks", &task("t3", false)).await;
    bench.send("PUT", "/v1/objects/texts/a", &[], b"two".to_vec()).await;
    bench.post("/v1/tasks", &task("t4", true)).await;
    assert_eq!(claim(&bench, 5).await.len(), 2);
    let job = |id: &str| {
        let range = json!({"to": 2});
        json!({"id": id, "reuse": true, "map": {"program": "p", "range": range}}).to_string()
    };
    bench.post("/v1/jobs", &job("j1")).await;
    for part in claim(&bench, 5).await {
        finish(&bench, &part, "out").await;
    }
    bench.post("/v1/jobs", &job("j2")).await;
    let again = bench.get("/v1/jobs/j2").await.json();
    assert_eq!((&again["status"], &again["stages"][0]["reused"]), (&json!("done"), &json!(2)));
    assert_eq!(bench.get("/v1/jobs/j2/result").await.json()["outputs"][1]["key"], "j2/map/1/out");
    let stray = bench.post("/v1/tasks", r#"{"payload": 1, "reuse": true}"#).await;
    assert_eq!((stray.code().as_str(), &stray.json()["field"]), ("bad_value", &json!("reuse")));
    let slow = json!({"duplicate_after": 1, "map": {"program": "p", "range": {"to": 2}}});
    let slow = bench.post("/v1/jobs", &slow.to_string()).await;
    assert_eq!(
        (slow.code().as_str(), &slow.json()["field"]),
        ("bad_value", &json!("duplicate_after"))
    );
}

// Q4
#[tokio::test]
async fn q4_a_checkpoint_is_kept_for_the_next_attempt_and_only_from_the_live_one() {
    let bench = Bench::new();
    bench.post("/v1/tasks", r#"{"id": "t1", "payload": 1}"#).await;
    let first = claim(&bench, 1).await.remove(0);
    assert_eq!(first["checkpoint"], Value::Null);
    let keep = async |task: &Value, bytes: &[u8]| {
        let stored = bench.send("POST", "/v1/uploads", &[], bytes.to_vec()).await.json();
        let body = json!({"worker": "w", "fence": task["fence"], "size": stored["size"],
            "digest": stored["digest"], "chunks": stored["chunks"]});
        bench.post("/v1/tasks/t1/checkpoint", &body.to_string()).await
    };
    let kept = keep(&first, b"line 1").await;
    assert_eq!((kept.status, &kept.json()["outcome"]), (StatusCode::OK, &json!("stored")));
    assert_eq!(keep(&first, b"line 2").await.status, StatusCode::OK);
    let body = json!({"worker": "w", "tasks": [
        {"id": "t1", "fence": first["fence"], "error": "power", "retry": true, "delay_ms": 0}]});
    bench.post("/v1/tasks/fail", &body.to_string()).await;
    let second = claim(&bench, 1).await.remove(0);
    assert_eq!(second["checkpoint"], true);
    assert_eq!(&bench.get("/v1/objects/tasks/t1/.checkpoint").await.body[..], b"line 2");
    let stale = keep(&first, b"line 0").await;
    assert_eq!((stale.status, stale.code().as_str()), (StatusCode::CONFLICT, "stale_fence"));
    assert_eq!(&bench.get("/v1/objects/tasks/t1/.checkpoint").await.body[..], b"line 2");
    let lost =
        json!({"worker": "w", "fence": second["fence"], "size": 3, "digest": "0".repeat(64)});
    let lost = bench.post("/v1/tasks/t1/checkpoint", &lost.to_string()).await;
    assert_eq!(lost.code(), "upload_expired");
    finish(&bench, &second, "out").await;
    let gone = bench.get("/v1/objects/tasks/t1/.checkpoint").await;
    assert_eq!(gone.status, StatusCode::NOT_FOUND);
}

// B4-31: two jobs over the same data do not disturb each other: each reads what was there when it was submitted.
#[tokio::test]
async fn b4_31_jobs_over_the_same_data_are_isolated() {
    let bench = Bench::new();
    let mut read = Vec::new();
    for (job, text) in [("first", "old"), ("second", "new")] {
        bench.send("PUT", "/v1/objects/texts/a.txt", &[], text.as_bytes().to_vec()).await;
        let body = json!({"id": job, "map": {"program": "wordcount", "inputs": [
            {"name": "a.txt", "bucket": "texts", "key": "a.txt"}]}});
        let made =
            bench.send("POST", "/v1/jobs", &[("idempotency-key", job)], body.to_string()).await;
        assert_eq!(made.status, StatusCode::CREATED);
    }
    // Both begin after both were submitted.
    let mut tasks = claim(&bench, 1).await;
    tasks.extend(claim(&bench, 1).await);
    for task in tasks {
        let input = &task["work"]["inputs"][0];
        let version = input["version"].as_str().expect("a version");
        let bytes = bench.get(&format!("/v1/objects/texts/a.txt?version={version}")).await.body;
        let job = task["work"]["job"]["job"].as_str().expect("a job").to_owned();
        read.push((job, String::from_utf8_lossy(&bytes).into_owned()));
        assert_eq!(finish(&bench, &task, "counts").await["outcome"], "completed");
    }
    read.sort();
    let expected = [("first", "old"), ("second", "new")];
    assert_eq!(read, expected.map(|(job, text)| (job.to_owned(), text.to_owned())));
    // What they bring lies apart, too (B4-11).
    for job in ["first", "second"] {
        let result = bench.get(&format!("/v1/jobs/{job}/result")).await.json();
        assert_eq!(result["outputs"][0]["key"], format!("{job}/map/0/counts"));
    }
}

#[tokio::test]
async fn b4_25_a_stream_tells_how_a_job_stands_until_it_has_ended() {
    let bench = Bench::new();
    let missing = bench.send("GET", "/v1/jobs/j1/events", &[STREAM], "").await;
    assert_eq!(missing.code(), "job_not_found");
    let body = json!({"id": "j1", "map": {"program": "wordcount", "range": {"to": 1}}});
    bench.send("POST", "/v1/jobs", &[("idempotency-key", "r1")], body.to_string()).await;
    for task in claim(&bench, 1).await {
        assert_eq!(finish(&bench, &task, "counts").await["outcome"], "completed");
    }
    let told = bench.send("GET", "/v1/jobs/j1/events", &[STREAM], "").await;
    assert_eq!(told.status, StatusCode::OK);
    let text = String::from_utf8_lossy(&told.body).into_owned();
    let last = text.trim_end().rsplit("\n\n").next().expect("an event").to_owned();
    let revision = bench.get("/v1/jobs/j1").await.json()["revision"].to_string();
    assert!(last.starts_with(&format!("id: {revision}\nevent: job\ndata: {{")), "{text}");
    assert!(last.contains("\"status\":\"done\""), "{text}");
    // Who has heard all is told the end once more, and nothing else.
    let heard = [STREAM, ("last-event-id", revision.as_str())];
    let again = bench.send("GET", "/v1/jobs/j1/events", &heard, "").await;
    assert_eq!(String::from_utf8_lossy(&again.body).matches("event: job").count(), 1);
    let bad = [STREAM, ("last-event-id", "x")];
    assert!(bench.send("GET", "/v1/jobs/j1/events", &bad, "").await.status.is_client_error());
}

#[tokio::test]
async fn b4_7_jobs_are_listed_the_newest_first_and_found_by_status_and_text() {
    let bench = Bench::new();
    for id in ["b", "c", "a"] {
        let job = json!({"id": id, "name": format!("count {id}"), "queue": id,
            "map": {"program": "wordcount", "range": {"to": 2}}});
        assert_eq!(bench.post("/v1/jobs", &job.to_string()).await.status, StatusCode::CREATED);
    }
    bench.post("/v1/jobs/c/cancel", "").await;
    let ids = async |query: &str| -> Vec<String> {
        let (mut ids, mut after) = (Vec::new(), String::new());
        loop {
            let page = bench.get(&format!("/v1/jobs?limit=1&{query}{after}")).await.json();
            let id = |job: &serde_json::Value| job["id"].as_str().unwrap_or("?").to_owned();
            ids.extend(page["jobs"].as_array().expect("jobs").iter().map(id));
            match page["next"].as_str() {
                Some(next) => after = format!("&after={next}"),
                None => return ids,
            }
        }
    };
    assert_eq!(ids("order=newest").await, ["a", "c", "b"]);
    assert_eq!(ids("order=id").await, ["a", "b", "c"]);
    assert_eq!(ids("status=cancelled").await, ["c"]);
    assert_eq!(ids("status=not_started&order=newest").await, ["a", "b"]);
    assert_eq!(ids("status=not_started").await, ["a", "b"]);
    assert_eq!(ids("find=count+b").await, ["b"]);
    assert!(ids("find=nothing").await.is_empty());
    for (query, field) in
        [("status=lost", "status"), ("order=age", "order"), ("order=newest&after=x", "after")]
    {
        let refused = bench.get(&format!("/v1/jobs?{query}")).await;
        assert_eq!((refused.status.as_u16(), &refused.json()["field"]), (400, &json!(field)));
    }
}

#[tokio::test]
async fn b4_7_an_unknown_job_is_not_waited_for() {
    let bench = Bench::new();
    let job = json!({"id": "j", "map": {"program": "wordcount", "range": {"to": 2}}});
    assert_eq!(bench.post("/v1/jobs", &job.to_string()).await.status, StatusCode::CREATED);
    // What the first look does not find is not looked for again; the next one would find it.
    let (view, lsns) = (View::Job(None), Vec::new());
    bench.door().answer_next(Answer::View { view, lsns, age_ms: 0 });
    let refused = bench.get("/v1/jobs/j/events?after=0&wait_ms=60000").await;
    assert_eq!(refused.code(), "job_not_found");
    assert_eq!(bench.get("/v1/jobs/j/events?after=0&wait_ms=60000").await.status, StatusCode::OK);
}
