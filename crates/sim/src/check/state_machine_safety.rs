//! R4 State machine safety: no two nodes have different states at the same index.
//!
//! Every node's state hash is compared with that of a reference which applied each committed entry once, in order,
//! and never restarted, snapshotted or restored.

use super::{ShardView, Verdict, violation};
use crate::oracle::ledger::ShardLedger;

/// Looks at what a node has applied.
pub fn check(view: &ShardView, ledger: &ShardLedger) -> Verdict {
    let Some((term, hash)) = ledger.state_at(view.applied.index) else {
        return violation(
            "R4 state_machine_safety",
            format!(
                "shard {}: node {} applied index {}, but only {} is committed",
                view.shard,
                view.node,
                view.applied.index,
                ledger.committed_index()
            ),
        );
    };
    if term == view.applied.term && hash == view.hash {
        return Ok(());
    }
    violation(
        "R4 state_machine_safety",
        format!(
            "shard {} index {}: node {} has term {} hash {:016x}, the reference has term {term} hash {hash:016x}",
            view.shard, view.applied.index, view.node, view.applied.term, view.hash
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use ikada_state::Lsn;

    #[test]
    fn another_hash_or_an_uncommitted_index_is_noticed() {
        let ledger = ShardLedger::without_state();
        let (term, hash) = ledger.state_at(1).unwrap();
        let view = ShardView { applied: Lsn { term, index: 1 }, hash, ..ShardView::sample(1) };
        assert!(check(&view, &ledger).is_ok());
        assert!(check(&ShardView { hash: hash ^ 1, ..view }, &ledger).is_err());
        let ahead = ShardView { applied: Lsn { term, index: 2 }, ..view };
        assert!(check(&ahead, &ledger).is_err());
    }
}
