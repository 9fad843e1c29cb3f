//! R8 Persist before speak: no vote and no acknowledgement of entries leaves a node before the state that it promises
//! is synced. The mirror of the simulated disk is asked.

use ikada_consensus::{Message, MessageKind, NodeId};
use ikada_state::ShardId;

use super::{ShardView, Verdict, violation};
use crate::oracle::mirror::ShardMirror;

const NAME: &str = "R8 persist_before_speak";

/// What a message promises about its sender's disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Promise {
    /// "My vote in this term is yours."
    Vote {
        /// The term.
        term: u64,
        /// Whose it is.
        candidate: NodeId,
    },
    /// "I hold everything up to this index, and follow this term."
    Entries {
        /// The term.
        term: u64,
        /// The index.
        index: u64,
    },
}

impl Promise {
    /// What a message promises, if anything.
    pub fn of(message: &Message) -> Option<Promise> {
        if message.is_refusal() {
            return None;
        }
        match message.kind() {
            MessageKind::VoteAnswer => {
                Some(Promise::Vote { term: message.term(), candidate: message.to() })
            }
            MessageKind::AppendAnswer => {
                Some(Promise::Entries { term: message.term(), index: message.index() })
            }
            _ => None,
        }
    }
}

/// Compares a promise with the sender's disk.
pub fn check(node: NodeId, shard: ShardId, promise: Promise, durable: &ShardMirror) -> Verdict {
    match promise {
        Promise::Vote { term, candidate } => {
            let kept = durable.term > term || (durable.term == term && durable.vote == candidate);
            if kept {
                return Ok(());
            }
            let text = format!(
                "shard {shard}: node {node} votes for {candidate} in term {term}, its disk has term {} vote {}",
                durable.term, durable.vote
            );
            violation(NAME, text)
        }
        Promise::Entries { term, index } => {
            if durable.term >= term && durable.last_index() >= index {
                return Ok(());
            }
            let text = format!(
                "shard {shard}: node {node} acknowledges index {index} in term {term}, its disk has index {} term {}",
                durable.last_index(),
                durable.term
            );
            violation(NAME, text)
        }
    }
}

/// A node applies only what its own disk holds.
pub fn check_applied(view: &ShardView, durable: &ShardMirror) -> Verdict {
    if view.applied.index <= durable.last_index() {
        return Ok(());
    }
    violation(
        NAME,
        format!(
            "shard {}: node {} has applied {}, its disk ends at {}",
            view.shard,
            view.node,
            view.applied.index,
            durable.last_index()
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use ikada_consensus::Start;

    #[test]
    fn words_without_bytes_are_noticed() {
        let disk = ShardMirror::found(Start { index: 5, term: 2 }, 3, 2, Vec::new());
        assert!(check(1, 0, Promise::Vote { term: 3, candidate: 2 }, &disk).is_ok());
        assert!(check(1, 0, Promise::Vote { term: 3, candidate: 4 }, &disk).is_err());
        assert!(check(1, 0, Promise::Vote { term: 4, candidate: 2 }, &disk).is_err());
        assert!(check(1, 0, Promise::Entries { term: 3, index: 5 }, &disk).is_ok());
        assert!(check(1, 0, Promise::Entries { term: 3, index: 6 }, &disk).is_err());
        assert!(check(1, 0, Promise::Entries { term: 4, index: 5 }, &disk).is_err());
    }

    #[test]
    fn applying_ahead_of_the_disk_is_noticed() {
        let disk = ShardMirror::found(Start { index: 5, term: 2 }, 3, 2, Vec::new());
        let at = |index| ShardView {
            applied: ikada_state::Lsn { term: 2, index },
            ..ShardView::sample(1)
        };
        assert!(check_applied(&at(5), &disk).is_ok());
        assert!(check_applied(&at(6), &disk).is_err());
    }
}
