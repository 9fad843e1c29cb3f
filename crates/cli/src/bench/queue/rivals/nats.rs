//! NATS JetStream as a work queue, by its text protocol.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::sync::{mpsc, oneshot};

use super::BATCH;
use super::callers::{Caller, call_all, write_frames};
use super::messages::{next_message, push_publish};
use super::wire::{READ_BYTES, Wire};
use crate::bench::beside::{PeerKind, Servers, server_name, wait};
use crate::bench::queue::tasks::Tally;
use crate::failure::Failure;

/// The stream, its only subject, and the consumers' common name.
const STREAM: &str = "QUEUE";
const SUBJECT: &str = "queue";
const DURABLE: &str = "workers";
/// Requests for tasks that a consumer has open: one is being filled while the next one waits.
const REQUESTS: u64 = 2;
/// How long a request for tasks stays open, and how often a consumer looks whether all is done.
const REQUEST_NS: u64 = 5_000_000_000;
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Three servers with a queue.
pub(super) struct Cluster {
    servers: Servers,
    leader: String,
}

impl Cluster {
    pub(super) async fn start() -> Result<Cluster, Failure> {
        let servers = Servers::start(PeerKind::Nats)?;
        let first = servers.addresses()[0].clone();
        wait("JetStream takes a stream", async || make(&first).await.ok()).await?;
        let leader = wait("a leader", async || leader(&first).await).await?;
        let place = (0..servers.addresses().len()).find(|place| server_name(*place) == leader);
        let leader = servers.addresses()[place.unwrap_or(0)].clone();
        Ok(Cluster { servers, leader })
    }

    pub(super) fn version(&self) -> String {
        self.servers.version().to_owned()
    }

    pub(super) fn pids(&self) -> Vec<u32> {
        self.servers.pids()
    }

    /// The server that leads the stream: calls to others would only be passed on.
    pub(super) fn leader(&self) -> &str {
        &self.leader
    }

    pub(super) async fn clear(&self) -> io::Result<()> {
        ask(&self.leader, &format!("$JS.API.STREAM.PURGE.{STREAM}"), &Value::Null).await.map(drop)
    }
}

/// Makes the stream and its consumer.
async fn make(address: &str) -> io::Result<()> {
    let stream = json!({
        "name": STREAM, "subjects": [SUBJECT], "storage": "file", "retention": "workqueue", "num_replicas": 3,
    });
    ask(address, &format!("$JS.API.STREAM.CREATE.{STREAM}"), &stream).await?;
    let consumer = json!({ "stream_name": STREAM, "config": {
        "durable_name": DURABLE, "ack_policy": "explicit", "deliver_policy": "all", "replay_policy": "instant",
        "ack_wait": 60_000_000_000_u64, "max_ack_pending": 50_000, "max_waiting": 512,
    } });
    let subject = format!("$JS.API.CONSUMER.DURABLE.CREATE.{STREAM}.{DURABLE}");
    ask(address, &subject, &consumer).await.map(drop)
}

async fn leader(address: &str) -> Option<String> {
    let info = ask(address, &format!("$JS.API.STREAM.INFO.{STREAM}"), &Value::Null).await.ok()?;
    Some(info["cluster"]["leader"].as_str()?.to_owned())
}

/// One question to the servers and its answer.
async fn ask(address: &str, subject: &str, question: &Value) -> io::Result<Value> {
    let mut link = Link::open(address).await?;
    let body = if question.is_null() { String::new() } else { question.to_string() };
    let answer_to = format!("{}.answer", link.inbox);
    push_publish(&mut link.wire.out, subject, &answer_to, body.as_bytes());
    link.wire.flush().await?;
    loop {
        if let Some(message) = next_message(&mut link.wire.read, &mut link.wire.out)? {
            let answer: Value = serde_json::from_slice(&message.body).map_err(io::Error::other)?;
            return match answer["error"].is_null() {
                true => Ok(answer),
                false => Err(io::Error::other(format!("{subject}: {answer}"))),
            };
        }
        // A cluster that has no leader yet drops what it is asked.
        if !link.wire.fill_within(Duration::from_secs(2)).await? {
            return Err(io::ErrorKind::TimedOut.into());
        }
    }
}

/// Publishes with so many callers over one connection.
pub(super) async fn send(
    leader: &str,
    callers: usize,
    total: u64,
    payload: &[u8],
) -> io::Result<()> {
    call_all(vec![Arc::new(Publisher::open(leader, payload).await?)], callers, total).await
}

type Waiting = Mutex<HashMap<u64, oneshot::Sender<Bytes>>>;

