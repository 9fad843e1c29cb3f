//! R2 Log matching: entries of two logs with the same index and term are equal, and so is all before them.
//!
//! Checked by induction on every entry that any node writes: the same (index, term) must always come with the same
//! content and the same term before it. A lone voter that loses power may forget a whole term that it alone knew; its
//! entries of that term were never written as far as anyone can tell.

use std::collections::BTreeMap;

use ikada_consensus::NodeId;
use ikada_state::ShardId;

use super::{Verdict, violation};
use crate::oracle::mirror::EntryMark;

#[derive(Debug, Clone, Copy)]
struct Written {
    hash: u64,
    previous_term: u64,
    /// The only node that wrote it, if there is only one.
    alone: Option<NodeId>,
}

/// Every entry ever written by anyone.
#[derive(Debug, Default)]
pub struct LogMatching {
    entries: BTreeMap<(ShardId, u64, u64), Written>,
}

impl LogMatching {
    /// A node wrote this entry after one of `previous_term`.
    pub fn wrote(
        &mut self,
        node: NodeId,
        shard: ShardId,
        mark: &EntryMark,
        previous_term: u64,
    ) -> Verdict {
        let key = (shard, mark.index, mark.term);
        let fresh = Written { hash: mark.hash, previous_term, alone: Some(node) };
        let first = self.entries.entry(key).or_insert(fresh);
        if first.alone != Some(node) {
            first.alone = None;
        }
        let first = *first;
        if (first.hash, first.previous_term) == (mark.hash, previous_term) {
            return Ok(());
        }
        violation(
            "R2 log_matching",
            format!(
                "shard {shard} index {} term {}: node {node} wrote {:016x} after term {previous_term}, \
                 but {:016x} after term {} was written before",
                mark.index, mark.term, mark.hash, first.hash, first.previous_term
            ),
        )
    }

    /// A node started again in this term: later terms that it alone wrote in are forgotten.
    pub fn restarted(&mut self, node: NodeId, shard: ShardId, term: u64) {
        self.entries.retain(|(of, _, written), entry| {
            *of != shard || *written <= term || entry.alone != Some(node)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_content_or_another_past_is_noticed() {
        let mark = |hash| EntryMark { index: 5, term: 2, hash, change: false };
        let mut check = LogMatching::default();
        assert!(check.wrote(1, 0, &mark(7), 1).is_ok());
        assert!(check.wrote(2, 0, &mark(7), 1).is_ok());
        assert!(check.wrote(2, 0, &mark(8), 1).is_err());
        assert!(check.wrote(3, 0, &mark(7), 2).is_err());
        assert!(check.wrote(3, 1, &mark(8), 2).is_ok());
        check.restarted(3, 1, 2);
        assert!(check.wrote(3, 1, &mark(9), 2).is_err(), "term 2 is remembered");
        check.restarted(3, 1, 1);
        assert!(check.wrote(3, 1, &mark(9), 2).is_ok(), "term 2 was its own and is forgotten");
        check.restarted(1, 0, 1);
        assert!(check.wrote(1, 0, &mark(8), 1).is_err(), "others wrote it too");
    }
}
