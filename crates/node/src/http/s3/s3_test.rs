//! The S3 door against a fake node: published signatures, forged ones, and every verb through the whole door.

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::http::request::Parts;
use ikada_api::routes::Role;
use ikada_api::s3::escape::hex;
use ikada_api::s3::xml::elements;
use ring::{digest, hmac};

use super::answer;
use super::chunked::{ChunkReader, Step};
use super::route::{Action, Call};
use super::sign::{Payload, Signed};
use crate::auth::Principal;
use crate::http::fake_door;
use crate::http::{HttpLimits, Security};
use crate::watch::wall_ms;

const SECRET: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
/// 24 May 2013, midnight.
const THEN_MS: u64 = 1_369_353_600_000;
const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

fn parts(method: &str, uri: &str, headers: &[(&str, &str)]) -> Parts {
    let mut request = Request::builder().method(method).uri(uri);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap().into_parts().0
}

fn credential(headers: &str, signature: &str) -> String {
    format!(
        "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,SignedHeaders={headers},Signature={signature}"
    )
}

// The examples of the protocol's own description.
#[test]
fn published_signatures_hold_and_changed_requests_do_not() {
    let signature = "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41";
    let authorization = credential("host;range;x-amz-content-sha256;x-amz-date", signature);
    let headers = [
        ("authorization", authorization.as_str()),
        ("host", "examplebucket.s3.amazonaws.com"),
        ("range", "bytes=0-9"),
        ("x-amz-content-sha256", EMPTY),
        ("x-amz-date", "20130524T000000Z"),
    ];
    let check = |request: &Parts, secret: &str, now_ms: u64| {
        Signed::read(request).and_then(|signed| signed.check(request, secret, now_ms)).map(|_| ())
    };
    let good = parts("GET", "/test.txt", &headers);
    assert_eq!(check(&good, SECRET, THEN_MS), Ok(()));
    let code = |outcome: Result<(), super::Fault>| outcome.unwrap_err().code;
    assert_eq!(code(check(&good, "another", THEN_MS)), "SignatureDoesNotMatch");
    assert_eq!(code(check(&good, SECRET, THEN_MS + 16 * 60_000)), "RequestTimeTooSkewed");
    assert_eq!(code(check(&good, SECRET, THEN_MS - 16 * 60_000)), "RequestTimeTooSkewed");
    for (method, path) in [("PUT", "/test.txt"), ("GET", "/test2.txt"), ("GET", "/test.txt?acl")] {
        let other = parts(method, path, &headers);
        assert_eq!(
            code(check(&other, SECRET, THEN_MS)),
            "SignatureDoesNotMatch",
            "{method} {path}"
        );
    }
    let more = [&headers[..], &[("x-amz-copy-source", "a/b")]].concat();
    assert_eq!(code(check(&parts("GET", "/test.txt", &more), SECRET, THEN_MS)), "AccessDenied");
    assert_eq!(code(check(&parts("GET", "/test.txt", &[]), SECRET, THEN_MS)), "AccessDenied");
}

#[test]
fn published_presigned_addresses_hold_until_they_expire() {
    let uri = "/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404";
    let request = parts("GET", uri, &[("host", "examplebucket.s3.amazonaws.com")]);
    let signed = Signed::read(&request).unwrap();
    assert_eq!(signed.payload, Payload::Unsigned);
    assert!(signed.check(&request, SECRET, THEN_MS + 86_400_000).is_ok());
    assert!(signed.check(&request, SECRET, THEN_MS + 86_400_001).is_err());
}

