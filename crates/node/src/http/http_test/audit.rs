//! Every route that changes something leaves exactly one line in the audit log, and so does every denial (X15).

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use ikada_api::Client;
use ikada_api::client::{AccessToken, ClientOptions};
use ikada_api::routes::{Operation, ROUTES, Role, Route, Scope, Verb};
use ikada_api::v1::{CompleteRequest, NewTask};

use super::door::{FakeDoor, Script};
use super::roles::{guarded, make_token};
use super::socket::Server;
use super::{Bench, HttpLimits};
use crate::audit::{AuditLog, Record, verify};
use crate::http::dispatch::answer;
use crate::http::security::Source;
use crate::http::{Audit, Security};
use crate::places::{Places, Taken};
use crate::ration::Ration;

fn audited(folder: &Path, all: bool) -> (Security, std::thread::JoinHandle<()>) {
    let (log, thread) = AuditLog::open(folder).unwrap();
    let audit = Some(Arc::new(Audit { log: log.into(), all }));
    (Security { audit, ..guarded() }, thread)
}

fn records(folder: &Path) -> Vec<Record> {
    let text = std::fs::read_to_string(folder.join("00000001.log")).unwrap();
    let (count, _, _) = verify(&text).unwrap();
    let records: Vec<Record> =
        text.lines().skip(1).map(|line| serde_json::from_str(&line[65..]).unwrap()).collect();
    assert_eq!(records.len(), count);
    records
}

/// What changes nothing that is kept, although its verb is no GET: signs of life, which come every few seconds.
const SIGNS_OF_LIFE: [Operation; 3] = [Operation::Renew, Operation::Beat, Operation::RenewLease];

/// What a call of a route must leave in the log.
fn is_noted(route: &Route) -> bool {
    let changes = route.verb != Verb::Get && !SIGNS_OF_LIFE.contains(&route.operation);
    // A look, but one that takes all secrets along.
    changes || route.operation == Operation::Backup
}

