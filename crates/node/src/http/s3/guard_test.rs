//! Who gets where by the S3 door, and what is written down of it (X5, X15).

use std::sync::Arc;

use ikada_api::routes::Role;
use ikada_api::state::{Namespace, PrincipalName, SecretDigest, Token, TokenId};

use super::s3_test::{ACTIONS, Caller, app, hear};
use crate::audit::{AuditLog, Record};
use crate::auth::Gatekeeper;
use crate::http::{Audit, Security};

/// A door that knows these keys.
fn guarded(keys: Vec<Arc<Token>>) -> Security {
    let gatekeeper = Gatekeeper::default();
    gatekeeper.learn(keys);
    Security { gatekeeper: Some(gatekeeper.into()), ..Security::default() }
}

fn key(id: &str, role: Role, namespaces: &[&str]) -> Arc<Token> {
    Arc::new(Token {
        id: TokenId::parse(id).unwrap(),
        name: PrincipalName::parse("s3-ci").unwrap(),
        digest: SecretDigest([7; 32]),
        role,
        namespaces: namespaces.iter().map(|name| Namespace::parse(name).unwrap()).collect(),
        created_ms: 0,
        expires_ms: 0,
    })
}

fn caller(id: &str) -> Caller {
    Caller { key: id.to_owned(), secret: "07".repeat(32) }
}

// X5: no call of this door names a namespace, so whoever is bound to several has none to work in.
#[tokio::test]
async fn x_5_a_key_that_is_bound_reaches_no_other_namespace() {
    let bound: [(&str, &[&str]); 4] = [
        ("free", &[]),
        ("blue", &["blue"]),
        ("both", &["blue", "green"]),
        ("own", &["default", "blue"]),
    ];
    let keys = bound.map(|(id, namespaces)| key(id, Role::Admin, namespaces));
    let app = app(guarded(keys.to_vec()));
    let put = |id: &str| caller(id).sign("PUT", "/b/k", "", id.as_bytes());
    for (id, status) in [("free", 200), ("blue", 200), ("both", 403)] {
        let (heard, said) = hear(&app, put(id)).await;
        assert_eq!(heard, status, "{id}: {said}");
    }
    for (action, method, path, query, _) in ACTIONS {
        let request = caller("both").sign(method, path, query, b"");
        let (status, said) = hear(&app, request).await;
        assert_eq!(status, 403, "{action:?}: {said}");
        assert!(said.is_empty() || said.contains("AccessDenied"), "{action:?}: {said}");
    }
    // Each finds what is its own, and nothing was lost to the key that has no place.
    for (id, found) in [("free", "free"), ("blue", "blue"), ("own", "free")] {
        let (_, said) = hear(&app, caller(id).sign("GET", "/b/k", "", b"")).await;
        assert_eq!(said, found, "{id}");
    }
}

#[tokio::test]
async fn x_15_every_writing_action_and_every_denial_is_one_line() {
    const WRITES: &str = "CreateBucket DeleteBucket DeleteMany Put Delete BeginUpload PutPart \
        CompleteUpload AbortUpload";
    for role in [Role::Admin, Role::Viewer] {
        let folder = tempfile::tempdir().unwrap();
        let (log, thread) = AuditLog::open(folder.path()).unwrap();
        let audit = Some(Arc::new(Audit { log: log.into(), all: true }));
        let app = app(Security { audit, ..guarded(vec![key("aaa", role, &["team"])]) });
        let mut wanted = Vec::new();
        for (action, method, path, query, roles) in ACTIONS {
            let many: &[u8] =
                b"<Delete><Object><Key>x</Key></Object><Object><Key>y/z</Key></Object></Delete>";
            let lists = format!("{action:?}") == "DeleteMany";
            let body = if lists { many } else { b"" };
            let (status, _) = hear(&app, caller("aaa").sign(method, path, query, body)).await;
            let denied = !roles.split(' ').any(|name| name == role.as_str());
            if denied || WRITES.split_whitespace().any(|name| name == format!("{action:?}")) {
                let object = match path.trim_start_matches('/').split_once('/') {
                    _ if lists && !denied => "b/x,b/y/z".to_owned(),
                    Some((bucket, key)) => format!("{bucket}/{key}"),
                    None => "b/".to_owned(),
                };
                wanted.push((format!("{:?}", action.operation()), status, object));
            }
        }
        // Whoever is not known is denied as well.
        let (status, _) = hear(&app, caller("nobody").sign("GET", "/b/k", "", b"")).await;
        assert_eq!(status, 403);
        drop(app);
        thread.join().unwrap();
        let text = std::fs::read_to_string(folder.path().join("00000001.log")).unwrap();
        let lines = text.lines().skip(1).map(|line| serde_json::from_str(&line[65..]).unwrap());
        let mut records: Vec<Record> = lines.collect();
        let stranger = records.pop().unwrap();
        assert_eq!((stranger.action.as_str(), stranger.principal), ("unknown", None));
        for record in &records {
            assert_eq!(record.principal.as_deref(), Some("s3-ci"), "{record:?}");
            assert_eq!(record.role.as_deref(), Some(role.as_str()), "{record:?}");
            let let_in = record.status != 403;
            assert!(!let_in || record.namespace.as_deref() == Some("team"), "{record:?}");
        }
        let told =
            |one: &Record| (one.action.clone(), one.status, one.object.clone().unwrap_or_default());
        assert_eq!(records.iter().map(told).collect::<Vec<_>>(), wanted, "{role:?}");
    }
}
