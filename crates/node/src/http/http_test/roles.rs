//! Every route times every role and none, generated from the route table (X4, X5, X19).

use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::{Request, StatusCode};
use ikada_api::routes::{Access, Operation, ROUTES, Role, Route, Scope, Verb};
use ikada_api::state::{AddToken, Command, Namespace, Order, PrincipalName};
use ikada_replica::call::{self, Routing};

use super::Bench;
use crate::auth::{Gatekeeper, TokenText, digest};
use crate::http::dispatch::answer;
use crate::http::door::Door;
use crate::http::{HttpLimits, Security};

/// A door that asks for tokens.
pub(super) fn guarded() -> Security {
    Security { gatekeeper: Some(Arc::new(Gatekeeper::default())), ..Security::default() }
}

/// Makes a token behind the door; gives its text.
pub(super) async fn make_token(
    door: &impl Door,
    name: &str,
    role: Role,
    namespaces: &[&str],
) -> String {
    let token = TokenText::draw().unwrap();
    let add = AddToken {
        id: token.id.clone(),
        name: PrincipalName::parse(name).unwrap(),
        digest: digest(&token.secret),
        role,
        namespaces: namespaces.iter().map(|name| Namespace::parse(name).unwrap()).collect(),
        ttl_ms: 0,
        first: false,
    };
    let namespace = Namespace::default();
    let order = Order { namespace, request: None, command: Command::AddToken(add) };
    let write = call::Request::Write(vec![order]);
    door.call(write, Duration::from_secs(1), Routing::Forward).await;
    token.reveal().reveal().to_owned()
}

fn method(route: &Route) -> &'static str {
    route.verb.as_str()
}

fn path(route: &Route) -> String {
    let words = route.path.split('/').map(|word| if word.starts_with('{') { "x1" } else { word });
    words.collect::<Vec<_>>().join("/")
}

/// The status of a request, without reading its body: streams have no end.
async fn status_of(
    bench: &Bench,
    route: &Route,
    query: &str,
    headers: &[(&str, &str)],
) -> StatusCode {
    let uri = format!("{}{query}", path(route));
    let mut request = Request::builder().method(method(route)).uri(uri);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Full::new(bytes::Bytes::from_static(b"{}"))).unwrap();
    answer(&bench.app, request).await.status()
}

#[tokio::test]
async fn x_4_every_route_lets_in_exactly_the_roles_of_its_policy() {
    for role in Role::ALL {
        let bench = Bench::guarded(HttpLimits::default(), guarded());
        let token = make_token(bench.door(), "ann", role, &[]).await;
        let bearer = format!("Bearer {token}");
        for route in ROUTES {
            for accept in ["application/json", "text/event-stream"] {
                let headers = [("authorization", bearer.as_str()), ("accept", accept)];
                let status = status_of(&bench, route, "", &headers).await;
                let forbidden = status == StatusCode::FORBIDDEN;
                assert_ne!(status, StatusCode::UNAUTHORIZED, "{role:?} {:?}", route.operation);
                let admitted = route.policy.admits(role);
                assert_eq!(forbidden, !admitted, "{role:?} {:?}: {status}", route.operation);
            }
        }
    }
}

#[tokio::test]
async fn x_19_strangers_are_told_nothing_but_that_the_process_lives() {
    let bench = Bench::guarded(HttpLimits::default(), guarded());
    let forged = TokenText::draw().unwrap().reveal();
    let forged = format!("Bearer {}", forged.reveal());
    let basic = [("authorization", "Basic YTpi")];
    let bad: [&[(&str, &str)]; 4] =
        [&[], &[("authorization", &forged)], &basic, &[("authorization", "Bearer")]];
    for headers in bad {
        for route in ROUTES {
            let status = status_of(&bench, route, "", headers).await;
            let open = route.policy.access == Access::Anyone;
            let wanted = match route.operation {
                Operation::Health => StatusCode::OK,
                // Files that are the same for everyone.
                Operation::Dashboard if route.path == "/" => StatusCode::OK,
                Operation::Dashboard => StatusCode::NOT_FOUND,
                _ => StatusCode::UNAUTHORIZED,
            };
            assert_eq!(open, wanted != StatusCode::UNAUTHORIZED);
            assert_eq!(status, wanted, "{:?} {headers:?}", route.operation);
        }
        for path in ["/v1", "/v1/nothing", "/metrics/x"] {
            let heard = bench.send("GET", path, headers, "").await;
            assert_eq!(heard.code(), "unauthenticated", "{path}");
            assert_eq!(heard.header("www-authenticate"), "Bearer");
        }
    }
}

