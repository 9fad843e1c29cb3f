//! Tokens as a user meets them: made, shown, used on pipes, bound to claims, revoked.

use std::time::Duration;

use ikada_api::Client;
use ikada_api::client::{AccessToken, ClientOptions, Error};
use ikada_api::state::Role;
use ikada_api::v1::{
    ClaimRequest, CompleteItem, CompleteRequest, NewTask, NewToken, Number, OutcomeKind,
};

use super::roles::{guarded, make_token};
use super::socket::Server;
use super::{Bench, HttpLimits};

fn client(server: &Server, token: &str, pipe: bool) -> Client {
    let options =
        ClientOptions { token: AccessToken::parse(token).ok(), pipe, ..ClientOptions::default() };
    Client::with([&server.address], options).unwrap()
}

fn code(error: &Error) -> &str {
    error.code().unwrap_or_else(|| panic!("{error}"))
}

fn claim(wait_ms: u64) -> ClaimRequest {
    ClaimRequest {
        holds: Vec::new(),
        labels: Default::default(),
        worker: "w".into(),
        session: Number(1),
        queues: vec!["default".into()],
        count_max: 5,
        wait_ms,
    }
}

fn task(id: &str) -> NewTask {
    NewTask { id: Some(id.to_owned()), ..NewTask::default() }
}

#[tokio::test]
async fn x_17_tokens_are_made_listed_used_and_revoked() {
    let server = Server::guarded(HttpLimits::default(), guarded()).await;
    let root = make_token(&server.door, "root", Role::Admin, &[]).await;
    let admin = client(&server, &root, true);
    let wanted = NewToken {
        name: "ann".into(),
        role: "viewer".into(),
        namespaces: vec!["blue".into()],
        ttl_ms: Some(0),
        s3: false,
        certificate: None,
    };
    let made = admin.create_token(&wanted).await.unwrap();
    assert!(made.token.starts_with(&format!("ikada_{}_", made.id)));
    assert!(!format!("{made:?}").contains(&made.token));
    let ann = client(&server, &made.token, true);
    let whoami = ann.whoami().await.unwrap();
    assert_eq!((whoami.name.as_str(), whoami.role.as_str()), ("ann", "viewer"));
    assert_eq!(whoami.namespaces, ["blue"]);
    let short = admin.create_token(&NewToken { ttl_ms: None, ..wanted }).await.unwrap();
    let listed = admin.tokens().await.unwrap().tokens;
    let ends = |id: &str| listed.iter().find(|token| token.id == id).unwrap().expires_ms;
    assert_eq!((ends(&made.id), ends(&short.id).is_some()), (None, true));
    assert_eq!(code(&ann.tokens().await.unwrap_err()), "forbidden");
    admin.revoke_token(&made.id).await.unwrap();
    assert_eq!(code(&ann.whoami().await.unwrap_err()), "unauthenticated");
    let last = root.split('_').nth(1).unwrap();
    assert_eq!(code(&admin.revoke_token(last).await.unwrap_err()), "last_admin");
    server.stop().await;
}

// X17: whoever has the secret hears that the time is over; whoever guesses hears nothing of it.
#[tokio::test]
async fn x_17_an_expired_token_is_told_to_its_owner_alone() {
    let bench = Bench::guarded(HttpLimits::default(), guarded());
    let root = make_token(bench.door(), "root", Role::Admin, &[]).await;
    let bearer = |token: &str| format!("Bearer {token}");
    let admin = bearer(&root);
    let body = r#"{"name":"ann","role":"viewer","ttl_ms":1}"#;
    let made = bench.send("POST", "/v1/tokens", &[("authorization", &admin)], body).await;
    let token = made.json()["token"].as_str().unwrap().to_owned();
    let ask = async |token: &str| {
        let heard = bench.send("GET", "/v1/whoami", &[("authorization", &bearer(token))], "").await;
        assert_eq!((heard.status.as_u16(), heard.code().as_str()), (401, "unauthenticated"));
        heard.json()["title"].as_str().unwrap().to_owned()
    };
    assert_eq!(ask(&token).await, "token expired");
    let (front, _) = token.rsplit_once('_').unwrap();
    let guessed = format!("{front}_{}", "0".repeat(64));
    assert_eq!(ask(&guessed).await, "token needed");
}

#[tokio::test]
async fn x_4_every_call_of_a_pipe_is_checked() {
    let server = Server::guarded(HttpLimits::default(), guarded()).await;
    let submitter = make_token(&server.door, "ann", Role::Submitter, &["blue"]).await;
    let worker = make_token(&server.door, "wim", Role::Worker, &["blue"]).await;
    let viewer = make_token(&server.door, "vic", Role::Viewer, &[]).await;
    let ann = client(&server, &submitter, true);
    let made = ann.enqueue(vec![task("a")]).await.unwrap();
    assert_eq!(made.tasks[0].outcome, OutcomeKind::Created);
    assert_eq!(code(&ann.claim(&claim(0)).await.unwrap_err()), "forbidden");
    let options = ClientOptions {
        token: AccessToken::parse(&submitter).ok(),
        namespace: Some("red".into()),
        ..ClientOptions::default()
    };
    let abroad = Client::with([&server.address], options).unwrap();
    let refused = abroad.enqueue(vec![task("b")]).await.unwrap_err();
    assert_eq!(code(&refused), "forbidden_namespace");
    let wim = client(&server, &worker, true);
    assert_eq!(wim.claim(&claim(0)).await.unwrap().tasks.len(), 1);
    assert_eq!(code(&wim.enqueue(vec![task("c")]).await.unwrap_err()), "forbidden");
    let vic = client(&server, &viewer, true);
    assert_eq!(code(&vic.enqueue(vec![task("d")]).await.unwrap_err()), "forbidden");
    let stranger = client(&server, "ikada_a_b", true);
    assert_eq!(code(&stranger.enqueue(vec![task("e")]).await.unwrap_err()), "unauthenticated");
    server.stop().await;
}