#[test]
fn published_chunk_signatures_hold_and_changed_chunks_do_not() {
    let names = "content-encoding;content-length;host;x-amz-content-sha256;x-amz-date;x-amz-decoded-content-length;x-amz-storage-class";
    let seed = "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9";
    let authorization = credential(names, seed);
    let headers = [
        ("authorization", authorization.as_str()),
        ("host", "s3.amazonaws.com"),
        ("content-encoding", "aws-chunked"),
        ("content-length", "66824"),
        ("x-amz-content-sha256", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"),
        ("x-amz-date", "20130524T000000Z"),
        ("x-amz-decoded-content-length", "66560"),
        ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
    ];
    let request = parts("PUT", "/examplebucket/chunkObject.txt", &headers);
    let key = Signed::read(&request).unwrap().check(&request, SECRET, THEN_MS).unwrap();
    let body = |letter: &str| {
        let chunks = [
            (65_536, "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648"),
            (1_024, "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497"),
            (0, "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9"),
        ];
        let chunk = |(size, signature): &(usize, &str)| {
            format!("{size:x};chunk-signature={signature}\r\n{}\r\n", letter.repeat(*size))
        };
        BytesMut::from(chunks.iter().map(chunk).collect::<String>().as_bytes())
    };
    let read = |mut body: BytesMut| {
        let mut reader = ChunkReader::new(Some(key.clone()));
        let mut bytes = 0;
        while let Step::Data(data) = reader.step(&mut body)? {
            bytes += data.len();
        }
        reader.end().map(|()| bytes)
    };
    assert_eq!(read(body("a")), Ok(66_560));
    assert_eq!(read(body("b")).unwrap_err().code, "SignatureDoesNotMatch");
}

/// A caller of its own making, so that the door is not checked against itself.
pub(super) struct Caller {
    pub(super) key: String,
    pub(super) secret: String,
}

impl Caller {
    pub(super) fn sign(
        &self,
        method: &str,
        path: &str,
        query: &str,
        body: &[u8],
    ) -> Request<Full<Bytes>> {
        let hash = hex(digest::digest(&digest::SHA256, body).as_ref());
        let now = crate::http::objects::iso_date(wall_ms()).replace(['-', ':'], "");
        let time = format!("{}Z", &now[..15]);
        let canonical = format!(
            "{method}\n{path}\n{query}\nhost:node\nx-amz-content-sha256:{hash}\nx-amz-date:{time}\n\nhost;x-amz-content-sha256;x-amz-date\n{hash}"
        );
        let scope = format!("{}/here/s3/aws4_request", &time[..8]);
        let digest = hex(digest::digest(&digest::SHA256, canonical.as_bytes()).as_ref());
        let text = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{digest}");
        let mac = |key: &[u8], text: &str| {
            let key = hmac::Key::new(hmac::HMAC_SHA256, key);
            hmac::sign(&key, text.as_bytes()).as_ref().to_vec()
        };
        let mut key = format!("AWS4{}", self.secret).into_bytes();
        for word in [&time[..8], "here", "s3", "aws4_request"] {
            key = mac(&key, word);
        }
        let signature = hex(&mac(&key, &text));
        let authorization = format!(
            "AWS4-HMAC-SHA256 Credential={}/{scope}, SignedHeaders=host;x-amz-content-sha256;x-amz-date, Signature={signature}",
            self.key
        );
        let uri = if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") };
        Request::builder()
            .method(method)
            .uri(uri)
            .header("host", "node")
            .header("x-amz-content-sha256", hash)
            .header("x-amz-date", time)
            .header("authorization", authorization)
            .body(Full::new(Bytes::copy_from_slice(body)))
            .unwrap()
    }
}

pub(super) type App<D> = crate::http::app::App<D>;

pub(super) fn app(security: Security) -> App<impl crate::http::Door> {
    let (_, stopping) = tokio::sync::watch::channel(false);
    let admission = crate::admission::Admission::open();
    App::new(fake_door(), HttpLimits::default(), security, admission, stopping)
}

pub(super) async fn hear<D: crate::http::Door>(
    app: &App<D>,
    request: Request<Full<Bytes>>,
) -> (u16, String) {
    let response = answer(app, request).await;
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8_lossy(&body).into_owned())
}

