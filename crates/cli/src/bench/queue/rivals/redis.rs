//! Redis streams as a work queue on one server.

use std::collections::VecDeque;
use std::io;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::BytesMut;
use tempfile::TempDir;
use tokio::io::AsyncReadExt;
use tokio::sync::{mpsc, oneshot};

use super::BATCH;
use super::callers::{Caller, call_all, write_frames};
use super::resp::{Answer, push_command, take_answer};
use super::wire::{READ_BYTES, Wire};
use crate::bench::beside::wait;
use crate::bench::queue::tasks::Tally;
use crate::failure::Failure;
use crate::local::free_ports;

/// The stream and its group of consumers.
const STREAM: &[u8] = b"queue";
const GROUP: &[u8] = b"workers";
/// Connections that send: the server syncs once for what it read from all of them.
const SENDERS: usize = 4;
/// How long a consumer waits for tasks before it looks whether all is done.
const BLOCK_MS: &[u8] = b"100";

/// One server; ended and removed when dropped.
pub(super) struct Server {
    child: Child,
    address: String,
    version: String,
    _folder: TempDir,
}

impl Server {
    pub(super) async fn start() -> Result<Server, Failure> {
        let failed = |error: io::Error| {
            let advice = "install it, on Debian with: apt-get install redis-server";
            Failure::usage(format!("redis-server cannot be started ({error}); {advice}"))
        };
        let asked = Command::new("redis-server").arg("--version").output().map_err(failed)?;
        let said = String::from_utf8_lossy(&asked.stdout).into_owned();
        let number = said.split_whitespace().find_map(|word| word.strip_prefix("v="));
        let version = format!("redis {}", number.unwrap_or_default());
        let folder = tempfile::tempdir().map_err(failed)?;
        let port = free_ports(1)?[0];
        let mut command = Command::new("redis-server");
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
        command.args(["--appendonly", "yes", "--appendfsync", "always"]);
        command.arg("--dir").arg(folder.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().map_err(failed)?;
        let address = format!("127.0.0.1:{port}");
        let server = Server { child, address, version, _folder: folder };
        wait("redis takes a stream", async || server.clear().await.ok()).await?;
        Ok(server)
    }

    pub(super) fn version(&self) -> String {
        self.version.clone()
    }

    pub(super) fn pids(&self) -> Vec<u32> {
        vec![self.child.id()]
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    pub(super) async fn clear(&self) -> io::Result<()> {
        let mut wire = Wire::open(&self.address).await?;
        push_command(&mut wire.out, &[b"FLUSHALL"]);
        push_command(&mut wire.out, &[b"XGROUP", b"CREATE", STREAM, GROUP, b"0", b"MKSTREAM"]);
        wire.flush().await?;
        for _ in 0..2 {
            answer(&mut wire).await?;
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn answer(wire: &mut Wire) -> io::Result<Answer> {
    loop {
        if let Some(answer) = take_answer(&mut wire.read)? {
            return Ok(answer);
        }
        wire.fill().await?;
    }
}

/// Adds tasks with so many callers, over a few connections.
pub(super) async fn send(
    address: &str,
    callers: usize,
    total: u64,
    payload: &[u8],
) -> io::Result<()> {
    let mut adders = Vec::new();
    for _ in 0..SENDERS.min(callers) {
        adders.push(Arc::new(Adder::open(address, payload).await?));
    }
    call_all(adders, callers, total).await
}

/// A connection that adds tasks; answers come in the order of the calls.
struct Adder {
    frame: Vec<u8>,
    waiting: Arc<Mutex<VecDeque<oneshot::Sender<()>>>>,
    frames: mpsc::UnboundedSender<Vec<u8>>,
}

impl Adder {
    async fn open(address: &str, payload: &[u8]) -> io::Result<Adder> {
        let (mut reader, writer) = Wire::open(address).await?.split();
        let mut frame = Vec::new();
        push_command(&mut frame, &[b"XADD", STREAM, b"*", b"d", payload]);
        let (frames, sent) = mpsc::unbounded_channel();
        tokio::spawn(write_frames(writer, sent));
        let waiting: Arc<Mutex<VecDeque<oneshot::Sender<()>>>> = Arc::default();
        let answered = waiting.clone();
        tokio::spawn(async move {
            let mut read = BytesMut::new();
            // Whoever still waits when this ends is told by the drop of its waiter.
            while let Ok(1..) = reader.read_buf(&mut read).await {
                while let Ok(Some(_)) = take_answer(&mut read) {
                    let first = lock(&answered).pop_front();
                    let _ = first.map(|waiter| waiter.send(()));
                }
                read.reserve(READ_BYTES);
            }
            lock(&answered).clear();
        });
        Ok(Adder { frame, waiting, frames })
    }
}

fn lock<T>(held: &Mutex<T>) -> MutexGuard<'_, T> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Caller for Adder {
    async fn call(&self) -> io::Result<()> {
        let (waiter, answered) = oneshot::channel();
        {
            // The line of waiters and that of frames must be the same.
            let mut waiting = lock(&self.waiting);
            waiting.push_back(waiter);
            let _ = self.frames.send(self.frame.clone());
        }
        answered.await.map_err(|_| io::ErrorKind::UnexpectedEof.into())
    }
}

/// Takes tasks; settles one batch and asks for the next in one go.
pub(super) async fn consume(address: String, consumer: usize, tally: Arc<Tally>) -> io::Result<()> {
    let mut wire = Wire::open(&address).await?;
    let (name, batch) = (format!("c{consumer}"), BATCH.to_string());
    let mut held: Vec<Vec<u8>> = Vec::new();
    while !tally.is_done() || !held.is_empty() {
        for (verb, group) in [(&b"XACK"[..], Some(GROUP)), (b"XDEL", None)] {
            let mut words = vec![verb, STREAM];
            words.extend(group);
            words.extend(held.iter().map(Vec::as_slice));
            if !held.is_empty() {
                push_command(&mut wire.out, &words);
            }
        }
        let (name, batch) = (name.as_bytes(), batch.as_bytes());
        let words: [&[u8]; 11] = [
            b"XREADGROUP",
            b"GROUP",
            GROUP,
            name,
            b"COUNT",
            batch,
            b"BLOCK",
            BLOCK_MS,
            b"STREAMS",
            STREAM,
            b">",
        ];
        push_command(&mut wire.out, &words);
        wire.flush().await?;
        if !held.is_empty() {
            answer(&mut wire).await?;
            answer(&mut wire).await?;
            tally.add(held.len() as u64);
        }
        held = ids_of(&answer(&mut wire).await?);
    }
    Ok(())
}

/// The ids in what was read from one stream.
fn ids_of(read: &Answer) -> Vec<Vec<u8>> {
    let entries = read.parts().first().and_then(|stream| stream.parts().get(1));
    let entries = entries.map_or(&[][..], Answer::parts);
    let id = |entry: &Answer| match entry.parts().first() {
        Some(Answer::Text(id)) => Some(id.clone()),
        _ => None,
    };
    entries.iter().filter_map(id).collect()
}
