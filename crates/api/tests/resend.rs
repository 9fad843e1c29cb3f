//! The client against a server that loses answers: one key, however often it is sent (TQ-20, TQ-21).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ikada_api::Client;
use ikada_api::client::{ClientOptions, Error};
use ikada_api::v1::{NewTask, OutcomeKind};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What the server does with one request.
#[derive(Clone, Copy)]
enum Act {
    /// Reads it and closes the connection.
    Swallow,
    /// Reads it and says nothing more.
    Hang,
    /// Answers with this status and body.
    Say(u16, &'static str),
}

const CREATED: &str = r#"{"request": "k", "tasks": [{"id": "a", "outcome": "created"}]}"#;
const OPEN: &str = r#"{"request": "k", "tasks": [{"id": "a", "outcome": "unknown"}]}"#;

/// Serves one act per request, the last one for ever; collects the requests' heads.
async fn serve(acts: Vec<Act>) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let heads = Arc::new(Mutex::new(Vec::new()));
    let seen = heads.clone();
    tokio::spawn(async move {
        let mut held = Vec::new();
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let head = read_request(&mut stream).await;
            let place = {
                let mut seen = seen.lock().unwrap();
                seen.push(head);
                seen.len() - 1
            };
            match acts[place.min(acts.len() - 1)] {
                Act::Swallow => drop(stream),
                Act::Hang => held.push(stream),
                Act::Say(status, body) => {
                    let length = body.len();
                    let answer = format!(
                        "HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
                    );
                    stream.write_all(answer.as_bytes()).await.unwrap();
                }
            }
        }
    });
    (address, heads)
}

async fn read_request(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                return head.to_owned();
            }
        }
        let mut piece = [0; 4096];
        match stream.read(&mut piece).await {
            Ok(count) if count > 0 => bytes.extend_from_slice(&piece[..count]),
            _ => return String::from_utf8_lossy(&bytes).into_owned(),
        }
    }
}

fn client(urls: &[&String], timeout_ms: u64) -> Client {
    let options = ClientOptions {
        pipe: false,
        timeout: Duration::from_millis(timeout_ms),
        attempt_timeout: Duration::from_millis(timeout_ms / 5),
        namespace: Some("blue".into()),
        ..ClientOptions::default()
    };
    Client::with(urls, options).unwrap()
}

fn task() -> Vec<NewTask> {
    vec![NewTask { id: Some("a".into()), ..NewTask::default() }]
}

#[tokio::test]
async fn a_lost_answer_is_asked_for_again_under_the_same_key() {
    let acts = vec![
        Act::Swallow,
        Act::Say(503, ""),
        Act::Say(504, ""),
        Act::Say(200, OPEN),
        Act::Say(200, CREATED),
    ];
    let (address, heads) = serve(acts).await;
    let answer = client(&[&address], 10_000).enqueue_as("k", task()).await.unwrap();
    assert_eq!(answer.tasks[0].outcome, OutcomeKind::Created);
    let heads = heads.lock().unwrap();
    assert_eq!(heads.len(), 5);
    for head in heads.iter() {
        assert!(head.contains("idempotency-key: k"), "{head}");
        assert!(head.contains("ikada-namespace: blue"), "{head}");
        assert!(head.contains("ikada-timeout-ms: "), "{head}");
    }
}

#[tokio::test]
async fn a_node_that_hangs_does_not_use_up_the_time() {
    let (hung, _) = serve(vec![Act::Hang]).await;
    let (good, _) = serve(vec![Act::Say(200, CREATED)]).await;
    let answer = client(&[&hung, &good], 10_000).enqueue_as("k", task()).await.unwrap();
    assert_eq!(answer.tasks[0].outcome, OutcomeKind::Created);
}

#[tokio::test]
async fn the_end_of_the_time_tells_unknown_from_unavailable() {
    let (swallows, _) = serve(vec![Act::Swallow]).await;
    let error = client(&[&swallows], 300).enqueue_as("k7", task()).await.unwrap_err();
    assert!(matches!(&error, Error::Unknown { request, .. } if request == "k7"), "{error:?}");
    let (refuses, _) = serve(vec![Act::Say(503, "")]).await;
    let error = client(&[&refuses], 300).enqueue_as("k7", task()).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
    // A read leaves nothing open.
    let error = client(&[&swallows], 300).task("a").await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
}

#[tokio::test]
async fn a_refusal_is_final() {
    let (address, heads) = serve(vec![Act::Say(
        409,
        r#"{"type":"t","title":"t","status":409,"detail":"d","code":"conflict"}"#,
    )])
    .await;
    let error = client(&[&address], 10_000).enqueue_as("k", task()).await.unwrap_err();
    assert_eq!(error.code(), Some("conflict"));
    assert_eq!(heads.lock().unwrap().len(), 1);
    let (odd, _) = serve(vec![Act::Say(200, "<html>")]).await;
    let error = client(&[&odd], 10_000).task("a").await.unwrap_err();
    assert!(matches!(error, Error::Protocol { .. }), "{error:?}");
}
