//! Floods of calls: connections that close at once, bodies that are too large, too deep or in crumbs.

use std::time::Duration;

use ikada_api::socket::Socket;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;
use tokio::time::interval;

use super::attack::Target;

/// Connections opened and closed per second.
pub(super) const OPENED_PER_S: u32 = 1_000;
/// Bytes of large bodies, over all lines.
pub(super) const BODY_MIB_PER_S: u32 = 64;
/// Deep documents per second.
pub(super) const DOCUMENTS_PER_S: u32 = 50;
/// Chunks per second, over all lines.
pub(super) const CHUNKS_PER_S: u32 = 20_000;
/// Callers of one flood at a time.
const LINES: u32 = 4;
/// Connections under way at most while they are opened and closed.
const OPENING_MAX: usize = 256;
const GIB: u64 = 1 << 30;
const MIB: usize = 1 << 20;
const DEPTH: usize = 100_000;
/// Chunks sent with one write.
const CHUNKS_PER_WRITE: u32 = 100;
/// How long an answer is waited for.
const ANSWER_PATIENCE: Duration = Duration::from_secs(5);

/// Opens connections and closes them at once.
pub(super) async fn open_and_close(target: &Target) {
    let mut pulse = interval(Duration::from_secs(1) / OPENED_PER_S);
    let mut opening = JoinSet::new();
    loop {
        pulse.tick().await;
        while opening.try_join_next().is_some() {}
        if opening.len() < OPENING_MAX {
            let target = target.clone();
            opening.spawn(async move { drop(target.connect().await) });
        }
    }
}

/// Sends bodies of 1 GiB, with and without telling their length, until the node has had enough.
pub(super) async fn large_bodies(target: &Target) {
    let lines = (0..LINES).map(|line| {
        let target = target.clone();
        async move {
            let mut pulse = interval(Duration::from_secs(1) * LINES / BODY_MIB_PER_S);
            loop {
                pulse.tick().await;
                let Some(mut stream) = target.open().await else { continue };
                let told = line % 2 == 0;
                let head = match told {
                    true => head(&target, &format!("content-length: {GIB}")),
                    false => head(&target, "transfer-encoding: chunked"),
                };
                let mut piece = if told { Vec::new() } else { format!("{MIB:x}\r\n").into_bytes() };
                piece.resize(piece.len() + MIB, b' ');
                if !told {
                    piece.extend_from_slice(b"\r\n");
                }
                let _ = stream.write_all(&head).await;
                for _ in 0..GIB / MIB as u64 {
                    pulse.tick().await;
                    if stream.write_all(&piece).await.is_err() {
                        break;
                    }
                }
                hear(stream, &target).await;
            }
        }
    });
    lines.collect::<JoinSet<()>>().join_all().await;
}

/// Sends documents of arrays in arrays.
pub(super) async fn deep_json(target: &Target) {
    let body = [b"{\"tasks\":".to_vec(), vec![b'['; DEPTH], vec![b']'; DEPTH], vec![b'}']].concat();
    let message = [head(target, &format!("content-length: {}", body.len())), body].concat();
    let mut pulse = interval(Duration::from_secs(1) / DOCUMENTS_PER_S);
    let mut asking = JoinSet::new();
    loop {
        pulse.tick().await;
        while asking.try_join_next().is_some() {}
        if asking.len() < OPENING_MAX {
            let (target, message) = (target.clone(), message.clone());
            asking.spawn(async move {
                let Some(mut stream) = target.open().await else { return };
                let _ = stream.write_all(&message).await;
                hear(stream, &target).await;
            });
        }
    }
}

/// Sends bodies byte by byte, each byte in a chunk of its own.
pub(super) async fn tiny_chunks(target: &Target) {
    let lines = (0..LINES).map(|_| {
        let target = target.clone();
        async move {
            let chunks = b"1\r\n \r\n".repeat(CHUNKS_PER_WRITE as usize);
            let mut pulse =
                interval(Duration::from_secs(1) * LINES * CHUNKS_PER_WRITE / CHUNKS_PER_S);
            loop {
                pulse.tick().await;
                let Some(mut stream) = target.open().await else { continue };
                let _ = stream.write_all(&head(&target, "transfer-encoding: chunked")).await;
                while stream.write_all(&chunks).await.is_ok() {
                    pulse.tick().await;
                }
                hear(stream, &target).await;
            }
        }
    });
    lines.collect::<JoinSet<()>>().join_all().await;
}

fn head(target: &Target, more: &str) -> Vec<u8> {
    let host = &target.way.host;
    format!(
        "POST /v1/tasks HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n{more}\r\n\r\n"
    )
    .into_bytes()
}

/// Hears the answer; anything but a success counts as turned away.
async fn hear(mut stream: Socket, target: &Target) {
    let mut answer = [0; 12];
    let heard = tokio::time::timeout(ANSWER_PATIENCE, stream.read_exact(&mut answer)).await;
    if !(matches!(heard, Ok(Ok(_))) && answer.starts_with(b"HTTP/1.1 2")) {
        target.tally.count_turned_away();
    }
}
