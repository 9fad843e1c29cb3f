//! R2 Log matching: entries of two logs with the same index and term are equal, and so is all before them.
//!
//! Checked by induction on every entry that any node writes: the same (index, term) must always come with the same
//! content and the same term before it.

use std::collections::BTreeMap;

use ikada_consensus::NodeId;
use ikada_state::ShardId;

use super::{Verdict, violation};
use crate::oracle::mirror::EntryMark;

/// Every entry ever written by anyone.
#[derive(Debug, Default)]
pub struct LogMatching {
    entries: BTreeMap<(ShardId, u64, u64), (u64, u64)>,
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
        let facts = (mark.hash, previous_term);
        let first = *self.entries.entry((shard, mark.index, mark.term)).or_insert(facts);
        if first == facts {
            return Ok(());
        }
        violation(
            "R2 log_matching",
            format!(
                "shard {shard} index {} term {}: node {node} wrote {:016x} after term {previous_term}, \
                 but {:016x} after term {} was written before",
                mark.index, mark.term, mark.hash, first.0, first.1
            ),
        )
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
    }
}
