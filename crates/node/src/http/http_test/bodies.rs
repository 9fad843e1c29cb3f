//! Bodies of objects that are not what they were said to be, over real sockets: short, long, stalled, given up, trickled.
//! Nothing of them is to be seen afterwards (CH-1, X7).

use std::time::Duration;

use ikada_api::Client;
use ikada_api::client::{ClientOptions, GetOptions, ObjectSource, PutOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::HttpLimits;
use super::socket::Server;

const PIECE: usize = 1 << 20;

/// The head of an upload of so many bytes.
fn head(length: &str) -> Vec<u8> {
    format!("PUT /v1/objects/b/x HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n\r\n")
        .into()
}

async fn send(server: &Server, parts: &[&[u8]]) -> TcpStream {
    let mut stream = TcpStream::connect(&server.address).await.unwrap();
    for part in parts {
        // The server may be done before all is sent.
        let _ = stream.write_all(part).await;
    }
    stream
}

async fn last_words(mut stream: TcpStream) -> String {
    let mut said = Vec::new();
    let _ = stream.read_to_end(&mut said).await;
    String::from_utf8_lossy(&said).into_owned()
}

/// Nothing has a name, and all places are free.
async fn nothing_is_there(server: &Server) {
    let client = server.client();
    assert!(client.objects("b", "", None, true).await.unwrap().objects.is_empty());
    assert!(client.buckets(None).await.unwrap().buckets.is_empty());
}

fn impatient(uploads_max: usize) -> HttpLimits {
    let body_timeout = Duration::from_millis(300);
    HttpLimits { body_timeout, uploads_max, ..HttpLimits::default() }
}

// CH-1: with one place for uploads, each case also shows that the one before gave it back.
#[tokio::test]
async fn ch_1_bodies_that_break_off_leave_nothing_to_see() {
    let server = Server::start(impatient(1)).await;
    let whole = vec![7; PIECE];
    // Short, and then the end of the stream.
    let mut stream = send(&server, &[&head("3000000"), &whole, b"and a bit"]).await;
    stream.shutdown().await.unwrap();
    let said = last_words(stream).await;
    assert!(said.is_empty() || said.contains("body_incomplete"), "{said}");
    nothing_is_there(&server).await;
    // Given up without a word.
    drop(send(&server, &[&head("3000000"), &whole, &whole]).await);
    // It stands still: told, and cut off.
    let said = last_words(send(&server, &[&head("3000000"), &whole]).await).await;
    assert!(said.starts_with("HTTP/1.1 408") && said.contains("body_incomplete"), "{said}");
    nothing_is_there(&server).await;
    // Chunks that end in the middle of one.
    let chunked =
        b"PUT /v1/objects/b/x HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhel";
    let mut stream = send(&server, &[chunked]).await;
    stream.shutdown().await.unwrap();
    let said = last_words(stream).await;
    assert!(said.is_empty() || said.contains("body_incomplete"), "{said}");
    nothing_is_there(&server).await;
    // Bytes beyond the length that was said belong to no object.
    let said = last_words(send(&server, &[&head("5"), b"helloGARBAGE\r\n\r\n"]).await).await;
    assert!(said.starts_with("HTTP/1.1 201"), "{said}");
    let stored = server.client().get_object("b", "x", &GetOptions::default()).await.unwrap();
    assert_eq!(stored.collect().await.unwrap(), b"hello");
    server.stop().await;
}

// X7, CH-16: bytes now and then keep no place.
#[tokio::test]
async fn x_7_a_trickle_loses_its_place() {
    let server = Server::start(impatient(1)).await;
    let stream = send(&server, &[&head("3000000")]).await;
    let (mut reader, mut writer) = stream.into_split();
    // Each byte comes in time, and all of them never would.
    let trickle = tokio::spawn(async move {
        while writer.write_all(b"x").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    let mut answer = [0; 12];
    let reading = tokio::time::timeout(Duration::from_secs(30), reader.read_exact(&mut answer));
    reading.await.expect("no byte keeps it").unwrap();
    trickle.abort();
    assert_eq!(&answer, b"HTTP/1.1 408");
    nothing_is_there(&server).await;
    server.stop().await;
}

// CH-21: a download that is told when to come back comes back then, and not before.
#[tokio::test]
async fn ch_21_a_download_heeds_the_wait_it_is_told() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut asked = [0; 4096];
            let _ = stream.read(&mut asked).await;
            let full = b"HTTP/1.1 503 Busy\r\nretry-after: 60\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            let _ = stream.write_all(full).await;
        }
    });
    let options = ClientOptions { timeout: Duration::from_secs(2), ..ClientOptions::default() };
    let client = Client::with([&address], options).unwrap();
    assert!(client.get_object("b", "x", &GetOptions::default()).await.is_err());
    assert_eq!(client.tries(), 1, "a minute is more than it has");
}

/// A node that turns so many uploads away before it takes one; gives its address.
async fn reluctant(refusals: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        for count in 0.. {
            let Ok((mut stream, _)) = listener.accept().await else { return };
            let mut asked = Vec::new();
            while !asked.ends_with(b"all of it") && stream.read_buf(&mut asked).await.unwrap() > 0 {
            }
            let info = r#"{"bucket": "b", "key": "x", "version": "1", "size": 9, "digest": "aa", "content_type": "x", "modified_ms": 1}"#;
            let (status, body) =
                if count < refusals { ("503 Later", "") } else { ("201 Created", info) };
            let head = format!(
                "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                body.len()
            );
            stream.write_all(head.as_bytes()).await.unwrap();
            stream.write_all(body.as_bytes()).await.unwrap();
        }
    });
    address
}

// CH-1, CH-2: a leader that changes costs an upload no more than it costs other calls.
#[tokio::test]
async fn ch_1_an_upload_is_tried_as_long_as_any_other_call() {
    let address = reluctant(12).await;
    let client = Client::new([&address; 3]).unwrap();
    let source = ObjectSource::Bytes("all of it".into());
    let stored = client.put_object("b", "x", &source, &PutOptions::default()).await.unwrap();
    assert_eq!((stored.size, client.tries()), (9, 13));
    let options = ClientOptions { timeout: Duration::from_millis(50), ..ClientOptions::default() };
    let hasty = Client::with([&reluctant(usize::MAX).await], options).unwrap();
    assert!(hasty.put_object("b", "x", &source, &PutOptions::default()).await.is_err());
    assert!(hasty.tries() >= 3, "{} tries", hasty.tries());
}
