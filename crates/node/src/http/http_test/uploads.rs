//! Uploads in parts through the door: what counts as arrived, what becomes of it, and what is refused (CH-1, CH-9).

use bytes::Bytes;
use http_body_util::channel::Channel;
use hyper::StatusCode;
use ikada_replica::call::{Answer, Unavailable};
use serde_json::{Value, json};

use super::door::Script;
use super::{Bench, Heard};
use crate::http::uploads::sweep;

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
async fn ch_1_an_upload_that_nobody_ends_goes_though_no_other_begins() {
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
    // So is an upload of another namespace, and what was left of one that was ended.
    let wanted = json!({ "bucket": "b", "key": "k" }).to_string();
    let elsewhere = [("ikada-namespace", "team")];
    bench.send("PUT", &format!("/v1/uploads/{ID}"), &elsewhere, wanted).await;
    bench.send("PUT", &format!("/v1/objects/s3-uploads/{OTHER}/00003"), &[], "3").await;
    bench.send("PUT", "/v1/objects/s3-uploads/no-upload", &[], "x").await;
    // No name ends the look, not even one behind the place that follows an upload.
    for stray in ["", "%F4%8F%BF%BF"] {
        let path = format!("/v1/objects/s3-uploads/{OTHER}/%F4%8F%BF%BF{stray}");
        bench.send("PUT", &path, &[], "x").await;
    }
    // F-18: a node whose own clock is decades ahead of the others' removes nothing.
    let ahead_ms = crate::watch::wall_ms() as i64 - 5_000;
    bench.door().change_status(|status| status.clock_offset_ms = ahead_ms);
    sweep(&bench.app).await;
    assert_eq!(numbers(&bench.get(&format!("/v1/uploads/{ID}")).await), vec![1]);
    bench.door().change_status(|status| status.clock_offset_ms = 0);
    sweep(&bench.app).await;
    let left = bench.get("/v1/objects/s3-uploads").await.json();
    let keys = left["objects"].as_array().unwrap().iter().map(|object| object["key"].clone());
    assert_eq!(keys.collect::<Vec<_>>(), ["no-upload"]);
    let there = bench.send("GET", "/v1/uploads", &elsewhere, "").await.json();
    assert_eq!(there["uploads"], json!([]));
    bench.send("DELETE", "/v1/objects/s3-uploads/no-upload", &[], "").await;
    begin(&bench, OTHER, "l").await;
    part(&bench, OTHER, 1, b"1").await;
    let ended = bench.send("DELETE", &format!("/v1/uploads/{OTHER}"), &[], "").await;
    assert_eq!(ended.json(), json!({ "upload": OTHER, "parts": 1 }));
    assert_eq!(bench.get("/v1/objects").await.json()["buckets"], json!([]));
}

const TEAM: (&str, &str) = ("ikada-namespace", "team");

async fn bound(bench: &Bench, bytes: u64) {
    let quota = json!({ "object_bytes_max": bytes }).to_string();
    let set = bench.send("PUT", "/v1/namespaces/team", &[], quota).await;
    assert_eq!(set.status, StatusCode::OK);
}

async fn begin_sized(bench: &Bench, key: &str, size: u64) -> Heard {
    let wanted = json!({ "bucket": "b", "key": key, "size": size }).to_string();
    bench.send("PUT", &format!("/v1/uploads/{ID}"), &[TEAM], wanted).await
}

async fn team_part(bench: &Bench, number: u32, body: &[u8]) -> Heard {
    let path = format!("/v1/uploads/{ID}/parts/{number}");
    bench.send("PUT", &path, &[TEAM], body.to_vec()).await
}

// CH-1: what no object can have is told before a part comes.
#[tokio::test]
async fn ch_1_an_upload_that_can_become_no_object_is_refused_at_its_beginning() {
    let bench = Bench::new();
    let before = bench.door().log_end();
    let large = begin_sized(&bench, "k", (16 << 30) + 1).await;
    assert_eq!((large.status.as_u16(), large.code().as_str()), (413, "too_large"));
    bound(&bench, 100).await;
    let after = bench.door().log_end();
    let full = begin_sized(&bench, "k", 98).await;
    assert_eq!((full.status.as_u16(), full.code().as_str()), (429, "namespace_objects_full"));
    let advice = full.json()["detail"].as_str().unwrap().to_owned();
    assert!(advice.contains("remove some objects, or uploads"), "{advice}");
    assert_eq!(bench.door().log_end(), after, "nothing was written down");
    assert_eq!(after, before + 1, "but the quota");
    assert_eq!(begin_sized(&bench, "k", 97).await.status, StatusCode::CREATED);
    // What has arrived needs no room of its own.
    assert_eq!(team_part(&bench, 1, &[1; 90]).await.status, StatusCode::CREATED);
    bound(&bench, 100).await;
    assert_eq!(begin_sized(&bench, "k", 97).await.status, StatusCode::OK);
    assert_eq!(begin_sized(&bench, "k", 98).await.code(), "namespace_objects_full");
}

