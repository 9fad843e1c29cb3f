//! Copies, and headers that ask for what this door does not do, through the whole door.

use std::future::Future;
use std::task::Waker;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use ikada_api::state::Namespace;

use super::s3_test::{App, app, complete, hear, one_part, open, with};
use crate::admission::{Admission, Lane};
use crate::http::request::Context;
use crate::http::{Door, HttpLimits, Security, fake_door};

const MIB: usize = 1 << 20;

/// Letters, none like those a mebibyte before.
fn letters(length: usize) -> String {
    (0..length).map(|place| char::from(b'a' + ((place + place / 4_096) % 26) as u8)).collect()
}

/// Begins an upload; its id.
async fn begin(app: &App<impl Door>, key: &str) -> String {
    let (_, said) = hear(app, open("POST", &format!("/b/{key}?uploads"), "")).await;
    let id = said.split("<UploadId>").nth(1).and_then(|rest| rest.split('<').next());
    id.unwrap().to_owned()
}

/// A copy of some bytes of `b/from` into a part.
fn copy_part(key: &str, id: &str, number: usize, range: &str) -> Request<Full<Bytes>> {
    let request = open("PUT", &format!("/b/{key}?partNumber={number}&uploadId={id}"), "");
    let request = with(request, "x-amz-copy-source", "b/from");
    if range.is_empty() { request } else { with(request, "x-amz-copy-source-range", range) }
}

fn tag_of(said: &str) -> String {
    let tag = said.split("<ETag>").nth(1).and_then(|rest| rest.split("</ETag>").next()).unwrap();
    tag.replace("&quot;", "").replace('"', "")
}

// CH-1: as aws-cli and boto3 copy what is large.
#[tokio::test]
async fn ch_1_parts_are_copied_by_any_ranges() {
    let app = app(Security::default());
    let whole = letters(3 * MIB + 700);
    assert_eq!(hear(&app, open("PUT", "/b/from", &whole)).await.0, 200);
    // Whole pieces, and ranges that cut pieces at either end or within one.
    for ends in [vec![MIB, 3 * MIB], vec![5, MIB + 3, MIB + 9], vec![2 * MIB], vec![]] {
        let id = begin(&app, "to").await;
        let (mut from, mut list) = (0, String::new());
        for (number, to) in (1..).zip(ends.iter().copied().chain([whole.len()])) {
            let range = format!("bytes={from}-{}", to - 1);
            let (status, said) = hear(&app, copy_part("to", &id, number, &range)).await;
            assert_eq!((status, said.contains("CopyPartResult")), (200, true), "{range}: {said}");
            let wanted = blake3::hash(&whole.as_bytes()[from..to]).to_hex();
            assert_eq!(tag_of(&said), wanted.as_str(), "{range}");
            list += &format!("<Part><PartNumber>{number}</PartNumber><ETag>{wanted}</ETag></Part>");
            from = to;
        }
        let end = format!("<CompleteMultipartUpload>{list}</CompleteMultipartUpload>");
        let ended = hear(&app, open("POST", &format!("/b/to?uploadId={id}"), &end)).await;
        assert_eq!((ended.0, tag_of(&ended.1)), (200, blake3::hash(whole.as_bytes()).to_string()));
        assert!(hear(&app, open("GET", "/b/to", "")).await == (200, whole.clone()), "{ends:?}");
        assert_eq!(hear(&app, open("DELETE", "/b/to", "")).await.0, 204);
    }
    let id = begin(&app, "to").await;
    let (status, said) = hear(&app, copy_part("to", &id, 1, "")).await;
    assert_eq!((status, tag_of(&said)), (200, blake3::hash(whole.as_bytes()).to_string()));
}

// CH-19: a majority reads all that is copied, so a copy has a place among the uploads, or is turned away.
#[tokio::test]
async fn ch_19_a_copy_takes_a_place() {
    let (_, stopping) = tokio::sync::watch::channel(false);
    let limits = HttpLimits { uploads_max: 1, ..HttpLimits::default() };
    let app = App::new(fake_door(), limits, Security::default(), Admission::open(), stopping);
    assert_eq!(hear(&app, open("PUT", "/b/from", "bytes")).await.0, 200);
    let copy = || with(open("PUT", "/b/to", ""), "x-amz-copy-source", "/b/from");
    let (namespace, limit) = (Namespace::default(), Duration::from_secs(60));
    let context = Context::of_s3(app.anyone.clone(), namespace, Vec::new(), limit);
    let held = app.transfer(Lane::Upload, &context).await.unwrap();
    let mut waiting = Box::pin(app.transfer(Lane::Upload, &context));
    let polled = waiting.as_mut().poll(&mut std::task::Context::from_waker(Waker::noop()));
    assert!(polled.is_pending(), "one waits in line");
    let (status, said) = hear(&app, copy()).await;
    assert_eq!((status, said.contains("SlowDown")), (503, true), "{said}");
    drop((waiting, held));
    assert_eq!(hear(&app, copy()).await.0, 200);
}