#[tokio::test]
async fn strangers_forgers_and_plain_tokens_stay_outside() {
    let gatekeeper = crate::auth::Gatekeeper::default();
    let token = |id: &str, name: &str| {
        std::sync::Arc::new(ikada_api::state::Token {
            id: ikada_api::state::TokenId::parse(id).unwrap(),
            name: ikada_api::state::PrincipalName::parse(name).unwrap(),
            digest: ikada_api::state::SecretDigest([7; 32]),
            role: ikada_api::state::Role::Viewer,
            namespaces: Vec::new(),
            created_ms: 0,
            expires_ms: 0,
        })
    };
    gatekeeper.learn(vec![token("aaa", "s3-ci"), token("bbb", "ann")]);
    let secret = "07".repeat(32);
    let app = app(Security { gatekeeper: Some(gatekeeper.into()), ..Security::default() });
    let caller = |key: &str, secret: &str| Caller { key: key.into(), secret: secret.into() };
    let good = caller("aaa", &secret);
    let (status, said) = hear(&app, good.sign("GET", "/b/k", "", b"")).await;
    assert_eq!(status, 404, "{said}");
    assert!(said.contains("<Code>NoSuchKey</Code>"), "{said}");
    // A viewer may not write.
    let (status, said) = hear(&app, good.sign("PUT", "/b/k", "", b"x")).await;
    assert_eq!((status, said.contains("AccessDenied")), (403, true), "{said}");
    for (key, secret, code) in [
        ("aaa", "wrong", "SignatureDoesNotMatch"),
        ("bbb", &secret, "InvalidAccessKeyId"),
        ("ccc", &secret, "InvalidAccessKeyId"),
    ] {
        let (status, said) = hear(&app, caller(key, secret).sign("GET", "/b/k", "", b"")).await;
        assert_eq!((status, said.contains(code)), (403, true), "{key}: {said}");
    }
    let bare = Request::get("/b/k").body(Full::default()).unwrap();
    assert_eq!(hear(&app, bare).await.0, 403);
}

/// Every action with a call for it, and the roles that may: written out, and not taken from the policies.
pub(super) const ACTIONS: [(Action, &str, &str, &str, &str); 17] = [
    (Action::ListBuckets, "GET", "/", "", LOOK),
    (Action::CreateBucket, "PUT", "/b", "", WRITE),
    (Action::HeadBucket, "HEAD", "/b", "", LOOK),
    (Action::DeleteBucket, "DELETE", "/b", "", REMOVE),
    (Action::Location, "GET", "/b", "location=", LOOK),
    (Action::Versioning, "GET", "/b", "versioning=", LOOK),
    (Action::ListObjects, "GET", "/b", "list-type=2", LOOK),
    (Action::DeleteMany, "POST", "/b", "delete=", REMOVE),
    (Action::Put, "PUT", "/b/k", "", WRITE),
    (Action::Get, "GET", "/b/k", "", "admin operator submitter worker viewer"),
    (Action::Tags, "GET", "/b/k", "tagging=", "admin operator submitter worker viewer"),
    (Action::Delete, "DELETE", "/b/k", "", REMOVE),
    (Action::BeginUpload, "POST", "/b/k", "uploads=", WRITE),
    (Action::PutPart, "PUT", "/b/k", "partNumber=1&uploadId=0123456789abcdef", WRITE),
    (Action::CompleteUpload, "POST", "/b/k", "uploadId=0123456789abcdef", WRITE),
    (Action::AbortUpload, "DELETE", "/b/k", "uploadId=0123456789abcdef", REMOVE),
    (Action::ListParts, "GET", "/b/k", "uploadId=0123456789abcdef", LOOK),
];
const LOOK: &str = "admin operator submitter viewer";
const WRITE: &str = "admin operator submitter worker";
const REMOVE: &str = "admin operator submitter";

