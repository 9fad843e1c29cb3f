//! Asking one peer about blobs, over a few connections that are kept.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use ikada_api::socket::Socket;
use ikada_replica::state::{Digest, Digests};
use ikada_store::BLOB_BYTES_MAX;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::message::{BlobAsk, BlobTold, MESSAGE_BYTES_MAX};
use crate::config::{BLOB_CALL_MS, BLOB_LINKS_MAX, HANDSHAKE_MS, PEER_SILENT_MS};
use crate::gossip::Fact;
use crate::peers::{BlobDialling, decode, encode, wire};

/// Why a peer did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AskError {
    /// It could not be reached, or broke off.
    #[error("node {node}: {source}")]
    Io {
        /// Which peer.
        node: u64,
        /// What went wrong.
        source: io::Error,
    },
    /// It said no.
    #[error("node {node}: {why}")]
    Refused {
        /// Which peer.
        node: u64,
        /// In its words.
        why: String,
        /// Whether its disk has no room.
        full: bool,
    },
}

impl AskError {
    /// Whether the peer's disk has no room.
    pub(super) fn is_full(&self) -> bool {
        matches!(self, AskError::Refused { full: true, .. })
    }
}

/// One peer.
pub(crate) struct Peer {
    pub(crate) node: u64,
    pub(super) addr: String,
    reach: BlobDialling,
    idle: Mutex<Vec<Socket>>,
    /// When it last did not answer, if it has not answered since.
    failed: Mutex<Option<Instant>>,
    pub(super) links: Semaphore,
}

impl Peer {
    pub(super) fn new(node: u64, addr: String, reach: BlobDialling) -> Peer {
        let (idle, links) = (Mutex::default(), Semaphore::new(BLOB_LINKS_MAX));
        Peer { node, addr, reach, idle, failed: Mutex::default(), links }
    }

    /// Whether it did not answer a short while ago.
    pub(super) fn is_silent(&self) -> bool {
        let failed = *self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.is_some_and(|at| at.elapsed() < Duration::from_millis(PEER_SILENT_MS))
    }

    /// Has the peer store a blob.
    pub(super) async fn store(&self, digest: Digest, bytes: &Bytes) -> Result<(), AskError> {
        match self.call(&BlobAsk::Store(digest), Some(bytes)).await? {
            (BlobTold::Stored, _) => Ok(()),
            (told, _) => Err(self.refused(told)),
        }
    }

    /// Fetches a blob; none if the peer has not got it. The bytes are not checked here.
    pub(super) async fn fetch(&self, digest: Digest) -> Result<Option<Bytes>, AskError> {
        let _permit = self.links.acquire().await.map_err(|_| self.failed("stopping"))?;
        match self.call(&BlobAsk::Fetch(digest), None).await? {
            (BlobTold::Found, bytes) => Ok(Some(bytes)),
            (BlobTold::Missing, _) => Ok(None),
            (told, _) => Err(self.refused(told)),
        }
    }

    /// Which of these blobs the peer lacks; it keeps the others for the grace time.
    pub(super) async fn confirm(&self, digests: Digests) -> Result<Digests, AskError> {
        let _permit = self.links.acquire().await.map_err(|_| self.failed("stopping"))?;
        match self.call(&BlobAsk::Confirm(digests), None).await? {
            (BlobTold::Confirmed(missing), _) => Ok(missing),
            (told, _) => Err(self.refused(told)),
        }
    }

    /// Tells the peer what is known of nodes, and hears what it knows.
    pub(crate) async fn gossip(&self, facts: Vec<Fact>) -> Result<Vec<Fact>, AskError> {
        match self.call(&BlobAsk::Gossip(facts), None).await? {
            (BlobTold::Gossip(facts), _) => Ok(facts),
            (told, _) => Err(self.refused(told)),
        }
    }

    fn refused(&self, told: BlobTold) -> AskError {
        let node = self.node;
        match told {
            BlobTold::Failed { why, full } => AskError::Refused { node, why, full },
            other => AskError::Refused { node, why: format!("answered {other:?}"), full: false },
        }
    }

    fn failed(&self, what: &'static str) -> AskError {
        AskError::Io { node: self.node, source: io::Error::other(what) }
    }

    /// One question and its answer; remembers whether there was one.
    async fn call(
        &self,
        ask: &BlobAsk,
        bytes: Option<&Bytes>,
    ) -> Result<(BlobTold, Bytes), AskError> {
        let answer = self.call_once(ask, bytes).await;
        let failed = answer.is_err().then(Instant::now);
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = failed;
        answer
    }

    /// A kept connection may have died meanwhile: then one more try on a fresh one.
    async fn call_once(
        &self,
        ask: &BlobAsk,
        bytes: Option<&Bytes>,
    ) -> Result<(BlobTold, Bytes), AskError> {
        let broken = |source| AskError::Io { node: self.node, source };
        let kept = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        if let Some(stream) = kept
            && let Ok(answer) = self.exchange(stream, ask, bytes).await
        {
            return Ok(answer);
        }
        let limit = Duration::from_millis(HANDSHAKE_MS);
        let stream = timeout(limit, self.reach.dial(self.node, &self.addr)).await;
        let stream = stream.map_err(|_| broken(io::ErrorKind::TimedOut.into()))?.map_err(broken)?;
        self.exchange(stream, ask, bytes).await.map_err(broken)
    }

    async fn exchange(
        &self,
        mut stream: Socket,
        ask: &BlobAsk,
        bytes: Option<&Bytes>,
    ) -> io::Result<(BlobTold, Bytes)> {
        let limit = Duration::from_millis(BLOB_CALL_MS);
        let answer = timeout(limit, converse(&mut stream, ask, bytes))
            .await
            .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < BLOB_LINKS_MAX {
            idle.push(stream);
        }
        Ok(answer)
    }
}

async fn converse(
    stream: &mut Socket,
    ask: &BlobAsk,
    bytes: Option<&Bytes>,
) -> io::Result<(BlobTold, Bytes)> {
    wire::write(stream, &encode(ask)).await?;
    if let Some(bytes) = bytes {
        wire::write(stream, bytes).await?;
    }
    let ended = || io::Error::from(io::ErrorKind::UnexpectedEof);
    let told = wire::read(stream, MESSAGE_BYTES_MAX).await?.ok_or_else(ended)?;
    let told: BlobTold = decode(&told).ok_or(io::ErrorKind::InvalidData)?;
    let bytes = match told {
        BlobTold::Found => wire::read(stream, BLOB_BYTES_MAX).await?.ok_or_else(ended)?,
        _ => Bytes::new(),
    };
    Ok((told, bytes))
}
