//! R8 Persist before speak: no vote and no acknowledgement of entries leaves a node before the state that it promises
//! is synced. The mirror of the simulated disk is asked.
//!
//! An acknowledgement of an older term may leave after a later leader has cut those entries, even if they were cut in
//! memory and never written: it is then like an answer that was late on the wire. It cannot help to commit what is
//! gone. Say that an answer for entry E of term t is released after a leader of a later term has cut E, and let L be the
//! leader of the lowest term above t whose log lacks E. A quorum for E in t and the quorum that elected L share a voter
//! V. V took E before it voted for L, as it refuses term t afterwards. V also released its answer, and that happens only
//! when E is durable or cut by a later leader; before L's election there is no such leader. So V held E when it voted,
//! also if it had crashed in between, and would have refused L, whose log is older. Hence E has no quorum in t, and
//! a late answer makes none. The evidence asked for is that the disk's log ends with a later leader's entry.

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
            let was_cut = durable.last_term() > term;
            if durable.term >= term && (durable.last_index() >= index || was_cut) {
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

/// A node applies only what its own disk holds: in its log, or in the snapshot from which its state was loaded. Such a
/// snapshot is durable before it is loaded; that the log begins behind it may reach a slow disk later.
pub fn check_applied(view: &ShardView, durable: &ShardMirror) -> Verdict {
    if view.applied.index <= durable.last_index().max(view.start_index) {
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
    use crate::oracle::mirror::{EntryMark, MarkRecord};
    use ikada_consensus::{EntryKind, Start};

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
    fn a_late_answer_for_entries_that_a_later_leader_cut_is_no_lie() {
        let mark = |index, term| EntryMark::new(index, term, EntryKind::Normal, b"", b"");
        let mut disk = ShardMirror::found(Start { index: 5, term: 2 }, 3, 2, Vec::new());
        disk.follow(&MarkRecord::Hard { term: 4, vote: 0 });
        disk.follow(&MarkRecord::Append(vec![mark(6, 4)]));
        assert!(check(1, 0, Promise::Entries { term: 3, index: 7 }, &disk).is_ok());
        assert!(check(1, 0, Promise::Entries { term: 4, index: 7 }, &disk).is_err());
    }

    #[test]
    fn a_raised_term_does_not_excuse_entries_that_were_never_written() {
        let mut disk = ShardMirror::found(Start { index: 5, term: 2 }, 3, 2, Vec::new());
        disk.follow(&MarkRecord::Hard { term: 4, vote: 1 });
        assert!(check(1, 0, Promise::Entries { term: 3, index: 6 }, &disk).is_err());
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