#[tokio::test]
async fn x_4_every_action_lets_in_exactly_the_roles_that_may() {
    let secret = "07".repeat(32);
    for role in Role::ALL {
        let gatekeeper = crate::auth::Gatekeeper::default();
        gatekeeper.learn(vec![std::sync::Arc::new(ikada_api::state::Token {
            id: ikada_api::state::TokenId::parse("aaa").unwrap(),
            name: ikada_api::state::PrincipalName::parse("s3-ci").unwrap(),
            digest: ikada_api::state::SecretDigest([7; 32]),
            role,
            namespaces: Vec::new(),
            created_ms: 0,
            expires_ms: 0,
        })]);
        let app = app(Security { gatekeeper: Some(gatekeeper.into()), ..Security::default() });
        let caller = Caller { key: "aaa".into(), secret: secret.clone() };
        for (action, method, path, query, roles) in ACTIONS {
            let request = caller.sign(method, path, query, b"");
            let (parts, _) = caller.sign(method, path, query, b"").into_parts();
            assert_eq!(Call::read(&parts).unwrap().action, action, "{method} {path}?{query}");
            let (status, said) = hear(&app, request).await;
            assert!(!said.contains("Signature"), "{action:?}: {said}");
            let may = roles.split(' ').any(|name| name == role.as_str());
            assert_eq!(status != 403, may, "{role:?} {action:?}: {status} {said}");
        }
    }
    // A copy writes; what it reads is of the same namespace, where all who write may read.
    for copy in [Action::Copy, Action::CopyPart] {
        assert!(copy.writes() && copy.operation() == Action::Put.operation());
    }
}

#[tokio::test]
async fn x_14_a_rebound_name_reaches_no_object() {
    let app = app(Security::default());
    for (_, method, path, query, _) in ACTIONS {
        let mut request = open(method, &format!("{path}?{query}"), "");
        let headers = request.headers_mut();
        headers.insert("host", "evil.example:7480".parse().unwrap());
        // Nobody asks for proof here, so a page may invent one.
        headers.insert("authorization", "AWS4-HMAC-SHA256 Credential=a".parse().unwrap());
        assert_eq!(hear(&app, request).await.0, 403, "{method} {path}?{query}");
    }
    let mut own = open("GET", "/", "");
    own.headers_mut().insert("host", "127.0.0.1:7480".parse().unwrap());
    assert_eq!(hear(&app, own).await.0, 200);
}

pub(super) fn open(method: &str, uri: &str, body: &str) -> Request<Full<Bytes>> {
    let body = Full::new(Bytes::copy_from_slice(body.as_bytes()));
    Request::builder().method(method).uri(uri).body(body).unwrap()
}

#[tokio::test]
async fn bad_requests_are_told_what_is_wrong() {
    let app = app(Security::default());
    assert_eq!(*app.anyone, Principal::anyone());
    for (method, uri, status, code) in [
        ("GET", "/b/%zz", 400, "InvalidURI"),
        ("PUT", "/b/a%00b", 400, "InvalidArgument"),
        ("PUT", "/b/../../etc", 400, "InvalidArgument"),
        ("PUT", "/b/%2e%2e/x", 400, "InvalidArgument"),
        ("PUT", "/b%20c/x", 400, "InvalidBucketName"),
        ("PUT", "/s3-uploads/x", 403, "AccessDenied"),
        ("PATCH", "/b/x", 405, "MethodNotAllowed"),
        ("GET", "/b?acl", 501, "NotImplemented"),
        ("GET", "/b/x?versionId=1", 501, "NotImplemented"),
        ("PUT", "/b/x?legal-hold", 501, "NotImplemented"),
        ("PUT", "/b/x?tagging", 501, "NotImplemented"),
        ("DELETE", "/b?tagging", 501, "NotImplemented"),
        ("PUT", "/b?versioning", 501, "NotImplemented"),
        ("PUT", "/b/x?X-Amz-Acl=public-read", 501, "NotImplemented"),
        ("GET", "/b/x?AWSAccessKeyId=a&Signature=b&Expires=1", 400, "version 4"),
        ("GET", "/b/x?partNumber=1", 501, "NotImplemented"),
        ("PUT", "/b/x?partNumber=1&uploadId=../../x", 404, "NoSuchUpload"),
        ("PUT", "/b/x?partNumber=0&uploadId=0123456789abcdef", 400, "InvalidArgument"),
        ("POST", "/b?delete", 400, "MalformedXML"),
        ("GET", "/b?list-type=2&continuation-token=%21", 400, "InvalidArgument"),
    ] {
        let (found, said) = hear(&app, open(method, uri, "<x/>")).await;
        assert_eq!((found, said.contains(code)), (status, true), "{method} {uri}: {said}");
    }
    let mut foreign = open("PUT", "/b/x", "x");
    foreign.headers_mut().insert("origin", "http://evil.example".parse().unwrap());
    assert_eq!(hear(&app, foreign).await.0, 403, "no page of another site");
}

