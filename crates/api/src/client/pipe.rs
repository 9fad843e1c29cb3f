//! Pipes to nodes: one connection per node carries all calls of the hot verbs at once.
//!
//! Promise: a call that was written and not answered is reported as sent, so that it counts as "may have happened"; a
//! broken pipe fails its open calls at once, and the next call opens a new one. A node that refuses the upgrade is
//! talked to in plain HTTP from then on.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use minicbor::bytes::ByteSlice;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};

use super::connect::Connector;
use super::token::AccessToken;
use super::url::BaseUrl;
use crate::pipe::{
    FrontFrame, LENGTH_BYTES, PIPE_PATH, PIPE_PROTOCOL, PipeAnswer, PipeAsk, front_frame,
    push_frame,
};
use crate::socket::Socket;

/// Largest answer that is read.
const ANSWER_BYTES_MAX: usize = 64 << 20;
/// Room asked of the kernel per read.
const READ_BYTES: usize = 64 << 10;
/// The answer to the upgrade may be this long.
const HEAD_BYTES_MAX: usize = 8 << 10;
/// Frames sent with one write.
const FRAMES_PER_WRITE: usize = 1_024;

/// What came back for a call.
pub(super) struct Answered {
    pub(super) status: u16,
    pub(super) body: Bytes,
}

/// Why no pipe could be opened.
#[derive(Debug)]
pub(super) enum OpenError {
    /// The node does not speak this protocol.
    Refused,
    /// The node does not let this caller in, or is full; a plain call will tell why.
    NotNow,
    /// No connection came about.
    Failed(String),
}

/// An open pipe. Dropping it ends its tasks.
pub(super) struct Pipe {
    frames: mpsc::UnboundedSender<Vec<u8>>,
    open: Arc<OpenCalls>,
    next: AtomicU64,
}

#[derive(Default)]
struct OpenCalls {
    /// None once the pipe is broken.
    calls: Mutex<Option<HashMap<u64, oneshot::Sender<Answered>>>>,
}

impl OpenCalls {
    fn insert(&self, call: u64, waiter: oneshot::Sender<Answered>) -> bool {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.as_mut().map(|calls| calls.insert(call, waiter)).is_some()
    }

    fn remove(&self, call: u64) -> Option<oneshot::Sender<Answered>> {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.as_mut()?.remove(&call)
    }

    fn close(&self) {
        // Dropped waiters wake their callers.
        drop(self.calls.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    fn is_closed(&self) -> bool {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }
}

/// Forgets a call whose caller has gone.
struct Forget<'a>(&'a OpenCalls, u64);

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.0.remove(self.1);
    }
}

impl Pipe {
    /// Opens a pipe to a node.
    pub(super) async fn open(
        url: &BaseUrl,
        connector: &Connector,
        token: Option<&AccessToken>,
        patience: Duration,
    ) -> Result<Pipe, OpenError> {
        let opening = async {
            let mut stream = connector.open(url.is_secure(), &url.authority()).await?;
            let host = url.authority();
            let shown = token.map(|token| format!("Authorization: {}\r\n", token.bearer()));
            let shown = shown.unwrap_or_default();
            let head = format!(
                "GET {PIPE_PATH} HTTP/1.1\r\nHost: {host}\r\n{shown}Connection: Upgrade\r\nUpgrade: {PIPE_PROTOCOL}\r\n\r\n"
            );
            stream.write_all(head.as_bytes()).await?;
            stream.flush().await?;
            let rest = read_head(&mut stream).await?;
            Ok::<_, std::io::Error>((stream, rest))
        };
        match tokio::time::timeout(patience, opening).await {
            Ok(Ok((stream, Head::Open(rest)))) => Ok(Pipe::over(stream, rest)),
            Ok(Ok((_, Head::NotNow))) => Err(OpenError::NotNow),
            Ok(Ok((_, Head::Unknown))) => Err(OpenError::Refused),
            Ok(Err(error)) => Err(OpenError::Failed(error.to_string())),
            Err(_) => Err(OpenError::Failed("no connection in time".to_owned())),
        }
    }

    fn over(stream: Socket, rest: BytesMut) -> Pipe {
        let (reader, writer) = stream.split();
        let open = Arc::new(OpenCalls { calls: Mutex::new(Some(HashMap::new())) });
        let (frames, waiting) = mpsc::unbounded_channel();
        let reading = tokio::spawn(read_answers(reader, rest, open.clone()));
        let closing = open.clone();
        tokio::spawn(async move {
            write_frames(writer, waiting).await;
            // Nobody asks any more, or nobody listens: the other half is of no use.
            closing.close();
            reading.abort();
        });
        Pipe { frames, open, next: AtomicU64::new(1) }
    }

    /// Whether the pipe is broken.
    pub(super) fn is_closed(&self) -> bool {
        self.open.is_closed()
    }

