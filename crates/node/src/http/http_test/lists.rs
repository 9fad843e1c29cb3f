//! Lists through the door: filters, pages and folding (X7, B4-16, CH-11).

use serde_json::{Value, json};

use super::Bench;

fn names(list: &Value, field: &str) -> Vec<String> {
    let items = list.as_array().unwrap().iter();
    items.map(|item| item[field].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn b4_16_tasks_of_a_worker_are_listed_without_their_payloads() {
    let bench = Bench::new();
    for id in ["a", "b", "c"] {
        let task = json!({"id": id, "queue": "q", "payload": {"large": "x".repeat(1000)}});
        assert_eq!(bench.post("/v1/tasks", &task.to_string()).await.status, 201);
    }
    let claim = json!({"worker": "w-1", "queues": ["q"], "count_max": 2});
    let claimed = bench.post("/v1/tasks/claim", &claim.to_string()).await.json();
    let held = names(&claimed["tasks"], "id");
    let page = bench.get("/v1/tasks?worker=w-1&state=claimed&brief=true").await.json();
    let mut found = names(&page["tasks"], "id");
    found.sort();
    assert_eq!(found, held);
    assert!(page["tasks"][0].get("payload").is_none(), "{page}");
    assert_eq!(page["tasks"][0]["worker"], "w-1");
    let whole = bench.get("/v1/tasks?worker=w-1").await.json();
    assert_eq!(whole["tasks"][0]["payload"]["large"].as_str().map(str::len), Some(1000));
    let nobody = bench.get("/v1/tasks?worker=w-2").await.json();
    assert_eq!(nobody["tasks"], json!([]));
    assert_eq!(bench.get("/v1/tasks?worker=a%20b").await.json()["field"], "worker");
    let found = bench.get("/v1/tasks?find=b").await.json();
    assert_eq!(names(&found["tasks"], "id"), ["b"]);
    let all = bench.get("/v1/tasks?find=").await.json();
    assert_eq!(names(&all["tasks"], "id").len(), 3, "no text is in every id");
}

#[tokio::test]
async fn x_7_queues_come_in_pages_with_the_sum_of_all() {
    let bench = Bench::new();
    for number in 0..5 {
        for task in 0..=number {
            let body = json!({"id": format!("t{number}-{task}"), "queue": format!("q{number}")});
            bench.post("/v1/tasks", &body.to_string()).await;
        }
    }
    let first = bench.get("/v1/queues?limit=2").await.json();
    assert_eq!(names(&first["queues"], "name"), ["q0", "q1"]);
    assert_eq!((&first["next"], &first["total"]), (&json!("q1"), &json!(5)));
    assert_eq!(first["sum"]["ready"], 15);
    let last = bench.get("/v1/queues?limit=3&after=q1").await.json();
    assert_eq!(names(&last["queues"], "name"), ["q2", "q3", "q4"]);
    assert!(last.get("next").is_none());
    bench.post("/v1/queues/q1/pause", "").await;
    let needy = bench.get("/v1/queues?order=need&limit=2").await.json();
    assert_eq!(names(&needy["queues"], "name"), ["q1", "q4"], "what is paused, then the fullest");
    let found = bench.get("/v1/queues?find=3").await.json();
    assert_eq!((names(&found["queues"], "name"), &found["total"]), (vec!["q3".into()], &json!(1)));
    assert_eq!(bench.get("/v1/queues?order=size").await.json()["field"], "order");
    assert_eq!(bench.get("/v1/queues?limit=1001").await.json()["field"], "limit");
}

#[tokio::test]
async fn x_7_workers_come_in_pages_with_the_sum_of_all() {
    let bench = Bench::new();
    for number in 0..5 {
        let beat = json!({"session": "7", "slots": 2, "queues": ["mail"]}).to_string();
        bench.send("PUT", &format!("/v1/workers/w-{number}"), &[], beat).await;
    }
    let first = bench.get("/v1/workers?limit=3").await.json();
    assert_eq!(names(&first["workers"], "id"), ["w-0", "w-1", "w-2"]);
    assert_eq!((&first["next"], &first["summary"]["alive"]), (&json!("w-2"), &json!(5)));
    let last = bench.get("/v1/workers?limit=3&after=w-2").await.json();
    assert_eq!(names(&last["workers"], "id"), ["w-3", "w-4"]);
    assert!(last.get("next").is_none());
    let found = bench.get("/v1/workers?find=-4").await.json();
    assert_eq!(names(&found["workers"], "id"), ["w-4"]);
}

#[tokio::test]
async fn x_7_schedules_come_in_pages_of_their_namespace() {
    let bench = Bench::new();
    for number in 0..5 {
        let body = json!({"every_ms": 60_000, "task": {"payload": {"n": number}}}).to_string();
        let path = format!("/v1/schedules/s{number}");
        assert_eq!(bench.send("PUT", &path, &[], body.clone()).await.status, 200);
        // Namespaces before and after this one have schedules, too.
        for other in ["aaa", "zzz"] {
            let path = format!("{path}?namespace={other}");
            assert_eq!(bench.send("PUT", &path, &[], body.clone()).await.status, 200);
        }
    }
    let first = bench.get("/v1/schedules?limit=2").await.json();
    assert_eq!(names(&first["schedules"], "name"), ["s0", "s1"]);
    assert_eq!(first["next"], "s1");
    assert!(first["schedules"][0]["task"].get("payload").is_none(), "{first}");
    let second = bench.get("/v1/schedules?limit=2&after=s1").await.json();
    assert_eq!(names(&second["schedules"], "name"), ["s2", "s3"]);
    assert_eq!(second["next"], "s3");
    let last = bench.get("/v1/schedules?limit=2&after=s3").await.json();
    assert_eq!(names(&last["schedules"], "name"), ["s4"]);
    assert!(last.get("next").is_none(), "{last}");
    // A page that is just full is the last one.
    let full = bench.get("/v1/schedules?limit=5").await.json();
    assert!(full["schedules"].as_array().map(Vec::len) == Some(5) && full.get("next").is_none());
    // A name that is gone, or never was, is a place as any other.
    let between = bench.get("/v1/schedules?after=s1x").await.json();
    assert_eq!(names(&between["schedules"], "name"), ["s2", "s3", "s4"]);
    assert_eq!(bench.get("/v1/schedules?limit=0").await.json()["field"], "limit");
    assert_eq!(bench.get("/v1/schedules?limit=1001").await.json()["field"], "limit");
    assert_eq!(bench.get("/v1/schedules?after=a%20b").await.json()["field"], "after");
}

// X7: without a number a page has a hundred, however many there are.
#[tokio::test]
async fn x_7_a_page_of_schedules_is_bounded_when_nobody_says_how_long() {
    let bench = Bench::new();
    for number in 0..101 {
        let body = json!({"every_ms": 60_000}).to_string();
        bench.send("PUT", &format!("/v1/schedules/s{number:03}"), &[], body).await;
    }
    let page = bench.get("/v1/schedules").await.json();
    assert_eq!(page["schedules"].as_array().map(Vec::len), Some(100));
    assert_eq!(page["next"], "s099");
}

#[tokio::test]
async fn ch_11_a_folder_of_many_objects_is_told_once() {
    let bench = Bench::new();
    let mut keys: Vec<String> = (0..40).map(|number| format!("2026/{number:02}")).collect();
    keys.extend(["2027/a/b".to_owned(), "readme".to_owned(), "zoo/x".to_owned()]);
    for key in &keys {
        let stored = bench.send("PUT", &format!("/v1/objects/b/{key}"), &[], "x").await;
        assert_eq!(stored.status, 201);
    }
    let top = bench.get("/v1/objects/b?delimiter=/").await.json();
    assert_eq!(top["prefixes"], json!(["2026/", "2027/", "zoo/"]));
    assert_eq!(names(&top["objects"], "key"), ["readme"]);
    assert!(top.get("next").is_none());
    let first = bench.get("/v1/objects/b?delimiter=/&limit=2").await.json();
    assert_eq!((&first["prefixes"], &first["objects"]), (&json!(["2026/", "2027/"]), &json!([])));
    let next = first["next"].as_str().unwrap().replace('\u{10ffff}', "%F4%8F%BF%BF");
    let rest = bench.get(&format!("/v1/objects/b?delimiter=/&limit=2&after={next}")).await.json();
    assert_eq!(
        (&rest["prefixes"], rest["objects"][0]["key"].as_str()),
        (&json!(["zoo/"]), Some("readme"))
    );
    let within = bench.get("/v1/objects/b?delimiter=/&prefix=2027/").await.json();
    assert_eq!(within["prefixes"], json!(["2027/a/"]));
    let flat = bench.get("/v1/objects/b?limit=42").await.json();
    assert_eq!(flat["objects"].as_array().map(Vec::len), Some(42));
    assert!(flat.get("prefixes").is_none() && flat["next"].is_string());
}

// CH-11: a name may have the highest character, too, which the place behind a folder is made with.
#[tokio::test]
async fn ch_11_names_with_the_highest_character_end_no_list() {
    let bench = Bench::new();
    let high = "%F4%8F%BF%BF";
    let keys = [format!("a/{high}"), format!("a/{high}{high}"), format!("a/{high}b"), "b".into()];
    for key in &keys {
        let stored = bench.send("PUT", &format!("/v1/objects/b/{key}"), &[], "x").await;
        assert_eq!(stored.status, 201);
    }
    let all = bench.get("/v1/objects/b?delimiter=/").await.json();
    assert_eq!(
        (&all["prefixes"], names(&all["objects"], "key")),
        (&json!(["a/"]), vec!["b".into()])
    );
    assert!(all.get("next").is_none());
    let (mut after, mut told) = (String::new(), Vec::new());
    for _ in 0..keys.len() + 2 {
        let page = format!("/v1/objects/b?delimiter=/&limit=1&after={after}");
        let page = bench.get(&page).await.json();
        let prefixes = page["prefixes"].as_array().cloned().unwrap_or_default();
        told.extend(prefixes.iter().map(|prefix| prefix.as_str().unwrap().to_owned()));
        told.extend(names(&page["objects"], "key"));
        let Some(next) = page["next"].as_str() else { break };
        after = next.replace('\u{10ffff}', high);
    }
    assert_eq!(told, ["a/", "b"], "each once, however long the pages are");
}

#[tokio::test]
async fn the_live_stream_must_be_asked_for_as_one() {
    let bench = Bench::new();
    let heard = bench.get("/v1/live").await;
    assert_eq!((heard.status.as_u16(), heard.code().as_str()), (400, "bad_parameter"));
}