#[tokio::test]
async fn x_1_a_port_that_nothing_protects_shows_in_the_metrics() {
    for insecure in [false, true] {
        let security = Security { insecure, ..Security::default() };
        let page = Bench::guarded(HttpLimits::default(), security).get("/metrics").await;
        let wanted = format!("\nikada_insecure {}\n", u8::from(insecure));
        assert!(String::from_utf8_lossy(&page.body).contains(&wanted), "{wanted}");
    }
}

#[tokio::test]
async fn x_5_a_bound_token_reaches_no_other_namespace() {
    let mut cases = 0;
    for role in Role::ALL {
        let bench = Bench::guarded(HttpLimits::default(), guarded());
        let token = make_token(bench.door(), "ann", role, &["blue", "green"]).await;
        let bearer = format!("Bearer {token}");
        for route in ROUTES {
            if !route.policy.admits(role) || route.policy.scope == Scope::Nothing {
                continue;
            }
            let own = [("authorization", bearer.as_str()), ("ikada-namespace", "blue")];
            let reached = status_of(&bench, route, "", &own).await;
            let is_cluster = route.policy.scope == Scope::Cluster;
            assert_eq!(reached == StatusCode::FORBIDDEN, is_cluster, "{:?}", route.operation);
            for other in ["red", "default", "blue2"] {
                let by_header = [("authorization", bearer.as_str()), ("ikada-namespace", other)];
                let status = status_of(&bench, route, "", &by_header).await;
                assert_eq!(status, StatusCode::FORBIDDEN, "{role:?} {:?}", route.operation);
                let by_query = [("authorization", bearer.as_str())];
                let query = format!("?namespace={other}");
                let status = status_of(&bench, route, &query, &by_query).await;
                assert_eq!(status, StatusCode::FORBIDDEN, "{role:?} {:?}", route.operation);
                cases += 2;
            }
        }
    }
    assert!(cases >= 200, "{cases} cases");
}

// X5: a namespace comes from the credential and the call, never from an item of a list.
#[tokio::test]
async fn x_5_an_item_of_a_list_cannot_name_another_namespace() {
    let bench = Bench::guarded(HttpLimits::default(), guarded());
    let bearer = |token: String| format!("Bearer {token}");
    let root = bearer(make_token(bench.door(), "root", Role::Admin, &[]).await);
    let root = [("authorization", root.as_str())];
    bench.send("POST", "/v1/tasks?namespace=red", &root, "{\"id\": \"victim\"}").await;
    let claim = "{\"worker\": \"w\", \"queues\": [\"default\"]}";
    let claimed = bench.send("POST", "/v1/tasks/claim?namespace=red", &root, claim).await;
    assert_eq!(claimed.status, StatusCode::OK);
    let ann = bearer(make_token(bench.door(), "ann", Role::Operator, &["blue"]).await);
    let tasks = r#"{"tasks": [{"id": "good"}, {"id": "bad", "namespace": "red"},
        {"id": "worse", "then": [{"queue": "q", "namespace": "red"}]}]}"#;
    let sent = bench.send("POST", "/v1/tasks", &[("authorization", ann.as_str())], tasks).await;
    let said = String::from_utf8_lossy(&sent.body);
    assert_eq!(said.matches("unknown field `namespace`").count(), 2, "{said}");
    for (id, namespace, there) in [
        ("good", "blue", true),
        ("good", "red", false),
        ("bad", "blue", false),
        ("bad", "red", false),
        ("worse", "blue", false),
    ] {
        let path = format!("/v1/tasks/{id}?namespace={namespace}");
        let found = bench.send("GET", &path, &root, "").await.status == StatusCode::OK;
        assert_eq!(found, there, "{id} in {namespace}");
    }
    let eve = bearer(make_token(bench.door(), "eve", Role::Worker, &["blue"]).await);
    let item = r#"{"id": "victim", "fence": "1", "namespace": "red"}"#;
    for path in ["/v1/tasks/complete", "/v1/tasks/fail", "/v1/tasks/renew"] {
        let list = format!("{{\"worker\": \"w\", \"tasks\": [{item}]}}");
        let sent = bench.send("POST", path, &[("authorization", eve.as_str())], list).await;
        let said = String::from_utf8_lossy(&sent.body);
        assert!(said.contains("unknown field `namespace`"), "{path}: {said}");
    }
    let victim = bench.send("GET", "/v1/tasks/victim?namespace=red", &root, "").await;
    let said = String::from_utf8_lossy(&victim.body);
    assert!(said.contains("\"claimed\""), "nobody else settles it: {said}");
}

