//! The client door over real sockets, with the real client.

use std::time::Duration;

use ikada_api::Client;
use ikada_api::client::{ClientOptions, Error};
use ikada_api::v1::{ClaimRequest, NewTask, Number, OutcomeKind};
use ikada_replica::call::{Answer, Outcome, Unavailable};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::door::{FakeDoor, Script};
use crate::admission::Admission;
use crate::http::{HttpLimits, Security, serve};

pub(super) struct Server {
    pub(super) door: FakeDoor,
    pub(super) address: String,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Server {
    pub(super) async fn start(limits: HttpLimits) -> Server {
        Server::guarded(limits, Security::default()).await
    }

    pub(super) async fn guarded(limits: HttpLimits, security: Security) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let door = FakeDoor::new();
        let (stop, stopped) = oneshot::channel();
        let served = door.clone();
        let task = tokio::spawn(async move {
            serve(served, listener, limits, security, Admission::open(), async {
                drop(stopped.await)
            })
            .await;
        });
        Server { door, address, stop: Some(stop), task }
    }

    pub(super) fn client(&self) -> Client {
        Client::new([&self.address]).unwrap()
    }

    pub(super) async fn stop(mut self) {
        drop(self.stop.take());
        self.task.await.unwrap();
    }

    pub(super) async fn raw(&self, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(&self.address).await.unwrap();
        // The server may close before it has read everything; what it says still counts.
        let _ = stream.write_all(request).await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        String::from_utf8_lossy(&answer).into_owned()
    }
}

fn task(id: &str) -> NewTask {
    NewTask { id: Some(id.to_owned()), ..NewTask::default() }
}

#[tokio::test]
async fn the_client_works_a_task_through() {
    let server = Server::start(HttpLimits::default()).await;
    let client = server.client();
    let answer = client.enqueue(vec![task("a")]).await.unwrap();
    assert_eq!(answer.tasks[0].outcome, OutcomeKind::Created);
    let claim = ClaimRequest {
        holds: Vec::new(),
        labels: Default::default(),
        worker: "w".into(),
        session: Number(1),
        queues: vec!["default".into()],
        count_max: 5,
        wait_ms: 100,
    };
    let claimed = client.claim(&claim).await.unwrap().tasks;
    assert_eq!(claimed[0].id, "a");
    assert_eq!(client.task("a").await.unwrap().worker.as_deref(), Some("w"));
    assert_eq!(client.task("b").await.unwrap_err().code(), Some("task_not_found"));
    assert_eq!(client.cluster().await.unwrap().members.len(), 3);
    assert_eq!(client.node().await.unwrap().node, Number(1));
    server.stop().await;
}

// TQ-21: the first answers are lost, unknown or unavailable; the client settles it under one key.
#[tokio::test]
async fn tq_21_the_client_resends_until_it_is_settled() {
    let server = Server::start(HttpLimits::default()).await;
    server.door.answer_next(Answer::Written(vec![Outcome::Unknown]));
    server.door.answer_next(Answer::Unavailable(Unavailable::Stopping));
    server.door.script(Script::Panic);
    let client = server.client();
    let answer = client.enqueue_as("k1", vec![task("a")]).await.unwrap();
    assert_eq!(answer.tasks[0].outcome, OutcomeKind::Created);
    assert_eq!(client.queue("default").await.unwrap().counts.submitted_total, 1);
    server.stop().await;
}

#[tokio::test]
async fn an_open_end_is_unknown_and_a_closed_door_is_unavailable() {
    let server = Server::start(HttpLimits::default()).await;
    for _ in 0..200 {
        server.door.answer_next(Answer::Written(vec![Outcome::Unknown]));
    }
    let options = ClientOptions { timeout: Duration::from_millis(300), ..ClientOptions::default() };
    let client = Client::with([&server.address], options).unwrap();
    match client.enqueue_as("k1", vec![task("a")]).await.unwrap_err() {
        Error::Unknown { request, .. } => assert_eq!(request, "k1"),
        other => panic!("{other:?}"),
    }
    let address = server.address.clone();
    server.stop().await;
    // Another client: on the old connection a call may have been sent before its end was seen.
    let options = ClientOptions { timeout: Duration::from_millis(300), ..ClientOptions::default() };
    let client = Client::with([&address], options).unwrap();
    let error = client.enqueue(vec![task("a")]).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
}

#[tokio::test]
async fn the_client_finds_a_node_that_works() {
    let server = Server::start(HttpLimits::default()).await;
    // A port that nobody listens on: bound once, then free again.
    let dead = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().to_string();
    let client = Client::new([&dead, &server.address]).unwrap();
    client.enqueue(vec![task("a")]).await.unwrap();
    server.stop().await;
}

