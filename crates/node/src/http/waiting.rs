//! The client port before there is a cluster: every request is told to come back, so that nobody waits for nothing.

use std::time::Duration;

use ikada_api::Problem;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

/// A client has this long to send its request and take the answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// What is read of a request; its content does not matter.
const REQUEST_BYTES_MAX: usize = 16 << 10;
/// When to come back: nodes find each other soon once they are up.
const RETRY_AFTER_S: u32 = 1;

/// Answers 503 to everyone for as long as it is polled.
pub async fn answer_waiting(listener: &TcpListener) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => drop(tokio::spawn(timeout(PATIENCE, answer(stream)))),
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

async fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    let mut request = vec![0; REQUEST_BYTES_MAX];
    // Whatever came of the request, the answer is the same.
    let _ = stream.read(&mut request).await?;
    let detail =
        "this node waits for the other nodes of its cluster; see its log for whom it has heard of";
    let problem = Problem::new(503, "not_founded", "no cluster yet", detail)
        .with_retry_after_s(RETRY_AFTER_S);
    let body = serde_json::to_vec(&problem).unwrap_or_default();
    let head = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\n\
         retry-after: {RETRY_AFTER_S}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(&body).await?;
    stream.shutdown().await
}
