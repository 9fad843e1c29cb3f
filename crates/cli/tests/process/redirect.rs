//! Callers that want to be sent to the leader instead of having their calls forwarded.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::cluster::Cluster;

/// An answer as it came.
struct Heard {
    status: u16,
    location: Option<String>,
    body: String,
}

/// Sends one call that shall not be forwarded.
fn send(address: &str, path: &str, body: &str) -> Heard {
    let mut stream = TcpStream::connect(address).expect("a connection");
    let length = body.len();
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\nikada-routing: redirect\r\nidempotency-key: once\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    let location = head.lines().find_map(|line| line.strip_prefix("location: "));
    Heard { status, location: location.map(str::to_owned), body: body.to_owned() }
}

// B4-53, B4-55, B4-56: only the leader answers; the others name it with the whole path, and the body is taken there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b4_53_b4_56_a_write_is_sent_to_the_leader_with_its_body() {
    let cluster = Cluster::start_with(1).await;
    let leader = cluster.settle().await[&0];
    let (path, body) = ("/v1/tasks", r#"{"id": "once", "payload": "kept"}"#);
    for id in 1..=3 {
        let own = cluster.node(id).url.clone();
        let address = own.trim_start_matches("http://").to_owned();
        let heard = tokio::task::spawn_blocking(move || send(&address, path, body)).await;
        let heard = heard.expect("joined");
        if id == leader {
            assert!((200..300).contains(&heard.status), "{} {}", heard.status, heard.body);
            continue;
        }
        assert_eq!(heard.status, 307, "{}", heard.body);
        let location = heard.location.expect("a location");
        assert_eq!(location, format!("{}{path}", cluster.node(leader).url));
        let address = location.trim_start_matches("http://").split('/').next().expect("a host");
        let address = address.to_owned();
        let sent = tokio::task::spawn_blocking(move || send(&address, path, body)).await;
        let sent = sent.expect("joined");
        assert!((200..300).contains(&sent.status), "{} {}", sent.status, sent.body);
    }
    let task = cluster.client().task("once").await.expect("it is there");
    assert_eq!(task.id, "once");
}