// CH-11: of buckets that belong to tasks and jobs no list is made, since one shard's would look like all.
#[tokio::test]
async fn ch_11_no_list_shows_a_part_for_the_whole() {
    let app = app(Security::default());
    for bucket in ["tasks", "jobs", "logs"] {
        let (status, said) = hear(&app, open("GET", &format!("/{bucket}?list-type=2"), "")).await;
        assert_eq!((status, said.contains("id and a slash")), (400, true), "{said}");
        let (status, _) = hear(&app, open("GET", &format!("/{bucket}?prefix=t1/"), "")).await;
        assert_eq!(status, 200);
        assert_eq!(hear(&app, open("DELETE", &format!("/{bucket}"), "")).await.0, 403);
    }
}

// CH-11
#[tokio::test]
async fn ch_11_buckets_come_in_pages() {
    let app = app(Security::default());
    for bucket in ["a1", "b1", "a2", "a3"] {
        hear(&app, open("PUT", &format!("/{bucket}/k"), "x")).await;
    }
    let names =
        |said: &str| elements(said, "Name").into_iter().map(str::to_owned).collect::<Vec<_>>();
    let (_, all) = hear(&app, open("GET", "/", "")).await;
    assert_eq!(names(&all), ["a1", "a2", "a3", "b1"]);
    assert!(!all.contains("ContinuationToken"));
    let (_, first) = hear(&app, open("GET", "/?max-buckets=2&prefix=a", "")).await;
    assert_eq!(names(&first), ["a1", "a2"]);
    let next = elements(&first, "ContinuationToken")[0].to_owned();
    let rest = format!("/?max-buckets=2&prefix=a&continuation-token={next}");
    let (_, rest) = hear(&app, open("GET", &rest, "")).await;
    assert_eq!((names(&rest), rest.contains("ContinuationToken")), (vec!["a3".to_owned()], false));
    for bad in ["max-buckets=0", "continuation-token=%21"] {
        assert_eq!(hear(&app, open("GET", &format!("/?{bad}"), "")).await.0, 400, "{bad}");
    }
}

// CH-1: whoever signs an address says how browsers take what it leads to.
#[tokio::test]
async fn ch_1_an_address_chooses_headers_of_its_answer() {
    let app = app(Security::default());
    hear(&app, open("PUT", "/b/k", "x")).await;
    let chosen = "/b/k?response-content-type=text%2Fcsv&response-content-disposition=attachment%3B%20filename%3Dm.csv";
    let reply = answer(&app, open("GET", chosen, "")).await;
    assert_eq!(reply.headers()["content-type"], "text/csv");
    assert_eq!(reply.headers()["content-disposition"], "attachment; filename=m.csv");
    assert!(reply.headers().contains_key("content-security-policy"), "a page it is not");
    let (status, _) = hear(&app, open("GET", "/b/k?response-expires=a%0Ab", "")).await;
    assert_eq!(status, 400);
}

/// A request with one more header.
pub(super) fn with(
    mut request: Request<Full<Bytes>>,
    name: &'static str,
    value: &str,
) -> Request<Full<Bytes>> {
    request.headers_mut().insert(name, value.parse().unwrap());
    request
}