/// A body that names something, and the object that its line must name. Empty for routes whose path names it.
fn named_in_body(operation: Operation) -> (&'static str, Option<&'static str>) {
    match operation {
        Operation::Enqueue => (r#"{"tasks":[{"id":"a"},{"id":"b"}]}"#, Some("a,b")),
        Operation::Claim => (r#"{"worker":"w","queues":["q1","q2"]}"#, Some("q1,q2")),
        Operation::Complete | Operation::Fail => {
            (r#"{"worker":"w","tasks":[{"id":"a","fence":"1"}]}"#, Some("a"))
        }
        Operation::SubmitJob => (r#"{"id":"job-1"}"#, Some("job-1")),
        Operation::PushProgram => (r#"{"name":"p1","kind":"command","argv":["x"]}"#, Some("p1")),
        Operation::CreateToken => (r#"{"name":"bob","role":"viewer"}"#, Some(" viewer bob")),
        Operation::AddNode => (r#"{"peer_addr":"h:1","replaces":"3"}"#, Some("h:1 in place of 3")),
        Operation::Transfer => (r#"{"shard":0,"to":"2"}"#, Some("shard=0 from=any to=2")),
        Operation::Grow => (r#"{"shards":9}"#, Some("shards=9")),
        Operation::TuneElections => (r#"{"timeout_ms":1000}"#, Some("timeout_ms=1000")),
        // Everything there is.
        Operation::Backup => ("", None),
        // Bytes without a name: by their digest. Uploads: by what they will be.
        Operation::Upload => ("x", Some("")),
        Operation::BeginUpload | Operation::FinishUpload => ("{}", Some("")),
        _ => ("{}", None),
    }
}

async fn knock(bench: &Bench, route: &Route, bearer: &str) -> u16 {
    let words = route.path.split('/').map(|word| if word.starts_with('{') { "x1" } else { word });
    let mut request = Request::builder()
        .method(route.verb.as_str())
        .uri(words.collect::<Vec<_>>().join("/"))
        .header("authorization", bearer)
        .header("idempotency-key", format!("key-{:?}", route.operation));
    if route.policy.scope == Scope::Namespace {
        request = request.header("ikada-namespace", "team");
    }
    let body = named_in_body(route.operation).0;
    let mut request = request.body(Full::new(Bytes::from_static(body.as_bytes()))).unwrap();
    let address = IpAddr::from([10, 9, 8, 7]);
    let Taken { place, .. } = Places::new(2, 2).take(address).unwrap();
    let (ration, place) = (Ration::new(), Arc::new(place));
    request.extensions_mut().insert(Source { address, shown: None, ration, place });
    answer(&bench.app, request).await.status().as_u16()
}

/// A line tells everything that is known of its call.
fn check_line(record: &Record, route: &Route, role: Role) {
    let operation = route.operation;
    assert_eq!(record.principal.as_deref(), Some("ann"));
    assert_eq!(record.role.as_deref(), Some(role.as_str()));
    assert!(record.token.is_some() && record.time_ms > 0);
    assert_eq!(record.source.as_deref(), Some("10.9.8.7"), "{operation:?}");
    if !route.policy.admits(role) {
        return;
    }
    let key = format!("key-{operation:?}");
    assert_eq!(record.request.as_deref(), Some(key.as_str()));
    let in_namespace = route.policy.scope == Scope::Namespace;
    assert_eq!(record.namespace.as_deref(), in_namespace.then_some("team"), "{operation:?}");
    let object = record.object.as_deref();
    match named_in_body(operation).1 {
        Some(named) => assert!(object.is_some_and(|told| told.ends_with(named)), "{record:?}"),
        None if operation == Operation::Backup => assert_eq!(object, None),
        None => {
            let names = route.path.split('/').filter(|word| word.starts_with('{')).count();
            assert!(names > 0, "{operation:?} names nothing in its path: give it a body here");
            assert_eq!(object, Some(vec!["x1"; names].join("/").as_str()), "{operation:?}");
        }
    }
}

#[tokio::test]
async fn x_15_every_change_and_every_denial_is_one_line() {
    for role in [Role::Admin, Role::Viewer, Role::Worker] {
        let folder = tempfile::tempdir().unwrap();
        let (security, thread) = audited(folder.path(), true);
        let bench = Bench::guarded(HttpLimits::default(), security);
        let bearer = format!("Bearer {}", make_token(bench.door(), "ann", role, &[]).await);
        let mut wanted = Vec::new();
        for route in ROUTES {
            let status = knock(&bench, route, &bearer).await;
            if is_noted(route) || !route.policy.admits(role) {
                wanted.push((route, status));
            }
        }
        drop(bench);
        thread.join().unwrap();
        let records = records(folder.path());
        let found: Vec<(String, u16)> =
            records.iter().map(|record| (record.action.clone(), record.status)).collect();
        let named = |(route, status): &(&Route, u16)| (format!("{:?}", route.operation), *status);
        assert_eq!(found, wanted.iter().map(named).collect::<Vec<_>>(), "{role:?}");
        for (record, (route, _)) in records.iter().zip(&wanted) {
            check_line(record, route, role);
        }
    }
}

#[tokio::test]
async fn x_15_strangers_leave_lines_and_reads_do_not() {
    let folder = tempfile::tempdir().unwrap();
    let (security, thread) = audited(folder.path(), true);
    let bench = Bench::guarded(HttpLimits::default(), security);
    bench.get("/v1/tasks").await;
    bench.get("/nowhere").await;
    bench.get("/healthz").await;
    drop(bench);
    thread.join().unwrap();
    let records = records(folder.path());
    let found: Vec<(&str, u16, bool)> = records
        .iter()
        .map(|record| (record.action.as_str(), record.status, record.principal.is_some()))
        .collect();
    assert_eq!(found, [("ListTasks", 401, false), ("unknown", 401, false)]);
}

#[tokio::test]
async fn x_15_calls_of_a_pipe_are_noted_too_unless_only_operations_are_wanted() {
    for all in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let (security, thread) = audited(folder.path(), all);
        let server = Server::guarded(HttpLimits::default(), security).await;
        let token = make_token(&server.door, "ann", Role::Operator, &[]).await;
        let options =
            ClientOptions { token: AccessToken::parse(&token).ok(), ..ClientOptions::default() };
        let client = Client::with([&server.address], options).unwrap();
        client.enqueue(vec![NewTask::default()]).await.unwrap();
        client.pause_queue("default").await.unwrap();
        let report = CompleteRequest {
            worker: "w".into(),
            tasks: vec![serde_json::from_str("{\"id\": \"a\", \"fence\": \"1\"}").unwrap()],
            claim: None,
        };
        assert!(client.complete(&report).await.is_err());
        drop(client);
        server.stop().await;
        thread.join().unwrap();
        let records = records(folder.path());
        let found: Vec<(&str, u16)> =
            records.iter().map(|record| (record.action.as_str(), record.status)).collect();
        let wanted: &[(&str, u16)] = match all {
            true => &[("Enqueue", 200), ("PauseQueue", 200), ("Complete", 403)],
            false => &[("PauseQueue", 200), ("Complete", 403)],
        };
        assert_eq!(found, wanted);
        assert!(records.iter().all(|record| record.source.as_deref() == Some("127.0.0.1")));
        assert!(records.iter().all(|record| record.namespace.as_deref() == Some("default")));
        let objects: Vec<Option<&str>> =
            records.iter().map(|record| record.object.as_deref()).collect();
        // Of a call that was denied nothing is read.
        assert_eq!(objects.last(), Some(&None));
        assert!(objects[..objects.len() - 1].iter().all(|object| object.is_some()), "{records:?}");
    }
}

// X15, LS: whoever runs the cluster takes a lease from its holder, whose name has the owner's before it; that is told even
// where only operations are.
#[tokio::test]
async fn x_15_a_lease_is_taken_from_its_holder_by_operators_only_and_never_in_silence() {
    let folder = tempfile::tempdir().unwrap();
    let (security, thread) = audited(folder.path(), false);
    let bench = Bench::guarded(HttpLimits::default(), security);
    let roles = [("ann", Role::Submitter), ("bob", Role::Submitter), ("olga", Role::Operator)];
    let mut bearers = Vec::new();
    for (name, role) in roles {
        bearers.push(format!("Bearer {}", make_token(bench.door(), name, role, &[]).await));
    }
    let [ann, bob, olga] = [0, 1, 2].map(|who| [("authorization", bearers[who].as_str())]);
    let (take, path) = (r#"{"holder": "me", "ttl_ms": 60000}"#, "/v1/leases/l/release");
    let held = bench.send("POST", "/v1/leases/l/acquire", &ann, take).await.json();
    let shown = bench.send("GET", "/v1/leases/l", &olga, "").await.json();
    assert_eq!(shown["holder"], "ann.me");
    let body = |force: bool| {
        let fence = &held["fence"];
        serde_json::json!({"holder": "ann.me", "fence": fence, "force": force}).to_string()
    };
    assert_eq!(bench.send("POST", path, &olga, body(false)).await.code(), "not_owner");
    assert_eq!(bench.send("POST", path, &bob, body(true)).await.code(), "forbidden");
    assert_eq!(bench.send("POST", path, &olga, body(true)).await.status, 200);
    assert_eq!(bench.send("GET", "/v1/leases/l", &olga, "").await.json()["state"], "free");
    // One's own needs no office, whichever way it is named.
    bench.send("POST", "/v1/leases/l/acquire", &ann, take).await;
    let own = r#"{"holder": "ann.me", "force": true}"#;
    assert_eq!(bench.send("POST", path, &ann, own).await.status, 200);
    drop(bench);
    thread.join().unwrap();
    let records = records(folder.path());
    let found: Vec<(&str, u16, Option<&str>)> = records
        .iter()
        .map(|line| (line.principal.as_deref().unwrap(), line.status, line.object.as_deref()))
        .collect();
    let forced = Some("l by force from ann.me");
    assert_eq!(found, [("bob", 403, Some("l")), ("olga", 200, forced), ("ann", 200, forced)]);
}

/// Done when something was written to the log.
async fn written(door: &FakeDoor, before: u64) {
    while door.log_end() == before {
        tokio::task::yield_now().await;
    }
}

/// The one line that a call left which was done and whose caller hung up.
async fn check_hung_up(folder: &Path, thread: std::thread::JoinHandle<()>) {
    tokio::task::spawn_blocking(move || thread.join().unwrap()).await.unwrap();
    let records = records(folder);
    assert_eq!(records.len(), 1, "{records:?}");
    assert_eq!((records[0].action.as_str(), records[0].status), ("Enqueue", 499));
    assert_eq!(records[0].principal.as_deref(), Some("ann"));
    assert_eq!(records[0].object.as_deref(), Some("a"));
}

#[tokio::test]
async fn x_15_whoever_hangs_up_leaves_a_line_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let (security, thread) = audited(folder.path(), true);
    let bench = Bench::guarded(HttpLimits::default(), security);
    let bearer = format!("Bearer {}", make_token(bench.door(), "ann", Role::Submitter, &[]).await);
    let (headers, before) = ([("authorization", bearer.as_str())], bench.door().log_end());
    bench.door().script(Script::Silence);
    tokio::select! {
        biased;
        _ = bench.send("POST", "/v1/tasks", &headers, r#"{"tasks":[{"id":"a"}]}"#) => unreachable!(),
        () = written(bench.door(), before) => {}
    }
    drop(bench);
    check_hung_up(folder.path(), thread).await;
}

#[tokio::test]
async fn x_15_a_pipe_that_breaks_off_leaves_the_lines_of_its_calls() {
    let folder = tempfile::tempdir().unwrap();
    let (security, thread) = audited(folder.path(), true);
    let server = Server::guarded(HttpLimits::default(), security).await;
    let token = make_token(&server.door, "ann", Role::Submitter, &[]).await;
    let options =
        ClientOptions { token: AccessToken::parse(&token).ok(), ..ClientOptions::default() };
    let client = Client::with([&server.address], options).unwrap();
    let before = server.door.log_end();
    server.door.script(Script::Silence);
    tokio::select! {
        biased;
        _ = client.enqueue(vec![NewTask { id: Some("a".into()), ..NewTask::default() }]) => unreachable!(),
        () = written(&server.door, before) => {}
    }
    drop(client);
    server.stop().await;
    check_hung_up(folder.path(), thread).await;
}

// The path names an upload by its id alone.
#[tokio::test]
async fn x_15_lines_of_an_upload_in_parts_name_its_object() {
    let folder = tempfile::tempdir().unwrap();
    let (security, thread) = audited(folder.path(), true);
    let bench = Bench::guarded(HttpLimits::default(), security);
    let bearer = format!("Bearer {}", make_token(bench.door(), "ann", Role::Submitter, &[]).await);
    let headers = [("authorization", bearer.as_str())];
    let id = "00112233445566778899aabbccddeeff";
    let path = format!("/v1/uploads/{id}");
    bench.send("PUT", &path, &headers, r#"{"bucket": "b", "key": "x/k"}"#).await;
    bench.send("PUT", &format!("{path}/parts/1"), &headers, "1").await;
    let finish = format!("{path}/finish");
    bench.send("POST", &finish, &headers, r#"{"parts": 2}"#).await;
    bench.send("POST", &finish, &headers, r#"{"parts": 1}"#).await;
    bench.send("DELETE", &path, &headers, "").await;
    drop(bench);
    thread.join().unwrap();
    let records = records(folder.path());
    let found: Vec<(&str, u16, &str)> = records
        .iter()
        .map(|line| (line.action.as_str(), line.status, line.object.as_deref().unwrap()))
        .collect();
    let (whole, part) = (format!("b/x/k (upload {id})"), format!("b/x/k (upload {id}/1)"));
    let wanted = [
        ("BeginUpload", 201, whole.as_str()),
        ("PutPart", 201, part.as_str()),
        ("FinishUpload", 409, whole.as_str()),
        ("FinishUpload", 201, whole.as_str()),
        ("EndUpload", 404, id),
    ];
    assert_eq!(found, wanted);
}
