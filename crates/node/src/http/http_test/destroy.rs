//! What destroys names its object, is an admin's alone, is written down, and never runs twice at once (X18).

use std::sync::Arc;

use ikada_api::routes::{Operation, ROUTES, Role};

use super::roles::{guarded, make_token};
use super::{Bench, HttpLimits};
use crate::audit::{AuditLog, Record};
use crate::http::{Audit, Security};

/// Method, path, and what the audit log calls it.
const DESTROYERS: &[(&str, &str, &str, &str)] = &[
    ("POST", "/v1/queues/q/purge", "PurgeQueue", "q"),
    ("POST", "/v1/queues/q/drop", "DropQueue", "q"),
    ("DELETE", "/v1/tokens/nobody", "RevokeToken", "nobody"),
    ("DELETE", "/v1/cluster/nodes/3", "RemoveNode", "3"),
];

#[tokio::test]
async fn x_18_destruction_names_its_object_and_is_an_admins() {
    let folder = tempfile::tempdir().unwrap();
    let (log, thread) = AuditLog::open(folder.path()).unwrap();
    let audit = Some(Arc::new(Audit { log: log.into(), all: false }));
    let bench = Bench::guarded(HttpLimits::default(), Security { audit, ..guarded() });
    let mut wanted = Vec::new();
    for role in Role::ALL {
        let token = make_token(bench.door(), role.as_str(), role, &[]).await;
        let bearer = format!("Bearer {token}");
        for (method, path, action, object) in DESTROYERS {
            let before = bench.door().log_end();
            let headers = [("authorization", bearer.as_str())];
            let heard = bench.send(method, path, &headers, "").await;
            let is_admin = role == Role::Admin;
            assert_eq!(heard.status == 403, !is_admin, "{role:?} {action}: {}", heard.status);
            assert!(is_admin || bench.door().log_end() == before, "{role:?} {action} was written");
            let line = (role.as_str(), *action, *object, heard.status.as_u16());
            wanted.push(format!("{line:?}"));
        }
    }
    drop(bench);
    thread.join().unwrap();
    let text = std::fs::read_to_string(folder.path().join("00000001.log")).unwrap();
    let records = text.lines().skip(1).map(|line| serde_json::from_str(&line[65..]).unwrap());
    let found: Vec<String> = records
        .map(|record: Record| {
            let (principal, object) = (record.principal.unwrap(), record.object.unwrap());
            format!("{:?}", (principal, record.action, object, record.status))
        })
        .collect();
    assert_eq!(found, wanted);
    for (_, _, action, _) in DESTROYERS {
        let named = |route: &&ikada_api::routes::Route| format!("{:?}", route.operation) == *action;
        let route = ROUTES.iter().find(named).unwrap();
        assert!(route.path.contains('{'), "{action} does not say what");
    }
}

#[tokio::test]
async fn x_18_two_changes_of_the_members_never_run_at_once() {
    let bench = Bench::new();
    let first = bench.send("DELETE", "/v1/cluster/nodes/2", &[], "").await;
    assert_eq!(first.status, 202, "{:?}", first.body);
    let second = bench.send("DELETE", "/v1/cluster/nodes/3", &[], "").await;
    assert_eq!((second.status.as_u16(), second.code().as_str()), (409, "change_pending"));
    let same = bench.send("DELETE", "/v1/cluster/nodes/2", &[], "").await;
    assert_eq!(same.status, 202, "the same again is no second change");
    let route = ROUTES.iter().find(|route| route.operation == Operation::RemoveNode).unwrap();
    assert!(route.path.ends_with("{id}"));
}
