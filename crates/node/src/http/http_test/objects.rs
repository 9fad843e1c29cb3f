//! Objects through the door: what is stored, what is refused, and what is left behind (CH-1, CH-7, CH-8, CH-9).

use hyper::StatusCode;

use super::{Bench, Heard};

const MIB: usize = 1 << 20;

fn body_of(length: usize) -> Vec<u8> {
    (0..length).map(|place| (place * 31 + place / 4096) as u8).collect()
}

/// So many pieces, none like another.
fn pieces_of(count: usize) -> Vec<u8> {
    let mut bytes = body_of(count * MIB);
    for (number, piece) in bytes.chunks_mut(MIB).enumerate() {
        (piece[0], piece[1]) = (number as u8, count as u8);
    }
    bytes
}

async fn put(bench: &Bench, path: &str, headers: &[(&str, &str)], body: Vec<u8>) -> Heard {
    bench.send("PUT", path, headers, body).await
}

// CH-1, CH-8
#[tokio::test]
async fn ch_1_an_object_comes_back_whole_and_in_parts() {
    let bench = Bench::new();
    let body = body_of(2 * MIB + 700);
    let path = "/v1/objects/b/dir/big%20file";
    let stored = put(&bench, path, &[("content-type", "text/csv")], body.clone()).await;
    let said = String::from_utf8_lossy(&stored.body);
    assert_eq!(stored.status, StatusCode::CREATED, "{said}");
    let info = stored.json();
    assert_eq!(
        (info["key"].as_str(), info["size"].as_u64()),
        (Some("dir/big file"), Some(body.len() as u64))
    );
    let digest = blake3::hash(&body).to_hex().to_string();
    assert_eq!(info["digest"], digest.as_str());
    assert_eq!(stored.header("etag"), format!("\"{digest}\""));
    assert!(!stored.header("ikada-lsn").is_empty());
    let whole = bench.get(path).await;
    assert_eq!((whole.status, whole.header("content-type")), (StatusCode::OK, "text/csv"));
    assert!(whole.body == body);
    assert_eq!(whole.header("content-length"), body.len().to_string());
    assert_eq!(whole.header("content-security-policy"), "sandbox; default-src 'none'");
    for (range, from, to) in [
        ("bytes=0-0", 0, 1),
        ("bytes=1048570-1048580", MIB - 6, MIB + 5),
        ("bytes=5-2097160", 5, 2 * MIB + 9),
        ("bytes=-3", body.len() - 3, body.len()),
        ("bytes=2097152-", 2 * MIB, body.len()),
    ] {
        let part = bench.send("GET", path, &[("range", range)], "").await;
        assert_eq!(part.status, StatusCode::PARTIAL_CONTENT, "{range}");
        assert!(part.body == body[from..to], "{range}");
        let shown = format!("bytes {from}-{}/{}", to - 1, body.len());
        assert_eq!(part.header("content-range"), shown);
    }
    let beyond = bench.send("GET", path, &[("range", "bytes=9999999-")], "").await;
    assert_eq!(beyond.status, StatusCode::RANGE_NOT_SATISFIABLE);
    assert_eq!(beyond.header("content-range"), format!("bytes */{}", body.len()));
    let head = bench.send("HEAD", path, &[], "").await;
    assert_eq!((head.status, head.body.len()), (StatusCode::OK, 0));
    assert_eq!(head.header("content-length"), body.len().to_string());
}

// CH-9: a version is as old as the log says, at once, later, and when its upload comes again.
#[tokio::test]
async fn ch_9_whoever_writes_is_told_the_time_of_the_log() {
    let bench = Bench::new();
    let told = put(&bench, "/v1/objects/b/k", &[], b"1".to_vec()).await.json();
    let shown = bench.get("/v1/objects/b").await.json();
    assert_eq!(told["modified_ms"], shown["objects"][0]["modified_ms"]);
    let again = put(&bench, "/v1/objects/b/k", &[], b"1".to_vec()).await;
    assert_eq!(
        (again.status, &again.json()["modified_ms"]),
        (StatusCode::OK, &told["modified_ms"])
    );
}