#[tokio::test]
async fn x_5_a_token_bound_to_one_namespace_works_there_unasked() {
    let bench = Bench::guarded(HttpLimits::default(), guarded());
    let token = make_token(bench.door(), "ann", Role::Submitter, &["blue"]).await;
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str())];
    let made = bench.send("POST", "/v1/tasks", &headers, "{\"id\": \"a\"}").await;
    assert_eq!(made.status, StatusCode::CREATED);
    let shown = bench.send("GET", "/v1/tasks/a?namespace=blue", &headers, "").await;
    assert_eq!(shown.status, StatusCode::OK);
    let admin = make_token(bench.door(), "root", Role::Admin, &[]).await;
    let admin = format!("Bearer {admin}");
    let headers = [("authorization", admin.as_str())];
    let elsewhere = bench.send("GET", "/v1/tasks/a", &headers, "").await;
    assert_eq!(elsewhere.code(), "task_not_found");
}

#[test]
fn x_4_the_generated_cases_cover_streams_and_every_method() {
    let has = |verb| ROUTES.iter().any(|route| route.verb == verb);
    assert!([Verb::Get, Verb::Post, Verb::Put, Verb::Delete].into_iter().all(has));
    for operation in [Operation::ListEvents, Operation::Metrics, Operation::Pipe] {
        assert!(ROUTES.iter().any(|route| route.operation == operation));
    }
}

// X4, X5: one stream carries what belongs to the cluster and what belongs to a namespace.
#[tokio::test]
async fn x_5_a_live_stream_tells_each_caller_what_it_may_see() {
    let bench = Bench::guarded(HttpLimits::default(), guarded());
    let root = format!("Bearer {}", make_token(bench.door(), "root", Role::Admin, &[]).await);
    for namespace in ["red", "blue"] {
        let path = format!("/v1/tasks?namespace={namespace}");
        let task = format!("{{\"queue\": \"of-{namespace}\"}}");
        let sent = bench.send("POST", &path, &[("authorization", root.as_str())], task).await;
        assert_eq!(sent.status, StatusCode::CREATED);
    }
    for (namespaces, of_cluster) in [(&[][..], true), (&["blue"][..], false)] {
        let token = make_token(bench.door(), "vic", Role::Viewer, namespaces).await;
        let request = Request::get("/v1/live?namespace=blue")
            .header("authorization", format!("Bearer {token}"))
            .header("accept", "text/event-stream")
            .body(Full::<bytes::Bytes>::default())
            .unwrap();
        let mut body = answer(&bench.app, request).await.into_body();
        let mut told = String::new();
        while !told.contains("event: queues") {
            let piece = body.frame().await.unwrap().unwrap().into_data().unwrap();
            told.push_str(std::str::from_utf8(&piece).unwrap());
        }
        assert_eq!(told.contains("event: cluster"), of_cluster, "{namespaces:?}: {told}");
        assert!(of_cluster || !told.contains("event: role"), "{told}");
        assert!(told.contains("of-blue") && !told.contains("of-red"), "{told}");
    }
}
