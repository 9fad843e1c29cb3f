//! What a page of another site makes a browser send reaches nothing, on every route (X14).

use std::sync::atomic::Ordering;

use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use ikada_api::routes::{ROUTES, Role, Route, Verb};

use super::Bench;
use super::roles::{guarded, make_token};
use super::socket::Server;
use crate::http::dispatch::answer;
use crate::http::{HttpLimits, Security};

/// What the browser adds, by the attack.
type Attack = (&'static str, &'static [(&'static str, &'static str)]);

const OWN: (&str, &str) = ("host", "127.0.0.1:7400");
const REBOUND: (&str, &str) = ("host", "evil.example:7400");

/// The node of these tests is reached by clients at 10.0.0.1:7400.
const ATTACKS: &[Attack] = &[
    (
        "a form",
        &[
            OWN,
            ("origin", "https://evil.example"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-mode", "navigate"),
            ("sec-fetch-dest", "document"),
            ("content-type", "application/x-www-form-urlencoded"),
        ],
    ),
    ("a form of an older browser", &[OWN, ("origin", "https://evil.example")]),
    (
        "fetch",
        &[
            OWN,
            ("origin", "https://evil.example"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-mode", "cors"),
            ("sec-fetch-dest", "empty"),
        ],
    ),
    (
        "an image",
        &[
            OWN,
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-mode", "no-cors"),
            ("sec-fetch-dest", "image"),
        ],
    ),
    (
        "a frame",
        &[
            OWN,
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-mode", "navigate"),
            ("sec-fetch-dest", "iframe"),
        ],
    ),
    (
        "another port of this machine",
        &[OWN, ("origin", "http://127.0.0.1:3000"), ("sec-fetch-site", "same-site")],
    ),
    ("another scheme with our name inside", &[OWN, ("origin", "ftp://127.0.0.1:7400")]),
    (
        "our name as the beginning of another",
        &[OWN, ("origin", "http://127.0.0.1:7400.evil.example")],
    ),
    ("our name as the user of another", &[OWN, ("origin", "http://127.0.0.1:7400@evil.example")]),
    ("a page without an origin", &[OWN, ("origin", "null")]),
    ("a word that no browser sends", &[OWN, ("sec-fetch-site", "same-origin, cross-site")]),
    ("a rebound name", &[("host", "evil.example:7400"), ("origin", "http://evil.example:7400")]),
    (
        "a rebound name that only looks",
        &[("host", "evil.example:7400"), ("sec-fetch-site", "same-origin")],
    ),
    ("a rebound name typed in", &[("host", "evil.example:7400"), ("sec-fetch-site", "none")]),
    (
        "a rebound name like an address",
        &[("host", "127.0.0.1.evil.example:7400"), ("sec-fetch-site", "same-origin")],
    ),
    ("a rebound name like ours", &[("host", "localhost.evil.example"), ("sec-fetch-site", "none")]),
    ("a rebound name of an older browser", &[("host", "evil.example:7400")]),
    (
        "a rebound name with a token of its own making",
        &[("host", "evil.example"), ("authorization", "Bearer x")],
    ),
    ("no host", &[("origin", "http://127.0.0.1:7400")]),
    ("an empty host", &[("host", ""), ("origin", "http://")]),
];

fn path(route: &Route) -> String {
    let words = route.path.split('/').map(|word| if word.starts_with('{') { "x1" } else { word });
    words.collect::<Vec<_>>().join("/")
}

#[tokio::test]
async fn x_14_pages_of_other_sites_reach_no_route() {
    let bench = Bench::new();
    let before = bench.door().log_end();
    let mut cases = 0;
    for route in ROUTES {
        for (name, headers) in ATTACKS {
            let heard = bench.send(route.verb.as_str(), &path(route), headers, "{}").await;
            let what = format!("{name}: {:?}", route.operation);
            assert_eq!(
                (heard.status.as_u16(), heard.code().as_str()),
                (403, "foreign_origin"),
                "{what}"
            );
            cases += 1;
        }
    }
    assert!(cases > 1_000, "{cases}");
    assert_eq!(bench.door().log_end(), before, "something was written");
}

#[tokio::test]
async fn x_14_nobody_is_given_leave_by_a_question_beforehand() {
    let bench = Bench::new();
    let asks = [
        OWN,
        ("origin", "https://evil.example"),
        ("access-control-request-method", "DELETE"),
        ("access-control-request-headers", "authorization"),
    ];
    for path in ["/v1/queues/q/purge", "/v1/cluster/nodes/2", "/", "/v1/nothing"] {
        let heard = bench.send("OPTIONS", path, &asks, "").await;
        assert_eq!(heard.status, 403, "{path}");
        let leave = heard.headers.keys().find(|name| name.as_str().starts_with("access-control"));
        assert_eq!(leave, None, "{path}");
    }
}

#[tokio::test]
async fn x_14_a_page_opens_no_pipe() {
    let server = Server::start(HttpLimits::default()).await;
    let open = |origin: &str| {
        format!(
            "GET /v1/pipe HTTP/1.1\r\nhost: {}\r\nconnection: upgrade, close\r\nupgrade: ikada-pipe\r\n{origin}\r\n",
            server.address
        )
    };
    for origin in
        ["origin: https://evil.example\r\n", "origin: null\r\n", "sec-fetch-site: cross-site\r\n"]
    {
        let told = server.raw(open(origin).as_bytes()).await;
        assert!(told.starts_with("HTTP/1.1 403 "), "{origin}: {told}");
    }
    server.stop().await;
}

#[tokio::test]
async fn x_14_looking_changes_nothing() {
    let bench = Bench::new();
    bench.post("/v1/tasks", "{\"id\": \"x1\", \"queue\": \"x1\"}").await;
    let before = bench.door().log_end();
    for route in ROUTES.iter().filter(|route| route.verb == Verb::Get) {
        let request = Request::builder().method("GET").uri(path(route));
        // Its body is left unread: streams have no end.
        answer(&bench.app, request.body(Full::new(Bytes::new())).unwrap()).await;
        assert_eq!(bench.door().log_end(), before, "{:?}", route.operation);
    }
}

#[tokio::test]
async fn x_14_a_rebound_name_reaches_nothing_where_tokens_are_asked_for() {
    let bench = Bench::guarded(HttpLimits::default(), guarded());
    let denied = || bench.app.counters.denied.load(Ordering::Relaxed);
    for route in ROUTES {
        let before = denied();
        let heard = bench.send(route.verb.as_str(), &path(route), &[REBOUND], "{}").await;
        assert_eq!((heard.status.as_u16(), denied()), (403, before + 1), "{:?}", route.operation);
    }
    let token = make_token(bench.door(), "ann", Role::Viewer, &[]).await;
    let bearer = format!("Bearer {token}");
    let known = [REBOUND, ("authorization", bearer.as_str())];
    let heard = bench.send("GET", "/v1/whoami", &known, "").await;
    assert_eq!(heard.status, 200, "a program that shows its token may use any name");
    let before = denied();
    let forged = [REBOUND, ("authorization", "Bearer ikada_a_b")];
    assert_eq!(bench.send("GET", "/v1/whoami", &forged, "").await.status, 401);
    assert_eq!(bench.send("GET", "/v1/whoami", &[OWN], "").await.status, 401);
    assert_eq!(denied(), before + 2, "with a bad token and with none");
}

#[tokio::test]
async fn x_14_a_refused_name_is_told_with_the_setting_that_allows_it() {
    let heard = Bench::new().send("GET", "/v1/queues", &[REBOUND], "").await;
    let detail = heard.json()["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("evil.example:7400") && detail.contains("--host"), "{detail}");
    let hosts = vec!["evil.example".to_owned()];
    let bench = Bench::guarded(HttpLimits::default(), Security { hosts, ..Security::default() });
    assert_eq!(bench.send("GET", "/v1/queues", &[REBOUND], "").await.status, 200);
}
