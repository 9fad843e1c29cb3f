//! One piece onto a majority of the nodes.

use std::sync::Arc;

use bytes::Bytes;
use ikada_replica::state::{Digest, Digests};
use tokio::sync::mpsc;
use tracing::debug;

use super::Shelf;
use super::ask::Peer;
use crate::config::CONFIRM_PIECES_MAX;

/// Why a piece is not on enough nodes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpreadError {
    /// Disks have no room.
    #[error("too few nodes have room on their disks")]
    Full,
    /// Too few nodes could be reached.
    #[error("only {copies} of the {needed} nodes needed have stored the bytes: {why}")]
    TooFew {
        /// Copies made.
        copies: usize,
        /// Copies needed.
        needed: usize,
        /// What the last failure was.
        why: String,
    },
}

/// One node's word.
type Word = Result<(), (String, bool)>;

impl Shelf {
    /// Stores a piece here and with all peers; done when a majority has it. The others go on by themselves if they have
    /// begun, and otherwise get it when they tidy up: a slow node must not make memory grow.
    pub(super) async fn spread(&self, digest: Digest, bytes: Bytes) -> Result<(), SpreadError> {
        let peers = self.peers();
        let needed = quorum(&peers);
        let (sender, words) = mpsc::channel(peers.len() + 1);
        let (here, piece, told) = (self.clone(), bytes.clone(), sender.clone());
        tokio::spawn(async move {
            let stored = here.store_here(digest, piece).await;
            let word = stored.map_err(|error| (error.to_string(), error.is_disk_full()));
            let _ = told.send(word).await;
        });
        for peer in &peers {
            let (peer, piece, told) = (peer.clone(), bytes.clone(), sender.clone());
            tokio::spawn(async move {
                let permit = tokio::select! {
                    permit = peer.links.acquire() => permit,
                    () = told.closed() => return,
                };
                let stored = match permit {
                    Ok(_permit) => peer.store(digest, &piece).await,
                    Err(_) => return,
                };
                if let Err(error) = &stored {
                    debug!(%error, %digest, "a peer did not store a piece");
                }
                let _ =
                    told.send(stored.map_err(|error| (error.to_string(), error.is_full()))).await;
            });
        }
        drop(sender);
        wait_for(needed, words).await
    }

    /// Has a majority say again that it has all these pieces and keeps them for the grace time.
    pub(crate) async fn confirm(&self, digests: &[Digest]) -> Result<(), SpreadError> {
        for some in digests.chunks(CONFIRM_PIECES_MAX) {
            self.confirm_some(some.to_vec().into()).await?;
        }
        Ok(())
    }

    async fn confirm_some(&self, digests: Digests) -> Result<(), SpreadError> {
        let peers = self.peers();
        let needed = quorum(&peers);
        let (sender, words) = mpsc::channel(peers.len() + 1);
        let all = |missing: Digests| match missing.is_empty() {
            true => Ok(()),
            false => Err((format!("{} pieces are missing", missing.len()), false)),
        };
        let (here, wanted, told) = (self.clone(), digests.clone(), sender.clone());
        tokio::spawn(async move {
            let confirmed = here.confirm_here(wanted).await;
            let word = confirmed.map_err(|error| (error.to_string(), false)).and_then(all);
            let _ = told.send(word).await;
        });
        for peer in &peers {
            let (peer, wanted, told) = (peer.clone(), digests.clone(), sender.clone());
            tokio::spawn(async move {
                let confirmed = peer.confirm(wanted).await;
                let word = confirmed.map_err(|error| (error.to_string(), false)).and_then(all);
                let _ = told.send(word).await;
            });
        }
        drop(sender);
        wait_for(needed, words).await
    }
}

/// How many copies make a majority of all nodes.
fn quorum(others: &[Arc<Peer>]) -> usize {
    let nodes = others.len() + 1;
    nodes / 2 + 1
}

/// Waits until so many nodes have said yes.
async fn wait_for(needed: usize, mut words: mpsc::Receiver<Word>) -> Result<(), SpreadError> {
    let (mut copies, mut full, mut why) = (0, false, "no answer".to_owned());
    while let Some(word) = words.recv().await {
        match word {
            Ok(()) => copies += 1,
            Err((reason, is_full)) => {
                why = reason;
                full |= is_full;
            }
        }
        if copies >= needed {
            return Ok(());
        }
    }
    match full {
        true => Err(SpreadError::Full),
        false => Err(SpreadError::TooFew { copies, needed, why }),
    }
}
