//! The pipe over real sockets: the real client on it, and clients that misbehave.

use std::time::Duration;

use bytes::{Buf, BytesMut};
use ikada_api::cbor::{from_slice, to_vec};
use ikada_api::pipe::{
    FrontFrame, LENGTH_BYTES, PipeAnswer, PipeAsk, PipeVerb, front_frame, push_frame,
};
use ikada_api::v1::{
    ClaimRequest, CompleteItem, CompleteRequest, EnqueueAnswer, EnqueueBatch, NewProgram, NewTask,
    Number, OutcomeKind, OutcomeList, RawBytes,
};
use ikada_api::{Client, Problem};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use super::socket::Server;
use crate::http::HttpLimits;

const HEAD: &[u8] =
    b"GET /v1/pipe HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: ikada-pipe\r\n\r\n";

pub(super) async fn open(server: &Server) -> TcpStream {
    let mut stream = TcpStream::connect(&server.address).await.unwrap();
    upgrade(&mut stream).await;
    stream
}

async fn upgrade(stream: &mut TcpStream) {
    stream.write_all(HEAD).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    assert!(head.starts_with(b"HTTP/1.1 101 "), "{}", String::from_utf8_lossy(&head));
}

pub(super) fn frame(call: u64, verb: PipeVerb, key: Option<&str>, body: &[u8]) -> Vec<u8> {
    let mut frames = Vec::new();
    let ask = PipeAsk { call, verb, timeout_ms: 5_000, key, namespace: None, body: body.into() };
    push_frame(&mut frames, &ask);
    frames
}

/// Reads one answer: call, status and body.
pub(super) async fn answer(stream: &mut TcpStream) -> (u64, u16, Vec<u8>) {
    let mut buffer = Vec::new();
    loop {
        if let FrontFrame::Whole(message) = front_frame(&buffer, 1 << 20) {
            let answer: PipeAnswer<'_> = minicbor::decode(message).unwrap();
            assert_eq!(message.len() + LENGTH_BYTES, buffer.len(), "one answer at a time");
            return (answer.call, answer.status, answer.body.to_vec());
        }
        buffer.push(stream.read_u8().await.unwrap());
    }
}

fn task(id: &str, payload: &[u8]) -> NewTask {
    let payload_bytes = Some(RawBytes(payload.to_vec()));
    NewTask { id: Some(id.to_owned()), payload_bytes, ..NewTask::default() }
}

// TQ-27: bytes that are no text come back as they went.
#[tokio::test]
async fn tq_27_any_bytes_travel_over_a_pipe() {
    let server = Server::start(HttpLimits::default()).await;
    let mut stream = open(&server).await;
    let payload = b"\x00|\xff";
    let body = to_vec(&EnqueueBatch { tasks: vec![task("a", payload)] }).unwrap();
    stream.write_all(&frame(9, PipeVerb::Enqueue, Some("k"), &body)).await.unwrap();
    let (call, status, body) = answer(&mut stream).await;
    assert_eq!((call, status), (9, 200));
    let enqueued: EnqueueAnswer = from_slice(&body).unwrap();
    assert_eq!(enqueued.request, "k");
    assert_eq!(enqueued.tasks[0].outcome, OutcomeKind::Created);
    let shown = server.client().task("a").await.unwrap();
    assert_eq!(shown.payload().unwrap(), payload);
    server.stop().await;
}

#[tokio::test]
async fn many_calls_share_one_connection() {
    // One connection for the pipe, one for plain calls: a client that opened one per call would be turned away.
    let server = Server::start(HttpLimits { connections_max: 2, ..HttpLimits::default() }).await;
    let client = server.client();
    let calls = (0..500).map(|number| {
        let client: Client = client.clone();
        tokio::spawn(async move {
            client.enqueue(vec![task(&format!("t{number}"), b"x")]).await.unwrap()
        })
    });
    for call in calls.collect::<Vec<_>>() {
        assert_eq!(call.await.unwrap().tasks[0].outcome, OutcomeKind::Created);
    }
    assert_eq!(client.queue("default").await.unwrap().counts.submitted_total, 500);
    server.stop().await;
}