// X7: parts and whole share a shard here, so that both who judge meet them at once.
#[tokio::test]
async fn x_7_an_upload_in_parts_needs_no_more_quota_than_its_object() {
    let bench = Bench::new();
    bound(&bench, 100).await;
    assert_eq!(begin_sized(&bench, "k", 80).await.status, StatusCode::CREATED);
    for number in [1, 2] {
        let body = [number as u8; 40];
        assert_eq!(team_part(&bench, number, &body).await.status, StatusCode::CREATED);
    }
    // As the next look sees it.
    bound(&bench, 100).await;
    let path = format!("/v1/uploads/{ID}/finish");
    let finish = json!({ "parts": 2 }).to_string();
    let done = bench.send("POST", &path, &[TEAM], finish).await;
    assert_eq!(done.status, StatusCode::CREATED, "{:?}", done.body);
    bound(&bench, 100).await;
    let put = |length: usize| bench.send("PUT", "/v1/objects/b/more", &[TEAM], vec![7; length]);
    assert_eq!(put(21).await.code(), "namespace_objects_full", "the object counts");
    assert_eq!(put(20).await.status, StatusCode::CREATED, "and its parts no more");
}

// X7: while older nodes are about, the parts count once more, and nothing fails that fits even so.
#[tokio::test]
async fn b4_35_nodes_that_know_nothing_of_it_are_given_the_order_as_they_know_it() {
    let bench = Bench::new();
    bound(&bench, 1_000).await;
    begin_sized(&bench, "k", 40).await;
    team_part(&bench, 1, &[1; 40]).await;
    // A look at the parts, and then the write.
    bench.door().script(Script::Work);
    let reason = Unavailable::LevelTooLow { needed: 1, level: 0 };
    bench.door().answer_next(Answer::Unavailable(reason));
    let path = format!("/v1/uploads/{ID}/finish");
    let done = bench.send("POST", &path, &[TEAM], json!({ "parts": 1 }).to_string()).await;
    assert_eq!(done.status, StatusCode::CREATED, "{:?}", done.body);
}

#[tokio::test]
async fn ch_1_whoever_is_told_that_an_upload_is_gone_finds_it_gone() {
    let bench = Bench::new();
    begin(&bench, ID, "k").await;
    part(&bench, ID, 1, b"1").await;
    let path = format!("/v1/uploads/{ID}");
    bench.door().script(Script::Work);
    bench.door().answer_next(Answer::Unavailable(Unavailable::NoLeader { shard: 0 }));
    let ended = bench.send("DELETE", &path, &[], "").await;
    assert_eq!((ended.status.as_u16(), ended.code().as_str()), (503, "no_leader"));
    assert_eq!(numbers(&bench.get(&path).await), [1]);
    let ended = bench.send("DELETE", &path, &[], "").await;
    assert_eq!(ended.json(), json!({ "upload": ID, "parts": 1 }));
    assert_eq!(bench.get(&path).await.code(), "upload_not_found");
}