// X7
#[tokio::test]
async fn broken_clients_harm_nobody() {
    let limits = HttpLimits { head_timeout: Duration::from_millis(200), ..HttpLimits::default() };
    let server = Server::start(limits).await;
    assert_eq!(server.raw(b"GET /v1/tas").await, "", "half a head is closed at its time");
    let big =
        format!("GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: {}\r\n\r\n", "y".repeat(20 << 10));
    let answer = server.raw(big.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
    let answer = server.raw(b"\x16\x03\x01 nonsense\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    let announced =
        b"POST /v1/tasks HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99999999999\r\n\r\n";
    assert!(server.raw(announced).await.starts_with("HTTP/1.1 413"));
    assert_eq!(server.client().queues().await.unwrap().queues.len(), 0);
    server.stop().await;
}

#[tokio::test]
async fn one_connection_too_many_is_told_so() {
    let server = Server::start(HttpLimits { connections_max: 1, ..HttpLimits::default() }).await;
    let mut first = TcpStream::connect(&server.address).await.unwrap();
    // Known by what it asks; a stranger would have to make room.
    first.write_all(b"GET /v1/queues HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let mut byte = [0];
    first.read_exact(&mut byte).await.unwrap();
    assert!(server.raw(b"").await.starts_with("HTTP/1.1 503"));
    drop(first);
    server.stop().await;
}

#[tokio::test]
async fn events_stream_until_the_door_closes() {
    let server = Server::start(HttpLimits::default()).await;
    let mut stream = TcpStream::connect(&server.address).await.unwrap();
    let request =
        b"GET /v1/cluster/events HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let (mut heard, mut piece) = (String::new(), [0; 4096]);
    while !heard.contains(": role changes") {
        let count = stream.read(&mut piece).await.unwrap();
        heard.push_str(&String::from_utf8_lossy(&piece[..count]));
    }
    assert!(heard.contains("text/event-stream"), "{heard}");
    server.stop().await;
    let rest = stream.read_to_end(&mut Vec::new()).await;
    assert!(rest.is_ok(), "the stream ends in good order");
}

/// One request with a body of so many bytes to a route that is not there.
fn lost(bytes: usize) -> Vec<u8> {
    let head =
        format!("POST /v1/nowhere HTTP/1.1\r\nhost: localhost\r\ncontent-length: {bytes}\r\n\r\n");
    [head.as_bytes(), &vec![b'x'; bytes]].concat()
}

/// Reads one answer without its body.
async fn head_of(stream: &mut BufReader<TcpStream>) -> String {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(stream.read_line(&mut head).await.unwrap(), 0, "closed after {head:?}");
    }
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    stream.read_exact(&mut body).await.unwrap();
    head
}

// F-32: whoever is turned away hears it before its body has come.
#[tokio::test]
async fn f_32_a_refusal_waits_for_no_body() {
    let server = Server::start(HttpLimits::default()).await;
    let mut stream = BufReader::new(TcpStream::connect(&server.address).await.unwrap());
    let whole = lost(300_000);
    let (first, rest) = whole.split_at(1_000);
    stream.get_mut().write_all(first).await.unwrap();
    let head = head_of(&mut stream).await;
    assert!(head.starts_with("HTTP/1.1 404") && !head.contains("connection: close"), "{head}");
    stream.get_mut().write_all(rest).await.unwrap();
    stream.get_mut().write_all(&lost(1)).await.unwrap();
    assert!(head_of(&mut stream).await.starts_with("HTTP/1.1 404"), "the connection goes on");
    server.stop().await;
}

// F-32: a call that is turned away unread costs its caller no connection.
#[tokio::test]
async fn f_32_a_connection_outlives_a_body_that_nobody_read() {
    let server = Server::start(HttpLimits::default()).await;
    let mut stream = BufReader::new(TcpStream::connect(&server.address).await.unwrap());
    for bytes in [1 << 20, 300_000, 1] {
        stream.get_mut().write_all(&lost(bytes)).await.unwrap();
        let head = head_of(&mut stream).await;
        assert!(head.starts_with("HTTP/1.1 404"), "{head}");
        assert!(!head.contains("connection: close"), "{head}");
    }
    // Too long to be read for nothing: the caller is told that it has to connect again.
    let asked = format!(
        "POST /v1/nowhere HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n",
        (1 << 20) + 1
    );
    stream.get_mut().write_all(asked.as_bytes()).await.unwrap();
    let head = head_of(&mut stream).await;
    assert!(head.starts_with("HTTP/1.1 404") && head.contains("connection: close"), "{head}");
    // Whoever asks first is not asked for the body.
    let mut stream = BufReader::new(TcpStream::connect(&server.address).await.unwrap());
    let asked = b"POST /v1/nowhere HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\ncontent-length: 9\r\n\r\n";
    stream.get_mut().write_all(asked).await.unwrap();
    let head = head_of(&mut stream).await;
    assert!(head.starts_with("HTTP/1.1 404") && head.contains("connection: close"), "{head}");
    server.stop().await;
}