#[tokio::test]
async fn bad_calls_are_answered_and_leave_the_pipe_open() {
    let server = Server::start(HttpLimits::default()).await;
    let mut stream = open(&server).await;
    let cases: [(&[u8], Option<&str>, &str); 4] = [
        (b"\xa1\x64quue\x61a", None, "unknown_field"),
        (b"\xff", None, "bad_cbor"),
        (b"\xa1\x65tasks\x80", None, "bad_count"),
        (b"\xa0", Some("a/b"), "bad_parameter"),
    ];
    for (call, (body, key, code)) in cases.into_iter().enumerate() {
        let call = call as u64;
        stream.write_all(&frame(call, PipeVerb::Enqueue, key, body)).await.unwrap();
        let (answered, status, body) = answer(&mut stream).await;
        let problem: Problem = from_slice(&body).unwrap();
        assert_eq!((answered, status, &*problem.code), (call, 400, code), "{problem:?}");
    }
    // A frame that has a call number and nothing else of use.
    let broken = minicbor::to_vec((77u64, 99u8)).unwrap();
    let mut frames = (broken.len() as u32).to_le_bytes().to_vec();
    frames.extend_from_slice(&broken);
    stream.write_all(&frames).await.unwrap();
    let (call, status, _) = answer(&mut stream).await;
    assert_eq!((call, status), (77, 400));
    server.stop().await;
}

// X7
#[tokio::test]
async fn a_frame_without_end_closes_the_pipe() {
    let server = Server::start(HttpLimits::default()).await;
    let mut stream = open(&server).await;
    stream.write_all(&u32::MAX.to_le_bytes()).await.unwrap();
    assert_eq!(stream.read(&mut [0; 16]).await.unwrap_or(0), 0, "closed");
    assert_eq!(server.client().queues().await.unwrap().queues.len(), 0);
    server.stop().await;
}

#[tokio::test]
async fn the_door_closes_on_idle_pipes_too() {
    let server = Server::start(HttpLimits::default()).await;
    let mut stream = open(&server).await;
    let stopped = tokio::time::timeout(Duration::from_secs(30), server.stop()).await;
    assert!(stopped.is_ok(), "an idle pipe does not hold the door open");
    assert_eq!(stream.read(&mut [0; 16]).await.unwrap_or(0), 0);
}

#[tokio::test]
async fn without_the_upgrade_the_route_says_what_it_wants() {
    let server = Server::start(HttpLimits::default()).await;
    let answer =
        server.raw(b"GET /v1/pipe HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 426"), "{answer}");
    assert!(answer.contains("upgrade_required"), "{answer}");
    let foreign = b"GET /v1/pipe HTTP/1.1\r\nhost: evil.example\r\norigin: http://evil.example\r\nconnection: upgrade, close\r\nupgrade: ikada-pipe\r\n\r\n";
    let answer = server.raw(foreign).await;
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    server.stop().await;
}

