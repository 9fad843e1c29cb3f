//! One piece onto a majority of the nodes, and whether a majority has pieces.

use std::collections::{BTreeMap, BTreeSet};
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
    /// So many nodes said that they have not got them that waiting helps nothing.
    #[error("{lost} of the pieces are on too few nodes")]
    Lost {
        /// Pieces without a majority.
        lost: usize,
    },
}

/// One node's word.
type Word = Result<(), (String, bool)>;
/// What one node lacks, or why it did not say.
type Lacks = Result<Digests, String>;

impl Shelf {
    /// Stores a piece here and with all peers; done when a majority has it. The others go on by themselves if they have
    /// begun, and otherwise get it when they tidy up: a slow node, or a slow disk here, must not make memory grow.
    pub(super) async fn spread(&self, digest: Digest, bytes: Bytes) -> Result<(), SpreadError> {
        let peers = self.peers();
        let needed = quorum(&peers);
        let (sender, words) = mpsc::channel(peers.len() + 1);
        let (here, piece, told) = (self.clone(), bytes.clone(), sender.clone());
        tokio::spawn(async move {
            let place = tokio::select! {
                biased;
                () = told.closed() => return,
                place = here.disk_place() => place,
            };
            let stored = match place {
                Ok(place) => here.store_at(place, digest, piece).await,
                Err(error) => Err(error),
            };
            let word = stored.map_err(|error| (error.to_string(), error.is_disk_full()));
            let _ = told.send(word).await;
        });
        for peer in &peers {
            let (peer, piece, told) = (peer.clone(), bytes.clone(), sender.clone());
            tokio::spawn(async move {
                let permit = tokio::select! {
                    biased;
                    () = told.closed() => return,
                    permit = peer.links.acquire() => permit,
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

    /// Has a majority say again of each of these pieces that it has it and keeps it for the grace time.
    pub(crate) async fn confirm(&self, digests: &[Digest]) -> Result<(), SpreadError> {
        for some in digests.chunks(CONFIRM_PIECES_MAX) {
            self.confirm_some(some.to_vec().into()).await?;
        }
        Ok(())
    }

    async fn confirm_some(&self, digests: Digests) -> Result<(), SpreadError> {
        let peers = self.peers();
        let (sender, words) = mpsc::channel(peers.len() + 1);
        let (here, wanted, told) = (self.clone(), digests.clone(), sender.clone());
        tokio::spawn(async move {
            let lacks = here.confirm_here(wanted).await.map_err(|error| error.to_string());
            let _ = told.send(lacks).await;
        });
        for peer in &peers {
            let (peer, wanted, told) = (peer.clone(), digests.clone(), sender.clone());
            tokio::spawn(async move {
                let lacks = peer.confirm(wanted).await.map_err(|error| error.to_string());
                let _ = told.send(lacks).await;
            });
        }
        drop(sender);
        weigh(peers.len() + 1, quorum(&peers), words).await
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

/// Waits until each piece is on so many nodes, which may be others for each, or cannot be.
async fn weigh(
    nodes: usize,
    needed: usize,
    mut words: mpsc::Receiver<Lacks>,
) -> Result<(), SpreadError> {
    let mut lacking: BTreeMap<Digest, usize> = BTreeMap::new();
    let (mut answered, mut copies, mut why) = (0, 0, "no answer".to_owned());
    while let Some(word) = words.recv().await {
        match word {
            Ok(lacks) => {
                answered += 1;
                let once: BTreeSet<Digest> = lacks.iter().copied().collect();
                once.into_iter().for_each(|digest| *lacking.entry(digest).or_default() += 1);
            }
            Err(reason) => why = reason,
        }
        // Of the piece that the most nodes lack.
        copies = answered - lacking.values().max().copied().unwrap_or(0);
        if copies >= needed {
            return Ok(());
        }
        let lost = lacking.values().filter(|lack| nodes - **lack < needed).count();
        if lost > 0 {
            return Err(SpreadError::Lost { lost });
        }
    }
    Err(SpreadError::TooFew { copies, needed, why })
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn judged(told: Vec<Lacks>) -> Result<(), SpreadError> {
        let (sender, words) = mpsc::channel(told.len());
        for word in told {
            sender.send(word).await.unwrap();
        }
        drop(sender);
        weigh(3, 2, words).await
    }

    // A2, A4: silence is no word, and each piece counts by itself.
    #[tokio::test]
    async fn a2_a_node_that_does_not_answer_has_lost_nothing() {
        let (one, two) = (Digest([1; 32]), Digest([2; 32]));
        let lacks = |digests: &[Digest]| Ok(Digests::from(digests.to_vec()));
        let silent = || Err("no route".to_owned());
        assert_eq!(judged(vec![lacks(&[]), lacks(&[])]).await, Ok(()));
        assert_eq!(judged(vec![lacks(&[one]), lacks(&[two]), lacks(&[])]).await, Ok(()));
        let few = Err(SpreadError::TooFew { copies: 1, needed: 2, why: "no route".to_owned() });
        assert_eq!(judged(vec![lacks(&[]), silent(), silent()]).await, few);
        let few = Err(SpreadError::TooFew { copies: 1, needed: 2, why: "no route".to_owned() });
        assert_eq!(judged(vec![lacks(&[one]), lacks(&[]), silent()]).await, few);
        let lost = Err(SpreadError::Lost { lost: 1 });
        assert_eq!(judged(vec![lacks(&[one, one]), lacks(&[one])]).await, lost);
    }
}