// CH-1: the answer to a finish got lost, and it comes again.
#[tokio::test]
async fn ch_1_a_finish_that_comes_again_is_answered_as_the_first_time() {
    let bench = Bench::new();
    begin(&bench, ID, "k").await;
    part(&bench, ID, 1, b"one").await;
    let path = format!("/v1/uploads/{ID}/finish");
    let finish = async |key: &str, wanted: Value| {
        bench.send("POST", &path, &[("idempotency-key", key)], wanted.to_string()).await
    };
    let named = json!({ "parts": 1, "bucket": "b", "key": "k" });
    let other = json!({ "parts": 1, "bucket": "b", "key": "l" });
    assert_eq!(finish("f1", other.clone()).await.code(), "upload_differs");
    let first = finish("f1", named.clone()).await;
    assert_eq!(first.status, StatusCode::CREATED, "{:?}", first.body);
    let again = finish("f1", named.clone()).await;
    assert_eq!(again.status, StatusCode::CREATED, "{:?}", again.body);
    assert_eq!(again.json()["version"], first.json()["version"]);
    assert_eq!(again.json()["digest"], digest_of(b"one").as_str());
    assert_eq!(finish("f2", named.clone()).await.code(), "upload_not_found");
    assert_eq!(bench.post(&path, &named.to_string()).await.code(), "upload_not_found");
    assert_eq!(finish("f1", json!({ "parts": 1 })).await.code(), "upload_finished");
    assert_eq!(finish("f1", other).await.code(), "upload_finished", "there is no such object");
    let wrong = json!({ "parts": 1, "bucket": "b", "key": "k", "digest": digest_of(b"two") });
    assert_eq!(finish("f1", wrong).await.code(), "idempotency_conflict");
    // While the first is about to remove the parts, some are there and some are not.
    begin(&bench, OTHER, "k").await;
    part(&bench, OTHER, 2, b"two").await;
    let path = format!("/v1/uploads/{OTHER}/finish");
    let two = json!({ "parts": 2, "bucket": "b", "key": "k" }).to_string();
    let heard = bench.send("POST", &path, &[("idempotency-key", "f1")], two.clone()).await;
    assert_eq!(heard.json()["version"], first.json()["version"]);
    let heard = bench.send("POST", &path, &[("idempotency-key", "f3")], two).await;
    assert_eq!(heard.code(), "upload_incomplete");
}

#[tokio::test]
async fn ch_11_a_list_of_uploads_has_those_of_both_doors_and_passes_over_what_it_cannot_read() {
    let bench = Bench::new();
    begin(&bench, ID, "lost").await;
    for file in bench.door().blob_files() {
        std::fs::remove_file(file).unwrap();
    }
    crate::http::Door::shelf(bench.door()).forget_all();
    let s3 = "0123456789abcdef";
    bench.send("PUT", &format!("/v1/objects/s3-uploads/{s3}/00000"), &[], "b/by-s3").await;
    begin(&bench, OTHER, "here").await;
    let listed = bench.get("/v1/uploads").await;
    let uploads = listed.json()["uploads"].as_array().cloned().unwrap();
    let keys: Vec<&str> = uploads.iter().map(|upload| upload["key"].as_str().unwrap()).collect();
    assert_eq!(keys, ["by-s3", "here"]);
    assert_eq!(bench.get("/v1/uploads?limit=101").await.code(), "bad_parameter");
    assert_eq!(bench.get("/v1/uploads?limit=0").await.code(), "bad_parameter");
    let page = bench.get("/v1/uploads?limit=2").await.json();
    assert_eq!(page["uploads"].as_array().unwrap().len(), 1, "the other cannot be read");
    let after = page["next"].as_str().unwrap().bytes().map(|byte| format!("%{byte:02X}"));
    let next = bench.get(&format!("/v1/uploads?after={}", after.collect::<String>())).await;
    assert_eq!(next.json()["uploads"][0]["upload"], OTHER);
    assert_eq!(bench.get(&format!("/v1/uploads/{s3}")).await.json()["key"], "by-s3");
    assert_eq!(begin(&bench, s3, "by-s3").await.code(), "bad_parameter", "not ours to give out");
    let ended = bench.send("DELETE", &format!("/v1/uploads/{s3}"), &[], "").await;
    assert_eq!(ended.status, StatusCode::OK);
}

// A part whose bytes came while somebody ended its upload would be there for a week.
#[tokio::test]
async fn ch_1_a_part_that_comes_too_late_leaves_nothing() {
    let bench = Bench::new();
    begin(&bench, ID, "k").await;
    let (mut sender, body) = Channel::<Bytes, std::io::Error>::new(1);
    let request = hyper::Request::put(format!("/v1/uploads/{ID}/parts/1")).body(body).unwrap();
    let sending = crate::http::dispatch::answer(&bench.app, request);
    let ending = async {
        // The second has room when the first was read, which is after the upload was looked at.
        sender.send_data(Bytes::from_static(b"la")).await.unwrap();
        sender.send_data(Bytes::from_static(b"te")).await.unwrap();
        let ended = bench.send("DELETE", &format!("/v1/uploads/{ID}"), &[], "").await;
        drop(sender);
        ended.status
    };
    let (sent, ended) = tokio::join!(sending, ending);
    assert_eq!((sent.status(), ended), (StatusCode::NOT_FOUND, StatusCode::OK));
    assert_eq!(bench.get("/v1/objects").await.json()["buckets"], json!([]));
}