#[tokio::test]
async fn cbor_is_spoken_on_plain_routes() {
    let server = Server::start(HttpLimits::default()).await;
    let body = to_vec(&task("a", b"\xff")).unwrap();
    let mut request = format!(
        "POST /v1/tasks HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/cbor\r\ncontent-length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    request.extend_from_slice(&body);
    let answer = server.raw(&request).await;
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    assert!(answer.contains("content-type: application/cbor"), "{answer}");
    let shown = server
        .raw(b"GET /v1/tasks/a HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\naccept: application/cbor\r\n\r\n")
        .await;
    assert!(shown.contains("payload_bytes"), "{shown}");
    let missing = server
        .raw(b"GET /v1/tasks/b HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\naccept: application/cbor\r\n\r\n")
        .await;
    assert!(missing.starts_with("HTTP/1.1 404") && missing.contains("application/cbor"));
    server.stop().await;
}

// X7: whoever sends and never reads is read no further, once its answers fill their bound.
#[tokio::test]
async fn x_7_a_client_that_never_reads_fills_no_memory() {
    let server = Server::start(HttpLimits::default()).await;
    let socket = TcpSocket::new_v4().unwrap();
    // The kernel keeps little on its way, so that what the node takes in is what it keeps.
    socket.set_send_buffer_size(64 << 10).unwrap();
    socket.set_recv_buffer_size(64 << 10).unwrap();
    let mut stream = socket.connect(server.address.parse().unwrap()).await.unwrap();
    upgrade(&mut stream).await;
    // Refused at once, with more words than it took to ask.
    let ask = frame(7, PipeVerb::Enqueue, None, b"\xff");
    let many = ask.repeat(1_000);
    let (mut sent, enough) = (0, 32 << 20);
    while sent < enough {
        match tokio::time::timeout(Duration::from_secs(2), stream.write(&many[sent % ask.len()..]))
            .await
        {
            Ok(count) => sent += count.unwrap(),
            Err(_) => break,
        }
    }
    assert!(sent < enough, "the node reads on though nobody takes its answers");
    // Read again, every call gets its answer, and the pipe is of use.
    let (mut reader, mut writer) = stream.split();
    let rest = ask[sent % ask.len()..].to_vec();
    let asked = sent.div_ceil(ask.len());
    let rest = if sent % ask.len() == 0 { Vec::new() } else { rest };
    let reading = async {
        let (mut buffer, mut answered) = (BytesMut::new(), 0);
        while answered < asked {
            while let FrontFrame::Whole(message) = front_frame(&buffer, 1 << 20) {
                let length = message.len();
                buffer.advance(LENGTH_BYTES + length);
                answered += 1;
            }
            if answered < asked {
                assert_ne!(reader.read_buf(&mut buffer).await.unwrap(), 0, "closed");
            }
        }
    };
    let (_, wrote) = tokio::join!(reading, writer.write_all(&rest));
    wrote.unwrap();
    drop(stream);
    server.stop().await;
}

async fn push(client: &Client, name: &str) {
    let argv = vec!["true".to_owned()];
    let (name, kind) = (name.to_owned(), "command".to_owned());
    let program = NewProgram { name, kind, argv, entry: None, file: None };
    client.push_program(&program).await.unwrap();
}

pub(super) async fn claim_one(client: &Client) -> CompleteItem {
    let queues = vec!["default".to_owned()];
    let ask = ClaimRequest {
        holds: Vec::new(),
        labels: Default::default(),
        worker: "w".into(),
        session: Number(1),
        queues,
        count_max: 1,
        wait_ms: 100,
    };
    let claimed = client.claim(&ask).await.unwrap().tasks.remove(0);
    CompleteItem { id: claimed.id, fence: claimed.fence, ..CompleteItem::default() }
}

// B4-39: what a call names is looked up on a pipe as on its route, by hand and by the client.
#[tokio::test]
async fn b4_39_pushed_programs_are_known_on_a_pipe() {
    let server = Server::start(HttpLimits::default()).await;
    let (client, mut stream) = (server.client(), open(&server).await);
    push(&client, "mine").await;
    let program = |name: &str| Some(name.to_owned());
    let next = |name: &str| NewTask { program: program(name), ..NewTask::default() };
    let own = NewTask { program: program("mine"), ..task("b", b"") };
    let then = NewTask { then: vec![next("mine")], ..task("a", b"") };
    let body = to_vec(&EnqueueBatch { tasks: vec![then, own] }).unwrap();
    stream.write_all(&frame(1, PipeVerb::Enqueue, Some("k"), &body)).await.unwrap();
    let enqueued: EnqueueAnswer = from_slice(&answer(&mut stream).await.2).unwrap();
    assert!(enqueued.tasks.iter().all(|task| task.outcome == OutcomeKind::Created), "{enqueued:?}");
    for (call, name) in [(2, "mine"), (3, "nobody")] {
        let item = CompleteItem { then: vec![next(name)], ..claim_one(&client).await };
        let body = to_vec(&CompleteRequest { worker: "w".into(), tasks: vec![item], claim: None })
            .unwrap();
        stream.write_all(&frame(call, PipeVerb::Complete, None, &body)).await.unwrap();
        let (answered, _, body) = answer(&mut stream).await;
        let list: OutcomeList = from_slice(&body).unwrap();
        let refused = list.tasks[0].problem.as_ref().map(|problem| problem.code.to_string());
        let expected = (name == "nobody").then(|| "unknown_program".to_owned());
        assert_eq!((answered, refused), (call, expected), "{list:?}");
    }
    // The follow-ups of both are there, and the client's own completions name programs too.
    let item = CompleteItem { then: vec![next("mine")], ..claim_one(&client).await };
    let done = client
        .complete(&CompleteRequest { worker: "w".into(), tasks: vec![item], claim: None })
        .await;
    assert_eq!(done.unwrap().tasks[0].outcome, OutcomeKind::Completed);
    server.stop().await;
}
