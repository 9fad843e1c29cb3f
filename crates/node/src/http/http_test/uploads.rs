//! Uploads in parts through the door: what counts as arrived, what becomes of it, and what is refused (CH-1, CH-9).

use hyper::StatusCode;
use serde_json::{Value, json};

use super::{Bench, Heard};

const MIB: usize = 1 << 20;
const ID: &str = "00112233445566778899aabbccddeeff";
const OTHER: &str = "ffeeddccbbaa99887766554433221100";

fn body_of(length: usize) -> Vec<u8> {
    (0..length).map(|place| (place * 31 + place / 4096) as u8).collect()
}

fn digest_of(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

async fn begin(bench: &Bench, id: &str, key: &str) -> Heard {
    let wanted = json!({ "bucket": "b", "key": key, "content_type": "text/csv" });
    bench.send("PUT", &format!("/v1/uploads/{id}"), &[], wanted.to_string()).await
}

async fn part(bench: &Bench, id: &str, number: u32, body: &[u8]) -> Heard {
    let digest = digest_of(body);
    let path = format!("/v1/uploads/{id}/parts/{number}");
    bench.send("PUT", &path, &[("ikada-digest", &digest)], body.to_vec()).await
}

async fn finish(bench: &Bench, id: &str, wanted: Value) -> Heard {
    bench.post(&format!("/v1/uploads/{id}/finish"), &wanted.to_string()).await
}

fn numbers(upload: &Heard) -> Vec<u64> {
    let upload = upload.json();
    let parts = upload["parts"].as_array().cloned().unwrap_or_default();
    parts.iter().map(|part| part["part"].as_u64().unwrap()).collect()
}

// CH-1
#[tokio::test]
async fn ch_1_parts_in_any_order_become_one_object() {
    let bench = Bench::new();
    let body = body_of(3 * MIB + 700);
    assert_eq!(begin(&bench, ID, "x/big.csv").await.status, StatusCode::CREATED);
    let pieces: Vec<&[u8]> = vec![&body[..2 * MIB], &body[2 * MIB..3 * MIB], &body[3 * MIB..]];
    for number in [3, 1] {
        let stored = part(&bench, ID, number, pieces[number as usize - 1]).await;
        assert_eq!(stored.status, StatusCode::CREATED);
        assert_eq!(stored.json()["digest"], digest_of(pieces[number as usize - 1]).as_str());
    }
    let again = begin(&bench, ID, "x/big.csv").await;
    assert_eq!((again.status, numbers(&again)), (StatusCode::OK, vec![1, 3]));
    let early = finish(&bench, ID, json!({ "parts": 3 })).await;
    assert_eq!((early.status.as_u16(), early.code().as_str()), (409, "upload_incomplete"));
    assert_eq!(bench.get("/v1/objects/b/x/big.csv").await.code(), "object_not_found");
    part(&bench, ID, 2, pieces[1]).await;
    let short = finish(&bench, ID, json!({ "parts": 2 })).await;
    assert_eq!(short.code(), "upload_incomplete", "a part too many");
    let wrong = finish(&bench, ID, json!({ "parts": 3, "digest": digest_of(b"other") })).await;
    assert_eq!(wrong.code(), "wrong_digest");
    let files = bench.door().blob_files().len();
    let whole = digest_of(&body);
    let done = finish(&bench, ID, json!({ "parts": 3, "digest": whole })).await;
    assert_eq!(done.status, StatusCode::CREATED, "{:?}", done.body);
    assert_eq!(done.json()["digest"], whole.as_str());
    assert_eq!(done.json()["content_type"], "text/csv");
    assert_eq!(bench.door().blob_files().len(), files, "no byte was stored a second time");
    assert!(bench.get("/v1/objects/b/x/big.csv").await.body == body);
    assert_eq!(bench.get(&format!("/v1/uploads/{ID}")).await.code(), "upload_not_found");
    assert_eq!(bench.get("/v1/objects").await.json()["buckets"], json!(["b"]), "no part is left");
}

// CH-1: pieces are of one size, parts are not.
#[tokio::test]
async fn ch_1_parts_of_any_size_give_the_same_object_as_one_request() {
    let bench = Bench::new();
    let body = body_of(2 * MIB + 5);
    begin(&bench, ID, "odd").await;
    for (number, bytes) in [&body[..7], &body[7..MIB + 1], &body[MIB + 1..]].iter().enumerate() {
        part(&bench, ID, number as u32 + 1, bytes).await;
    }
    let done = finish(&bench, ID, json!({ "parts": 3 })).await;
    assert_eq!(done.status, StatusCode::CREATED, "{:?}", done.body);
    let type_of = [("content-type", "text/csv")];
    let same = bench.send("PUT", "/v1/objects/b/odd", &type_of, body.clone()).await;
    assert_eq!(same.status, StatusCode::OK, "the same content and pieces: no new version");
    assert!(bench.get("/v1/objects/b/odd").await.body == body);
}

// CH-9
#[tokio::test]
async fn ch_9_an_upload_in_parts_keeps_conditions() {
    let bench = Bench::new();
    bench.send("PUT", "/v1/objects/b/k", &[], "old").await;
    begin(&bench, ID, "k").await;
    part(&bench, ID, 1, b"new").await;
    let refused = finish(&bench, ID, json!({ "parts": 1, "if_absent": true })).await;
    assert_eq!(refused.code(), "precondition_failed");
    let refused = finish(&bench, ID, json!({ "parts": 1, "if_match": digest_of(b"x") })).await;
    assert_eq!(refused.code(), "precondition_failed");
    let done = finish(&bench, ID, json!({ "parts": 1, "if_match": digest_of(b"old") })).await;
    assert_eq!(done.status, StatusCode::CREATED);
    assert_eq!(bench.get("/v1/objects/b/k").await.body, "new");
}

#[tokio::test]
async fn what_is_no_upload_is_refused_and_leaves_nothing() {
    let bench = Bench::new();
    let long = format!("{ID}0");
    for id in ["x", "00112233445566778899AABBCCDDEEFF", "..", long.as_str()] {
        assert_eq!(begin(&bench, id, "k").await.status, StatusCode::BAD_REQUEST, "{id}");
    }
    assert_eq!(part(&bench, ID, 1, b"1").await.code(), "upload_not_found");
    assert_eq!(finish(&bench, ID, json!({ "parts": 1 })).await.code(), "upload_not_found");
    for (bucket, key) in [("programs", "k"), ("jobs", "k"), ("s3-uploads", "k")] {
        let wanted = json!({ "bucket": bucket, "key": key }).to_string();
        let begun = bench.send("PUT", &format!("/v1/uploads/{ID}"), &[], wanted).await;
        assert_eq!(begun.status, StatusCode::FORBIDDEN, "{bucket}");
    }
    assert_eq!(begin(&bench, ID, "../k").await.status, StatusCode::BAD_REQUEST);
    let before = bench.door().log_end();
    begin(&bench, ID, "k").await;
    assert!(bench.door().log_end() > before);
    assert_eq!(begin(&bench, ID, "l").await.code(), "upload_differs");
    for number in [0, 10_001] {
        assert_eq!(part(&bench, ID, number, b"1").await.status, StatusCode::BAD_REQUEST);
    }
    let path = format!("/v1/uploads/{ID}/parts/1");
    let headers = [("ikada-digest", digest_of(b"2"))];
    let headers = headers.each_ref().map(|(name, value)| (*name, value.as_str()));
    assert_eq!(bench.send("PUT", &path, &headers, "1").await.code(), "wrong_digest");
    assert!(numbers(&begin(&bench, ID, "k").await).is_empty());
}

// Whoever can write objects can write what looks like the beginning of an upload.
#[tokio::test]
async fn x_8_a_forged_beginning_reaches_no_bucket_of_the_cluster() {
    let bench = Bench::new();
    for (target, code) in [("programs/p", "bucket_reserved"), ("b/../k", "bad_name")] {
        let first = format!("/v1/objects/s3-uploads/{ID}/00000");
        assert!(bench.send("PUT", &first, &[], target).await.status.is_success());
        part(&bench, ID, 1, b"1").await;
        let done = finish(&bench, ID, json!({ "parts": 1 })).await;
        assert_eq!(done.code(), code, "{target}");
    }
}

#[tokio::test]
async fn an_upload_that_nobody_ends_goes_when_another_begins() {
    let bench = Bench::new();
    begin(&bench, ID, "k").await;
    part(&bench, ID, 1, b"1").await;
    let listed = bench.get("/v1/uploads").await.json();
    assert_eq!(
        (&listed["uploads"][0]["upload"], &listed["uploads"][0]["key"]),
        (&json!(ID), &json!("k"))
    );
    assert_eq!(listed["uploads"].as_array().unwrap().len(), 1);
    // Log time begins at 1970 here, so that everything is older than a week.
    assert_eq!(numbers(&begin(&bench, ID, "k").await), vec![1], "going on ends nothing");
    begin(&bench, OTHER, "l").await;
    let listed = bench.get("/v1/uploads").await.json();
    assert_eq!(listed["uploads"].as_array().unwrap().len(), 1);
    assert_eq!(listed["uploads"][0]["upload"], OTHER);
    part(&bench, OTHER, 1, b"1").await;
    let ended = bench.send("DELETE", &format!("/v1/uploads/{OTHER}"), &[], "").await;
    assert_eq!(ended.json(), json!({ "upload": OTHER, "parts": 1 }));
    assert_eq!(bench.get("/v1/objects").await.json()["buckets"], json!([]));
}