#[tokio::test]
async fn x_5_a_claim_belongs_to_the_identity_that_made_it() {
    let server = Server::guarded(HttpLimits::default(), guarded()).await;
    let root = make_token(&server.door, "root", Role::Admin, &[]).await;
    let wim = make_token(&server.door, "wim", Role::Worker, &[]).await;
    let wim_again = make_token(&server.door, "wim", Role::Worker, &[]).await;
    let eve = make_token(&server.door, "eve", Role::Worker, &[]).await;
    for pipe in [false, true] {
        let admin = client(&server, &root, pipe);
        admin.enqueue(vec![task(&format!("t{pipe}"))]).await.unwrap();
        let granted = client(&server, &wim, pipe).claim(&claim(0)).await.unwrap().tasks;
        let (id, fence) = (granted[0].id.clone(), granted[0].fence);
        let item = serde_json::json!({ "id": id, "fence": fence });
        let item: CompleteItem = serde_json::from_value(item).unwrap();
        let report = CompleteRequest { worker: "w".into(), tasks: vec![item], claim: None };
        // The same worker's name, the right fence, another identity: a fence is no credential.
        let stolen = client(&server, &eve, pipe).complete(&report).await.unwrap();
        let problem = stolen.tasks[0].problem.as_ref().unwrap();
        assert_eq!(problem.code, "not_owner");
        // A fresh token of the same identity goes on with its claims.
        let done = client(&server, &wim_again, pipe).complete(&report).await.unwrap();
        assert_eq!(done.tasks[0].outcome, OutcomeKind::Completed);
        let shown = admin.task(&granted[0].id).await.unwrap();
        assert_eq!(shown.attempts[0].worker.as_str(), "wim.w");
    }
    server.stop().await;
}

#[tokio::test]
async fn x_17_a_revoked_pipe_is_closed() {
    let server = Server::guarded(HttpLimits::default(), guarded()).await;
    let root = make_token(&server.door, "root", Role::Admin, &[]).await;
    let wim = make_token(&server.door, "wim", Role::Worker, &[]).await;
    let worker = client(&server, &wim, true);
    worker.claim(&claim(0)).await.unwrap();
    let id = wim.split('_').nth(1).unwrap();
    client(&server, &root, true).revoke_token(id).await.unwrap();
    let refused = worker.with_timeout(Duration::from_secs(5)).claim(&claim(0)).await.unwrap_err();
    assert_eq!(code(&refused), "unauthenticated");
    server.stop().await;
}

#[tokio::test]
async fn x_17_guessing_is_slowed_down_and_others_are_not() {
    let server = Server::guarded(HttpLimits::default(), guarded()).await;
    let root = make_token(&server.door, "root", Role::Admin, &[]).await;
    let mut told = Vec::new();
    for _ in 0..40 {
        let request = b"GET /v1/whoami HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
            authorization: Bearer ikada_0123456789ab_0000\r\n\r\n";
        told.push(server.raw(request).await.split(' ').nth(1).unwrap().to_owned());
    }
    assert_eq!(told.iter().filter(|status| *status == "401").count(), 20);
    assert_eq!(told.iter().filter(|status| *status == "429").count(), 20);
    assert!(client(&server, &root, false).whoami().await.is_ok(), "a good token still counts");
    server.stop().await;
}

#[tokio::test]
async fn x_4_bad_token_orders_name_their_field() {
    let bench = Bench::new();
    for (body, field) in [
        ("{\"name\": \"a.b\", \"role\": \"viewer\"}", "name"),
        ("{\"name\": \"a\", \"role\": \"boss\"}", "role"),
        ("{\"name\": \"a\", \"role\": \"viewer\", \"namespaces\": [\"..\"]}", "namespaces[0]"),
        ("{\"name\": \"a\", \"role\": \"viewer\", \"ttl_ms\": 999999999999999}", "ttl_ms"),
        (
            "{\"name\": \"a\", \"role\": \"viewer\", \"s3\": true, \"namespaces\": [\"b\", \"c\"]}",
            "namespaces",
        ),
    ] {
        let heard = bench.post("/v1/tokens", body).await;
        assert_eq!(heard.status, 400, "{body}");
        assert_eq!(heard.json()["field"], field);
    }
    let whoami = bench.get("/v1/whoami").await.json();
    assert_eq!((&whoami["name"], &whoami["role"]), (&"anyone".into(), &"admin".into()));
}