/// A connection that publishes; an answer names its call.
struct Publisher {
    inbox: String,
    payload: Vec<u8>,
    next: AtomicU64,
    waiting: Arc<Waiting>,
    frames: mpsc::UnboundedSender<Vec<u8>>,
}

impl Publisher {
    async fn open(leader: &str, payload: &[u8]) -> io::Result<Publisher> {
        let mut link = Link::open(leader).await?;
        link.wire.flush().await?;
        let Link { wire, inbox } = link;
        let (mut reader, writer) = wire.split();
        let (frames, sent) = mpsc::unbounded_channel();
        tokio::spawn(write_frames(writer, sent));
        let waiting: Arc<Waiting> = Arc::default();
        let (answered, pongs, prefix) = (waiting.clone(), frames.downgrade(), inbox.len() + 1);
        tokio::spawn(async move {
            let (mut read, mut out) = (BytesMut::new(), Vec::new());
            // Whoever still waits when this ends is told by the drop of its waiter.
            while let Ok(1..) = reader.read_buf(&mut read).await {
                while let Ok(Some(message)) = next_message(&mut read, &mut out) {
                    let call = message.to.get(prefix..).and_then(|call| call.parse().ok());
                    let waiter = call.and_then(|call| lock(&answered).remove(&call));
                    let _ = waiter.map(|waiter| waiter.send(message.body));
                }
                if let Some(frames) = pongs.upgrade().filter(|_| !out.is_empty()) {
                    let _ = frames.send(std::mem::take(&mut out));
                }
                read.reserve(READ_BYTES);
            }
            lock(&answered).clear();
        });
        let payload = payload.to_vec();
        Ok(Publisher { inbox, payload, next: AtomicU64::new(0), waiting, frames })
    }
}

fn lock(waiting: &Waiting) -> MutexGuard<'_, HashMap<u64, oneshot::Sender<Bytes>>> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Caller for Publisher {
    async fn call(&self) -> io::Result<()> {
        let call = self.next.fetch_add(1, Ordering::Relaxed);
        let (waiter, answered) = oneshot::channel();
        lock(&self.waiting).insert(call, waiter);
        let mut frame = Vec::with_capacity(self.payload.len() + 96);
        push_publish(&mut frame, SUBJECT, &format!("{}.{call}", self.inbox), &self.payload);
        let _ = self.frames.send(frame);
        let body = answered.await.map_err(|_| io::Error::from(io::ErrorKind::UnexpectedEof))?;
        let text = String::from_utf8_lossy(&body);
        match text.contains("\"seq\"") && !text.contains("\"error\"") {
            true => Ok(()),
            false => Err(io::Error::other(format!("not taken: {text}"))),
        }
    }
}

/// Takes tasks and waits for the acknowledgement of each acknowledgement.
pub(super) async fn consume(leader: String, tally: Arc<Tally>) -> io::Result<()> {
    let mut link = Link::open(&leader).await?;
    let (done, tasks) = (format!("{}.done", link.inbox), format!("{}.tasks", link.inbox));
    let ask_for = format!("$JS.API.CONSUMER.MSG.NEXT.{STREAM}.{DURABLE}");
    let wish = json!({ "batch": BATCH, "expires": REQUEST_NS }).to_string();
    // Tasks that were asked for and did not come yet.
    let mut open = 0;
    while !tally.is_done() {
        while open <= BATCH * (REQUESTS - 1) {
            push_publish(&mut link.wire.out, &ask_for, &tasks, wish.as_bytes());
            open += BATCH;
        }
        link.wire.flush().await?;
        link.wire.fill_within(LOOK_EVERY).await?;
        while let Some(message) = next_message(&mut link.wire.read, &mut link.wire.out)? {
            match message.reply {
                // A task keeps the name under which it was published.
                Some(reply) => {
                    open = open.saturating_sub(1);
                    push_publish(&mut link.wire.out, &reply, &done, b"+ACK");
                }
                None if message.to == done => tally.add(1),
                // A word about a request: it has ended.
                None => open = open.saturating_sub(BATCH),
            }
        }
    }
    Ok(())
}

struct Link {
    wire: Wire,
    inbox: String,
}

impl Link {
    async fn open(address: &str) -> io::Result<Link> {
        let mut wire = Wire::open(address).await?;
        let inbox = format!("_INBOX.{:016x}", fastrand::u64(..));
        let settings = json!({
            "verbose": false, "pedantic": false, "headers": true, "no_responders": false, "protocol": 1,
            "lang": "ikada", "version": "1",
        });
        wire.out.extend_from_slice(format!("CONNECT {settings}\r\nSUB {inbox}.> 1\r\n").as_bytes());
        Ok(Link { wire, inbox })
    }
}
