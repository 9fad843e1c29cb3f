//! Floods over real sockets: whoever is slow, idle or rude loses its own connection, and others are served (X7).

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::HttpLimits;
use super::roles::guarded;
use super::socket::Server;

const HEALTH: &[u8] = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";

fn impatient() -> HttpLimits {
    HttpLimits { head_timeout: Duration::from_millis(300), ..HttpLimits::default() }
}

async fn connect(server: &Server) -> TcpStream {
    TcpStream::connect(&server.address).await.unwrap()
}

/// What the server says until it closes the connection.
async fn last_words(mut stream: TcpStream) -> String {
    let mut said = Vec::new();
    let _ = stream.read_to_end(&mut said).await;
    String::from_utf8_lossy(&said).into_owned()
}

#[tokio::test]
async fn x_7_slow_heads_lose_their_connections_and_others_are_served() {
    let server = Server::guarded(impatient(), guarded()).await;
    let mut slow = Vec::new();
    for _ in 0..300 {
        let mut stream = connect(&server).await;
        stream.write_all(b"GET /v1/tasks HTTP/1.1\r\nx-slow: ").await.unwrap();
        slow.push(stream);
    }
    assert!(server.raw(HEALTH).await.starts_with("HTTP/1.1 200"), "others are served meanwhile");
    // A byte now and then does not help.
    for stream in &mut slow {
        let _ = stream.write_all(b"a").await;
    }
    for stream in slow {
        assert!(!last_words(stream).await.contains(" 200 "));
    }
    server.stop().await;
}

#[tokio::test]
async fn x_7_idle_connections_are_closed() {
    let server = Server::guarded(impatient(), guarded()).await;
    let mut idle = Vec::new();
    for _ in 0..200 {
        idle.push(connect(&server).await);
    }
    let mut kept = connect(&server).await;
    kept.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    assert!(last_words(kept).await.starts_with("HTTP/1.1 200"), "and then it idles, too");
    for stream in idle {
        last_words(stream).await;
    }
    server.stop().await;
}

#[tokio::test]
async fn x_7_strangers_cannot_make_the_node_read_a_body() {
    let server = Server::guarded(HttpLimits::default(), guarded()).await;
    let head = b"POST /v1/tasks HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1073741824\r\n\r\n";
    let mut stream = connect(&server).await;
    stream.write_all(head).await.unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 401", "answered by the head alone");
    server.stop().await;
}

#[tokio::test]
async fn x_7_long_heads_and_paths_are_refused() {
    let server = Server::guarded(HttpLimits::default(), guarded()).await;
    let long = "a".repeat(20 << 10);
    let head = format!("GET /healthz HTTP/1.1\r\nhost: localhost\r\nx-long: {long}\r\n\r\n");
    assert!(server.raw(head.as_bytes()).await.starts_with("HTTP/1.1 431"));
    let path = "a".repeat(9 << 10);
    let head = format!("GET /{path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    assert!(server.raw(head.as_bytes()).await.starts_with("HTTP/1.1 414"));
    server.stop().await;
}

#[tokio::test]
async fn x_7_one_address_leaves_room_for_others_and_gets_its_places_back() {
    let limits = HttpLimits { connections_per_address_max: 3, ..HttpLimits::default() };
    let server = Server::start(limits).await;
    let mut held = Vec::new();
    for _ in 0..3 {
        let mut stream = connect(&server).await;
        // Whoever asks for more than health is known to a node that asks for no tokens.
        stream.write_all(b"GET /v1/queues HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
        stream.read_exact(&mut [0; 12]).await.unwrap();
        held.push(stream);
    }
    assert!(server.raw(HEALTH).await.starts_with("HTTP/1.1 503"));
    drop(held);
    while !server.raw(HEALTH).await.starts_with("HTTP/1.1 200") {
        tokio::task::yield_now().await;
    }
    server.stop().await;
}

#[tokio::test]
async fn x_7_strangers_do_not_fill_the_door() {
    let limits = HttpLimits { connections_max: 8, ..HttpLimits::default() };
    let server = Server::guarded(limits, guarded()).await;
    let mut idle = Vec::new();
    for _ in 0..8 {
        idle.push(connect(&server).await);
    }
    // Idle connections come without end; whoever asks is served all the same.
    for _ in 0..20 {
        assert!(server.raw(HEALTH).await.starts_with("HTTP/1.1 200"));
        idle.push(connect(&server).await);
    }
    let first = idle.swap_remove(0);
    assert_eq!(last_words(first).await, "", "the oldest had to go, long before its time");
    server.stop().await;
}

// X7: rapid resets and empty frames need HTTP/2: a caller that begins with it is refused, asked for or not.
#[tokio::test]
async fn x_7_http_2_is_refused_by_its_first_words() {
    let server = Server::guarded(HttpLimits::default(), guarded()).await;
    // Its preface, settings, then streams that are opened and reset, and data without any.
    let mut rude = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec();
    for stream in (1..2_001_u32).step_by(2) {
        let id = stream.to_be_bytes();
        rude.extend([&[0, 0, 1, 1, 4][..], &id, &[0x82]].concat());
        rude.extend([&[0, 0, 0, 0, 0][..], &id].concat());
        rude.extend([&[0, 0, 4, 3, 0][..], &id, &[0, 0, 0, 8]].concat());
    }
    let mut stream = connect(&server).await;
    let _ = stream.write_all(&rude).await;
    let said = last_words(stream).await;
    assert!(said.is_empty() || said.starts_with("HTTP/1.1 4"), "{said:?}");
    let upgrade = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade, http2-settings, close\r\n\
        upgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAAP__\r\n\r\n";
    let said = server.raw(upgrade).await;
    assert!(said.starts_with("HTTP/1.1 200"), "it stays with what it speaks: {said:?}");
    assert!(server.raw(HEALTH).await.starts_with("HTTP/1.1 200"), "others are served");
    server.stop().await;
}