#[tokio::test]
async fn bad_copies_are_told_what_is_wrong() {
    let app = app(Security::default());
    assert_eq!(hear(&app, open("PUT", "/b/from", "bytes")).await.0, 200);
    let id = begin(&app, "to").await;
    for (range, status, code) in [
        ("bytes=0-5", 416, "InvalidRange"),
        ("bytes=3-2", 400, "InvalidArgument"),
        ("bytes=0-", 400, "InvalidArgument"),
        ("bytes=-2", 400, "InvalidArgument"),
        ("0-2", 400, "InvalidArgument"),
        ("bytes=0-18446744073709551615", 416, "InvalidRange"),
    ] {
        let (found, said) = hear(&app, copy_part("to", &id, 1, range)).await;
        assert_eq!((found, said.contains(code)), (status, true), "{range}: {said}");
    }
    let stranger = copy_part("to", "0123456789abcdef", 1, "");
    assert_eq!(hear(&app, stranger).await.0, 404);
    let missing = with(open("PUT", "/b/to", ""), "x-amz-copy-source", "b/none");
    assert_eq!(hear(&app, missing).await.0, 404);
    let none = with(open("PUT", "/b/to", ""), "x-amz-copy-source", "b");
    assert_eq!(hear(&app, none).await.0, 400);
}

// CH-9: a condition on what is copied holds, or nothing is copied.
#[tokio::test]
async fn ch_9_conditions_on_the_source_of_a_copy_are_kept() {
    let app = app(Security::default());
    assert_eq!(hear(&app, open("PUT", "/b/from", "bytes")).await.0, 200);
    let tag = format!("\"{}\"", blake3::hash(b"bytes").to_hex());
    let other = format!("\"{}\"", "0".repeat(64));
    for (name, value, wanted) in [
        ("x-amz-copy-source-if-match", &other, 412),
        ("x-amz-copy-source-if-none-match", &tag, 412),
        ("x-amz-copy-source-if-none-match", &"*".to_owned(), 412),
        ("x-amz-copy-source-if-unmodified-since", &"Thu, 01 Jan 1970".to_owned(), 501),
    ] {
        let copy = with(open("PUT", "/b/to", ""), "x-amz-copy-source", "b/from");
        let (status, said) = hear(&app, with(copy, name, value)).await;
        assert_eq!(status, wanted, "{name}: {said}");
        assert_eq!(hear(&app, open("GET", "/b/to", "")).await.0, 404, "{name}");
    }
    for (name, value) in
        [("x-amz-copy-source-if-match", &tag), ("x-amz-copy-source-if-none-match", &other)]
    {
        let copy = with(open("PUT", "/b/to", ""), "x-amz-copy-source", "b/from");
        assert_eq!(hear(&app, with(copy, name, value)).await.0, 200, "{name}");
    }
}

// CH-1: what would not be done is refused, and nothing is stored or removed.
#[tokio::test]
async fn ch_1_headers_that_would_be_passed_over_are_refused() {
    let app = app(Security::default());
    for (name, value) in [
        ("x-amz-server-side-encryption", "AES256"),
        ("x-amz-server-side-encryption-customer-algorithm", "AES256"),
        ("x-amz-acl", "public-read"),
        ("x-amz-tagging", "a=b"),
        ("x-amz-write-offset-bytes", "5"),
    ] {
        let (status, said) = hear(&app, with(open("PUT", "/b/x", "bytes"), name, value)).await;
        assert_eq!((status, said.contains("NotImplemented")), (501, true), "{name}: {said}");
        assert!(said.contains(name), "{said}");
        assert_eq!(hear(&app, open("GET", "/b/x", "")).await.0, 404, "{name}");
    }
    let plain = with(open("PUT", "/b/x", "bytes"), "x-amz-acl", "private");
    assert_eq!(hear(&app, with(plain, "x-amz-meta-mtime", "1")).await.0, 200);
    let sized = with(open("DELETE", "/b/x", ""), "x-amz-if-match-size", "9");
    assert_eq!(hear(&app, sized).await.0, 501);
    assert_eq!(hear(&app, open("GET", "/b/x", "")).await, (200, "bytes".to_owned()));
    let (status, said) = hear(&app, open("GET", "/b/x?tagging", "")).await;
    assert_eq!((status, said.contains("<TagSet></TagSet>")), (200, true), "{said}");
    assert_eq!(hear(&app, open("GET", "/b/none?tagging", "")).await.0, 404);
    let (status, said) = hear(&app, open("GET", "/b?versioning", "")).await;
    assert_eq!((status, said.contains("Enabled")), (200, false), "{said}");
}

// CH-1: the end of an upload may say what the whole is.
#[tokio::test]
async fn ch_1_what_the_end_of_an_upload_says_of_the_whole_is_checked() {
    let app = app(Security::default());
    let kind = "x-amz-checksum-type";
    // The checksum of "123456789" that everybody knows, and another.
    let (right, wrong) = ("y/Q5Jg==", "AAAAAA==");
    for (headers, wanted, code) in [
        (vec![(kind, "FULL_OBJECT"), ("x-amz-checksum-crc32", wrong)], 400, "BadDigest"),
        (vec![("x-amz-mp-object-size", "8")], 400, "InvalidRequest"),
        (vec![(kind, "COMPOSITE"), ("x-amz-checksum-crc32", "AAAAAA==-1")], 200, "ETag"),
        (vec![(kind, "FULL_OBJECT"), ("x-amz-checksum-crc32", right)], 200, "ETag"),
        (vec![("x-amz-mp-object-size", "9")], 200, "ETag"),
    ] {
        let id = one_part(&app, "x", "123456789").await;
        let end = complete("x", &id, "123456789");
        let end = headers.iter().fold(end, |end, (name, value)| with(end, name, value));
        let (status, said) = hear(&app, end).await;
        assert_eq!((status, said.contains(code)), (wanted, true), "{headers:?}: {said}");
        let there = hear(&app, open("GET", "/b/x", "")).await;
        assert_eq!(there.0, if wanted == 200 { 200 } else { 404 }, "{headers:?}");
        hear(&app, open("DELETE", "/b/x", "")).await;
    }
}
