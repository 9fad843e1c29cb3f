//! Every route that changes something leaves exactly one line in the audit log, and so does every denial (X15).

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use ikada_api::Client;
use ikada_api::client::{AccessToken, ClientOptions};
use ikada_api::routes::{ROUTES, Role, Route};
use ikada_api::v1::{CompleteRequest, NewTask};

use super::roles::{guarded, make_token};
use super::socket::Server;
use super::{Bench, HttpLimits};
use crate::audit::{AuditLog, Record, verify};
use crate::http::dispatch::answer;
use crate::http::trace::changes;
use crate::http::{Audit, Security};

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

async fn knock(bench: &Bench, route: &Route, bearer: &str) -> u16 {
    let words = route.path.split('/').map(|word| if word.starts_with('{') { "x1" } else { word });
    let request = Request::builder()
        .method(route.verb.as_str())
        .uri(words.collect::<Vec<_>>().join("/"))
        .header("authorization", bearer)
        .header("idempotency-key", format!("key-{:?}", route.operation));
    let request = request.body(Full::new(Bytes::from_static(b"{}"))).unwrap();
    answer(&bench.app, request).await.status().as_u16()
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
            let denied = !route.policy.admits(role);
            if changes(route) || denied {
                wanted.push((format!("{:?}", route.operation), status));
            }
        }
        drop(bench);
        thread.join().unwrap();
        let records = records(folder.path());
        let found: Vec<(String, u16)> =
            records.iter().map(|record| (record.action.clone(), record.status)).collect();
        assert_eq!(found, wanted, "{role:?}");
        for record in &records {
            assert_eq!(record.principal.as_deref(), Some("ann"));
            assert_eq!(record.role.as_deref(), Some(role.as_str()));
            assert!(record.token.is_some() && record.time_ms > 0);
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
    }
}