// CH-9: whoever names a version does not mean all of them.
#[tokio::test]
async fn ch_9_a_named_version_is_refused_and_removes_nothing() {
    let app = app(Security::default());
    for body in ["first", "second"] {
        assert_eq!(hear(&app, open("PUT", "/b/x", body)).await.0, 200);
    }
    let many = "<Delete><Object><Key>x</Key><VersionId>1</VersionId></Object></Delete>";
    let copy = with(open("PUT", "/b/y", ""), "x-amz-copy-source", "/b/x?versionId=1");
    for request in [open("DELETE", "/b/x?versionId=1", ""), open("POST", "/b?delete", many), copy] {
        let (status, said) = hear(&app, request).await;
        assert_eq!((status, said.contains("NotImplemented")), (501, true), "{said}");
    }
    assert_eq!(hear(&app, open("GET", "/b/x", "")).await, (200, "second".to_owned()));
    assert_eq!(hear(&app, open("GET", "/b/y", "")).await.0, 404);
    let plain = "<Delete><Object><Key>x</Key></Object></Delete>";
    assert_eq!(hear(&app, open("POST", "/b?delete", plain)).await.0, 200);
    assert_eq!(hear(&app, open("GET", "/b/x", "")).await.0, 404);
}

// B4-39: programs are checked when they are pushed; no other verb may bring one.
#[tokio::test]
async fn b4_39_no_verb_writes_to_a_bucket_of_the_cluster() {
    let app = app(Security::default());
    assert_eq!(hear(&app, open("PUT", "/b/x", "bytes")).await.0, 200);
    for bucket in ["programs", "jobs", "tasks"] {
        let copy = open("PUT", &format!("/{bucket}/x"), "");
        let part = format!("/{bucket}/x?partNumber=1&uploadId=0123456789abcdef");
        let end = format!("/{bucket}/x?uploadId=0123456789abcdef");
        for request in [
            open("PUT", &format!("/{bucket}/x"), "bytes"),
            with(copy, "x-amz-copy-source", "/b/x"),
            open("POST", &format!("/{bucket}/x?uploads"), ""),
            open("PUT", &part, "bytes"),
            open("POST", &end, "<x/>"),
        ] {
            let (method, uri) = (request.method().clone(), request.uri().clone());
            let (_, said) = hear(&app, request).await;
            assert!(said.contains("bucket_reserved"), "{method} {uri}: {said}");
        }
    }
    let copied = with(open("PUT", "/b/y", ""), "x-amz-copy-source", "/b/x");
    assert_eq!(hear(&app, copied).await.0, 200, "other buckets take copies");
}

// CH-1: a body that is shorter or longer than was said leaves nothing.
#[tokio::test]
async fn ch_1_a_body_of_another_length_leaves_nothing() {
    let app = app(Security::default());
    let chunks = |length: &str| {
        let body = "5\r\nhello\r\n0\r\n\r\n";
        let mut request = open("PUT", "/b/x", body);
        let scope = "Credential=k/20130524/here/s3/aws4_request";
        let signed = "SignedHeaders=host;x-amz-content-sha256;x-amz-date";
        let authorization = format!("AWS4-HMAC-SHA256 {scope}, {signed}, Signature={EMPTY}");
        for (name, value) in [
            ("authorization", authorization.as_str()),
            ("host", "localhost"),
            ("x-amz-content-sha256", "STREAMING-UNSIGNED-PAYLOAD-TRAILER"),
            ("x-amz-date", "20130524T000000Z"),
            ("x-amz-decoded-content-length", length),
        ] {
            request = with(request, name, value);
        }
        request
    };
    for length in ["4", "6", "0"] {
        let (status, said) = hear(&app, chunks(length)).await;
        assert_eq!((status, said.contains("IncompleteBody")), (400, true), "{length}: {said}");
        assert_eq!(hear(&app, open("GET", "/b/x", "")).await.0, 404, "{length}");
    }
    let short = with(open("PUT", "/b/x", "hello"), "content-length", "6");
    let (status, said) = hear(&app, short).await;
    assert_eq!((status, said.contains("IncompleteBody")), (400, true), "{said}");
    assert_eq!(hear(&app, open("GET", "/b/x", "")).await.0, 404);
    assert_eq!(hear(&app, chunks("5")).await.0, 200);
    assert_eq!(hear(&app, open("GET", "/b/x", "")).await, (200, "hello".to_owned()));
}