    /// Carries out one call. The `call` of `ask` is chosen here. None: the pipe broke (`sent` tells whether before or
    /// after the call could have reached the node).
    pub(super) async fn call(&self, mut ask: PipeAsk<'_>) -> Result<Answered, bool> {
        let (waiter, answered) = oneshot::channel();
        ask.call = self.next.fetch_add(1, Ordering::Relaxed);
        if !self.open.insert(ask.call, waiter) {
            return Err(false);
        }
        let _forget = Forget(&self.open, ask.call);
        let mut frame = Vec::with_capacity(ask.body.len() + 96);
        push_frame(&mut frame, &ask);
        if self.frames.send(frame).is_err() {
            return Err(false);
        }
        answered.await.map_err(|_| true)
    }
}

/// The answer to the upgrade.
enum Head {
    /// It is a pipe now, and this came after the answer.
    Open(BytesMut),
    NotNow,
    Unknown,
}

/// Reads the answer to the upgrade.
async fn read_head(stream: &mut Socket) -> std::io::Result<Head> {
    let mut buffer = BytesMut::with_capacity(1 << 10);
    loop {
        if stream.read_buf(&mut buffer).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        if let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = buffer.split_to(end + 4);
            return Ok(match head.get(9..12) {
                Some(b"101") => Head::Open(buffer),
                Some(b"401" | b"403" | b"429" | b"503") => Head::NotNow,
                _ => Head::Unknown,
            });
        }
        if buffer.len() > HEAD_BYTES_MAX {
            return Ok(Head::Unknown);
        }
    }
}

async fn write_frames(
    mut writer: impl AsyncWrite + Unpin,
    mut waiting: mpsc::UnboundedReceiver<Vec<u8>>,
) {
    let mut batch = Vec::with_capacity(FRAMES_PER_WRITE);
    let mut bytes = Vec::new();
    while waiting.recv_many(&mut batch, FRAMES_PER_WRITE).await > 0 {
        bytes.clear();
        batch.iter().for_each(|frame| bytes.extend_from_slice(frame));
        batch.clear();
        let written = async {
            writer.write_all(&bytes).await?;
            writer.flush().await
        };
        if written.await.is_err() {
            return;
        }
    }
}

async fn read_answers(
    mut reader: impl AsyncRead + Unpin,
    mut buffer: BytesMut,
    open: Arc<OpenCalls>,
) {
    loop {
        while let FrontFrame::Whole(message) = front_frame(&buffer, ANSWER_BYTES_MAX) {
            let length = message.len();
            buffer.advance(LENGTH_BYTES);
            let frame = buffer.split_to(length).freeze();
            let Ok(answer) = minicbor::decode::<PipeAnswer<'_>>(&frame) else {
                return open.close();
            };
            let body: &ByteSlice = answer.body;
            let answered = Answered { status: answer.status, body: frame.slice_ref(body) };
            if let Some(waiter) = open.remove(answer.call) {
                let _ = waiter.send(answered);
            }
        }
        if matches!(front_frame(&buffer, ANSWER_BYTES_MAX), FrontFrame::TooLong(_)) {
            return open.close();
        }
        buffer.reserve(READ_BYTES);
        match reader.read_buf(&mut buffer).await {
            Ok(0) | Err(_) => return open.close(),
            Ok(_) => {}
        }
    }
}

/// The pipes of a client, one per node.
pub(super) struct Pipes {
    connector: Connector,
    nodes: Vec<tokio::sync::Mutex<NodePipe>>,
}

#[derive(Default)]
struct NodePipe {
    pipe: Option<Arc<Pipe>>,
    /// The node refused the upgrade.
    refused: bool,
}

impl Pipes {
    pub(super) fn new(nodes: usize, connector: Connector) -> Pipes {
        Pipes { connector, nodes: (0..nodes).map(|_| tokio::sync::Mutex::default()).collect() }
    }

    /// The pipe to a node, opened if need be; none if the node does not speak it.
    pub(super) async fn to(
        &self,
        node: usize,
        url: &BaseUrl,
        token: Option<&AccessToken>,
        patience: Duration,
    ) -> Result<Option<Arc<Pipe>>, String> {
        let mut place = self.nodes[node].lock().await;
        if place.refused {
            return Ok(None);
        }
        if let Some(pipe) = place.pipe.as_ref().filter(|pipe| !pipe.is_closed()) {
            return Ok(Some(pipe.clone()));
        }
        match Pipe::open(url, &self.connector, token, patience).await {
            Ok(pipe) => {
                let pipe = Arc::new(pipe);
                place.pipe = Some(pipe.clone());
                Ok(Some(pipe))
            }
            Err(OpenError::Refused) => {
                place.refused = true;
                Ok(None)
            }
            Err(OpenError::NotNow) => Ok(None),
            Err(OpenError::Failed(detail)) => Err(detail),
        }
    }
}
