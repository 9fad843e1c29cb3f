//! One connection that speaks just enough HTTP: a call, its whole answer, and nothing repeated.

use std::time::Duration;

use ikada_api::socket::Socket;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Longest head of an answer.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// Bytes read at a time.
const SCRATCH_BYTES: usize = 64 << 10;
/// Longest time that a node lets a call ask for.
const TIMEOUT_MS_MAX: u128 = 120_000;

/// How a call ended. Each has exactly one end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::bench) enum End {
    /// Done.
    Good,
    /// Turned away by a busy node.
    Shed,
    /// Anything else.
    Failed,
}

/// What came back.
pub(in crate::bench) struct Heard {
    pub(in crate::bench) status: u16,
    /// The ETag, without quotes.
    pub(in crate::bench) tag: String,
    pub(in crate::bench) body: Vec<u8>,
    /// Bytes of the body, also when it was not kept.
    pub(in crate::bench) length: usize,
    /// Whether the node ends the connection with this answer.
    pub(in crate::bench) closes: bool,
}

/// A connection to one node.
pub(in crate::bench) struct Line {
    stream: Socket,
    host: String,
    /// A header line that says who calls; empty if nobody asks.
    bearer: String,
    kept: Vec<u8>,
    scratch: Vec<u8>,
}

impl Line {
    pub(in crate::bench) async fn open(host: &str) -> std::io::Result<Line> {
        let stream = TcpStream::connect(host).await?;
        stream.set_nodelay(true)?;
        Ok(Line::on(Socket::Plain(stream), host, ""))
    }

    /// On a connection that stands; `bearer` is a header line, or empty.
    pub(in crate::bench) fn on(stream: Socket, host: &str, bearer: &str) -> Line {
        let (kept, scratch) = (Vec::new(), vec![0; SCRATCH_BYTES]);
        Line { stream, host: host.to_owned(), bearer: bearer.to_owned(), kept, scratch }
    }

    /// Carries out one call. `keep` says whether the bytes of the answer are wanted or only counted.
    pub(in crate::bench) async fn call(
        &mut self,
        method: &str,
        path: &str,
        body: &[u8],
        patience: Duration,
        keep: bool,
    ) -> std::io::Result<Heard> {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\n{}ikada-timeout-ms: {}\r\ncontent-length: {}\r\n\r\n",
            self.host,
            self.bearer,
            patience.as_millis().min(TIMEOUT_MS_MAX),
            body.len()
        );
        // One write: a node that gets head and body apart wakes up twice, on the same cores as the caller.
        let message = [head.as_bytes(), body].concat();
        let call = async {
            // A node that turns an upload away closes before it has all bytes; what it said first can still be read.
            let _ = self.stream.write_all(&message).await;
            self.read(keep).await
        };
        tokio::time::timeout(patience, call).await.unwrap_or_else(|_| Err(broken("too late")))
    }

    /// Uploads so many MiB, made as they are sent; gives the status. `step` is called after every 16 MiB.
    pub(in crate::bench) async fn put_stream(
        &mut self,
        path: &str,
        mib: u32,
        mut step: impl FnMut(),
    ) -> std::io::Result<u16> {
        let length = u64::from(mib) << 20;
        let head = format!(
            "PUT {path} HTTP/1.1\r\nhost: {}\r\nikada-timeout-ms: 120000\r\ncontent-length: {length}\r\n\r\n",
            self.host
        );
        self.stream.write_all(head.as_bytes()).await?;
        for number in 0..mib {
            let piece = super::bytes_of(u64::from(number) + 1, 1 << 20);
            self.stream.write_all(&piece).await?;
            if number % 16 == 0 {
                step();
            }
        }
        self.read(true).await.map(|heard| heard.status)
    }

    async fn read(&mut self, keep: bool) -> std::io::Result<Heard> {
        let mut got = std::mem::take(&mut self.kept);
        let end = loop {
            if let Some(place) = got.windows(4).position(|four| four == b"\r\n\r\n") {
                break place;
            }
            if got.len() > HEAD_BYTES_MAX || self.stream.read_buf(&mut got).await? == 0 {
                return Err(broken("no answer"));
            }
        };
        let head = String::from_utf8_lossy(&got[..end]).to_ascii_lowercase();
        let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name));
        let status = head.get(9..12).and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| broken("no status"))?;
        let length: usize = match field("content-length: ") {
            Some(length) => length.parse().map_err(|_| broken("no length"))?,
            None => 0,
        };
        let tag = field("etag: ").unwrap_or("").trim_matches('"').to_owned();
        let mut body = got.split_off(end + 4);
        let mut left = length.saturating_sub(body.len());
        if !keep {
            body.clear();
        }
        while left > 0 {
            let room = left.min(self.scratch.len());
            let count = self.stream.read(&mut self.scratch[..room]).await?;
            if count == 0 {
                return Err(broken("cut off"));
            }
            left -= count;
            if keep {
                body.extend_from_slice(&self.scratch[..count]);
            }
        }
        let closes = field("connection: ").is_some_and(|word| word == "close");
        Ok(Heard { status, tag, body, length, closes })
    }
}

impl Heard {
    /// The end of a call that was answered.
    pub(in crate::bench) fn end(&self) -> End {
        let code = || String::from_utf8_lossy(&self.body).into_owned();
        match self.status {
            200..=299 => End::Good,
            429 => End::Shed,
            503 if code().contains("\"shed_") => End::Shed,
            _ => End::Failed,
        }
    }
}

fn broken(why: &str) -> std::io::Error {
    std::io::Error::other(why.to_owned())
}