/// Begins an upload and sends its only part; its id.
pub(super) async fn one_part(app: &App<impl crate::http::Door>, key: &str, body: &str) -> String {
    let (status, said) = hear(app, open("POST", &format!("/b/{key}?uploads"), "")).await;
    assert_eq!(status, 200, "{said}");
    let id = said.split("<UploadId>").nth(1).and_then(|rest| rest.split('<').next());
    let id = id.unwrap().to_owned();
    let part = open("PUT", &format!("/b/{key}?partNumber=1&uploadId={id}"), body);
    assert_eq!(hear(app, part).await.0, 200);
    id
}

pub(super) fn complete(key: &str, id: &str, body: &str) -> Request<Full<Bytes>> {
    let tag = blake3::hash(body.as_bytes()).to_hex();
    let part = format!("<Part><PartNumber>1</PartNumber><ETag>{tag}</ETag></Part>");
    let list = format!("<CompleteMultipartUpload>{part}</CompleteMultipartUpload>");
    open("POST", &format!("/b/{key}?uploadId={id}"), &list)
}

// CH-1: clients send the end again when its answer got lost.
#[tokio::test]
async fn ch_1_an_end_of_an_upload_that_comes_again_is_answered_as_the_first_time() {
    let app = app(Security::default());
    let id = one_part(&app, "x", "bytes").await;
    let first = hear(&app, complete("x", &id, "bytes")).await;
    assert_eq!(first.0, 200, "{}", first.1);
    assert_eq!(hear(&app, complete("x", &id, "bytes")).await, first);
    let other = hear(&app, complete("y", &id, "bytes")).await;
    assert_eq!((other.0, other.1.contains("NoSuchUpload")), (404, true), "{}", other.1);
    // With a condition only what says to be the same call is.
    let id = one_part(&app, "y", "more").await;
    let end = |call: &str| {
        let end = with(complete("y", &id, "more"), "if-none-match", "*");
        with(end, "amz-sdk-invocation-id", call)
    };
    let first = hear(&app, end("one")).await;
    assert_eq!(first.0, 200, "{}", first.1);
    assert_eq!(hear(&app, end("one")).await, first);
    assert_eq!(hear(&app, end("two")).await.0, 404);
    // What was refused may be asked for again, to be judged afresh.
    let id = one_part(&app, "y", "again").await;
    let refused = with(complete("y", &id, "again"), "if-none-match", "*");
    assert_eq!(hear(&app, refused).await.0, 412);
    assert_eq!(hear(&app, open("DELETE", "/b/y", "")).await.0, 204);
    let anew = with(complete("y", &id, "again"), "if-none-match", "*");
    assert_eq!(hear(&app, anew).await.0, 200);
}

// X7: no client comes back for what only a removal can change.
#[tokio::test]
async fn x_7_a_quota_that_is_used_up_is_final_and_parts_count_once() {
    let app = app(Security::default());
    let namespace = ikada_api::state::Namespace::default();
    let quota = ikada_api::state::Quota { version: 1, object_bytes_max: 60, ..Default::default() };
    let view = ikada_api::state::NamespaceView {
        quota,
        ..ikada_api::state::NamespaceView::empty(namespace)
    };
    app.quotas.learn(&[view], std::time::Instant::now());
    let body = "x".repeat(50);
    let id = one_part(&app, "x", &body).await;
    let (status, said) = hear(&app, complete("x", &id, &body)).await;
    assert_eq!(status, 200, "{said}");
    let long = with(open("PUT", "/b/y", &body), "content-length", "50");
    let (status, said) = hear(&app, long).await;
    assert_eq!((status, said.contains("QuotaExceeded")), (403, true), "{said}");
}