// CH-7
#[tokio::test]
async fn ch_7_an_unknown_name_is_not_found() {
    let bench = Bench::new();
    assert_eq!(bench.get("/v1/objects/b/none").await.code(), "object_not_found");
    put(&bench, "/v1/objects/b/x", &[], b"1".to_vec()).await;
    assert_eq!(bench.get("/v1/objects/b/x?version=999").await.code(), "object_not_found");
    let gone = bench.send("DELETE", "/v1/objects/b/none", &[], "").await;
    assert_eq!((gone.status, gone.code().as_str()), (StatusCode::NOT_FOUND, "object_not_found"));
    let empty = put(&bench, "/v1/objects/b/empty", &[], Vec::new()).await;
    assert_eq!(empty.status, StatusCode::CREATED);
    let empty = bench.get("/v1/objects/b/empty").await;
    assert_eq!((empty.status, empty.body.len()), (StatusCode::OK, 0), "empty is not absent");
}

// CH-9
#[tokio::test]
async fn ch_9_versions_conditions_and_removal() {
    let bench = Bench::new();
    let path = "/v1/objects/b/x";
    let first = put(&bench, path, &[("if-none-match", "*")], b"one".to_vec()).await;
    assert_eq!(first.status, StatusCode::CREATED);
    let again = put(&bench, path, &[("if-none-match", "*")], b"two".to_vec()).await;
    assert_eq!(
        (again.status, again.code().as_str()),
        (StatusCode::PRECONDITION_FAILED, "precondition_failed")
    );
    let tag = first.header("etag").to_owned();
    let second = put(&bench, path, &[("if-match", &tag)], b"two".to_vec()).await;
    assert_eq!(second.status, StatusCode::CREATED);
    let late = put(&bench, path, &[("if-match", &tag)], b"three".to_vec()).await;
    assert_eq!(late.status, StatusCode::PRECONDITION_FAILED);
    assert_eq!(bench.get(path).await.body, "two");
    let version = first.header("ikada-version");
    assert_eq!(bench.get(&format!("{path}?version={version}")).await.body, "one");
    let unchanged = bench.send("GET", path, &[("if-none-match", second.header("etag"))], "").await;
    assert_eq!((unchanged.status, unchanged.body.len()), (StatusCode::NOT_MODIFIED, 0));
    let changed = bench.send("GET", path, &[("if-none-match", &tag)], "").await;
    assert_eq!(changed.status, StatusCode::OK);
    let listed = bench.get("/v1/objects/b?versions=true").await.json();
    assert_eq!(listed["objects"].as_array().unwrap().len(), 2);
    let removed = bench.send("DELETE", path, &[], "").await;
    assert_eq!(removed.json()["versions"], 2);
    assert_eq!(bench.get(path).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn lists_go_by_prefix_and_page() {
    let bench = Bench::new();
    for name in ["a/1", "a/2", "a/3", "b"] {
        put(&bench, &format!("/v1/objects/b1/{name}"), &[], name.into()).await;
    }
    put(&bench, "/v1/objects/b2/x", &[], b"x".to_vec()).await;
    let page = bench.get("/v1/objects/b1?prefix=a/&limit=2").await.json();
    assert_eq!(page["objects"][1]["key"], "a/2");
    assert_eq!(page["next"], "a/2");
    let page = bench.get("/v1/objects/b1?prefix=a/&limit=2&after=a/2").await.json();
    assert_eq!(
        (page["objects"][0]["key"].as_str(), &page["next"]),
        (Some("a/3"), &serde_json::Value::Null)
    );
    let buckets = bench.get("/v1/objects").await.json();
    assert_eq!(buckets["buckets"], serde_json::json!(["b1", "b2"]));
    assert_eq!(bench.get("/v1/objects/b1?limit=0").await.code(), "bad_parameter");
}

// X8: names that climb, lie or overflow are refused by name, and nothing leaves the folder of digests.
#[tokio::test]
async fn bad_names_and_headers_are_refused_and_leave_nothing() {
    let bench = Bench::new();
    let long = format!("/v1/objects/b/{}", "x".repeat(1025));
    for path in [
        "/v1/objects/b/..",
        "/v1/objects/b/../../etc/passwd",
        "/v1/objects/b/%2e%2e/x",
        "/v1/objects/b/a/%2e%2e%2fx",
        "/v1/objects/b/a//b",
        "/v1/objects/b/%00",
        "/v1/objects/b/a%0d%0ab",
        &long,
    ] {
        let refused = put(&bench, path, &[], b"x".to_vec()).await;
        assert_eq!(
            (refused.status, refused.code().as_str()),
            (StatusCode::BAD_REQUEST, "bad_name"),
            "{path}"
        );
        assert_eq!(refused.json()["field"], "key");
    }
    let bucket = put(&bench, "/v1/objects/%2e%2e/x", &[], b"x".to_vec()).await;
    assert_eq!(bucket.json()["field"], "bucket");
    let reserved = put(&bench, "/v1/objects/jobs/x", &[], b"x".to_vec()).await;
    assert_eq!(reserved.code(), "bucket_reserved");
    let path = "/v1/objects/b/x";
    let wrong = "0".repeat(64);
    let cases: [(&str, &str, &str); 5] = [
        ("ikada-digest", "zz", "bad_parameter"),
        ("ikada-digest", &wrong, "wrong_digest"),
        ("if-match", "\"zz\"", "bad_parameter"),
        ("content-length", "99999999999999", "too_large"),
        ("content-type", &"t".repeat(129), "bad_parameter"),
    ];
    for (name, value, code) in cases {
        assert_eq!(put(&bench, path, &[(name, value)], b"x".to_vec()).await.code(), code, "{name}");
    }
    assert_eq!(bench.get("/v1/objects/b").await.json()["objects"], serde_json::json!([]));
    let right = blake3::hash(b"x").to_hex().to_string();
    let stored = put(&bench, path, &[("ikada-digest", &right)], b"x".to_vec()).await;
    assert_eq!(stored.status, StatusCode::CREATED);
    assert_eq!(bench.door().blob_files().len(), 1, "equal bytes are one file");
}

// CH-28, A1: a flipped bit on disk is never served.
#[tokio::test]
async fn ch_28_damage_is_found_and_never_served() {
    let bench = Bench::new();
    put(&bench, "/v1/objects/b/x", &[], b"good".to_vec()).await;
    let file = bench.door().blob_files().pop().unwrap();
    std::fs::write(&file, b"goof").unwrap();
    let shelf = crate::http::Door::shelf(bench.door()).clone();
    assert_eq!(bench.get("/v1/objects/b/x").await.body, "good", "what came in is in memory");
    assert_eq!(shelf.counters().cache_hits, 1);
    shelf.forget_all();
    let missing = bench.get("/v1/objects/b/x").await;
    assert_eq!(
        (missing.status, missing.code().as_str()),
        (StatusCode::SERVICE_UNAVAILABLE, "piece_missing")
    );
    assert!(!file.exists(), "set aside");
    put(&bench, "/v1/objects/b/y", &[], b"good".to_vec()).await;
    assert_eq!(bench.get("/v1/objects/b/x").await.body, "good", "equal bytes heal it");
    put(&bench, "/v1/objects/b/x", &[], b"next".to_vec()).await;
    assert_eq!(bench.get("/v1/objects/b/x").await.body, "next", "memory never shows the old bytes");
}

// CH-26: asked first, filled by uploads and downloads, and not by what is too large for it.
#[tokio::test]
async fn ch_26_memory_is_asked_first_and_filled_both_ways() {
    let bench = Bench::new();
    let shelf = crate::http::Door::shelf(bench.door()).clone();
    let seen = || (shelf.counters().cache_hits, shelf.counters().cache_misses);
    put(&bench, "/v1/objects/b/x", &[], pieces_of(2)).await;
    assert!(bench.get("/v1/objects/b/x").await.body == pieces_of(2));
    assert_eq!(seen(), (2, 0), "filled by the upload");
    shelf.forget_all();
    for wanted in [(2, 2), (4, 2)] {
        assert!(bench.get("/v1/objects/b/x").await.body == pieces_of(2));
        assert_eq!(seen(), wanted, "filled by the download");
    }
    let held = shelf.counters().cache_bytes;
    put(&bench, "/v1/objects/b/large", &[], pieces_of(9)).await;
    assert_eq!(bench.get("/v1/objects/b/large").await.body.len(), 9 * MIB);
    assert_eq!(shelf.counters().cache_bytes, held, "nine pieces pass it by");
}

// A3: what nothing refers to goes; everything else stays.
#[tokio::test]
async fn only_what_nothing_refers_to_is_collected() {
    let bench = Bench::new();
    put(&bench, "/v1/objects/b/x", &[], b"keep".to_vec()).await;
    put(&bench, "/v1/objects/b/y", &[], b"drop".to_vec()).await;
    put(&bench, "/v1/objects/b/z", &[("if-match", "*")], b"never named".to_vec()).await;
    bench.send("DELETE", "/v1/objects/b/y", &[], "").await;
    assert_eq!(bench.door().blob_files().len(), 3);
    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    let shelf = crate::http::Door::shelf(bench.door()).clone();
    assert_eq!(shelf.collect(bench.door()).await, 2);
    assert_eq!(bench.door().blob_files().len(), 1);
    assert_eq!(bench.get("/v1/objects/b/x").await.body, "keep");
    assert_eq!(shelf.collect(bench.door()).await, 0);
}

async fn claim_one(bench: &Bench) -> serde_json::Value {
    let body = r#"{"worker":"w","queues":["default"]}"#;
    bench.post("/v1/tasks/claim", body).await.json()["tasks"][0].clone()
}

// A4, B4-13
#[tokio::test]
async fn a4_outputs_can_be_read_once_their_completion_counts() {
    let bench = Bench::new();
    let task = r#"{"id":"t1","program":"wordcount","settings":{"case":"fold"},
        "inputs":[{"name":"a.txt","bucket":"texts","key":"a.txt"},{"name":"n","text":"7"}]}"#;
    assert_eq!(bench.post("/v1/tasks", task).await.status, StatusCode::CREATED);
    let claimed = claim_one(&bench).await;
    let work = &claimed["work"];
    assert_eq!(work["program"]["name"], "wordcount");
    assert_eq!(work["settings"]["case"], "fold");
    assert_eq!(work["inputs"][0]["key"], "a.txt");
    let body = body_of(MIB + 9);
    let stored = bench.send("POST", "/v1/uploads", &[], body.clone()).await;
    assert_eq!(stored.status, StatusCode::CREATED);
    let upload = stored.json();
    assert_eq!(upload["chunks"].as_array().map(Vec::len), Some(2));
    let complete = |fence: &str, chunks: &serde_json::Value, name: &str| {
        serde_json::json!({"worker": "w", "tasks": [{"id": "t1", "fence": fence, "outputs": [
            {"name": name, "size": body.len(), "digest": upload["digest"], "chunks": chunks}]}]})
        .to_string()
    };
    let fence = claimed["fence"].as_str().unwrap();
    let strange = serde_json::json!(["0".repeat(64), "1".repeat(64)]);
    let missing = bench.post("/v1/tasks/complete", &complete(fence, &strange, "o")).await.json();
    assert_eq!(missing["tasks"][0]["problem"]["code"], "upload_expired");
    let few = serde_json::json!([]);
    let bad = bench.post("/v1/tasks/complete", &complete(fence, &few, "o")).await.json();
    assert_eq!(bad["tasks"][0]["problem"]["field"], "tasks[0].outputs[0].chunks");
    let good = complete(fence, &upload["chunks"], "parts/o.bin");
    // A node that does not answer may have them: the report comes again, and nothing is run a second time.
    bench.door().silent_peer(true);
    let later = bench.post("/v1/tasks/complete", &good).await.json();
    assert_eq!(later["tasks"][0]["outcome"], "unavailable", "{later}");
    assert_eq!(later["tasks"][0]["problem"]["code"], "too_few_copies");
    bench.door().silent_peer(false);
    let done = bench.post("/v1/tasks/complete", &good).await.json();
    assert_eq!(done["tasks"][0]["outcome"], "completed", "{done}");
    let read = bench.get("/v1/objects/tasks/t1/parts/o.bin").await;
    assert!(read.status == StatusCode::OK && read.body == body);
    let listed = bench.get("/v1/objects/tasks?prefix=t1/").await.json();
    assert_eq!(listed["objects"][0]["key"], "t1/parts/o.bin");
    let all = bench.get("/v1/objects/tasks").await;
    assert_eq!(all.json()["field"], "prefix");
}

// B4-39
#[tokio::test]
async fn b4_39_an_unknown_program_is_refused_with_its_name() {
    let bench = Bench::new();
    let refused = bench.post("/v1/tasks", r#"{"program":"wrodcount"}"#).await;
    assert_eq!(
        (refused.status, refused.code().as_str()),
        (StatusCode::BAD_REQUEST, "unknown_program")
    );
    assert!(refused.json()["detail"].as_str().unwrap().contains("wrodcount"));
    let stray = bench.post("/v1/tasks", r#"{"settings":{"a":"b"}}"#).await.json();
    assert_eq!((&stray["code"], &stray["field"]), (&"bad_value".into(), &"settings".into()));
    let number = bench.post("/v1/tasks", r#"{"program":"grep","settings":{"a":1}}"#).await;
    assert_eq!(number.status, StatusCode::BAD_REQUEST);
    assert!(number.json()["detail"].as_str().unwrap().contains("string"), "{}", number.json());
    for bucket in ["jobs", "tasks", "programs"] {
        let path = format!("/v1/objects/{bucket}/x");
        let reserved = put(&bench, &path, &[], b"1".to_vec()).await;
        assert_eq!(reserved.code(), "bucket_reserved");
    }
}
