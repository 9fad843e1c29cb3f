//! R5 Committed is for ever: once a node reported an index committed, no node shows another entry there.

use super::{ShardView, Verdict, violation};
use crate::oracle::ledger::ShardLedger;
use crate::oracle::mirror::ShardMirror;

/// Compares what a node calls committed, from `since` on, with what was committed before.
pub fn check(view: &ShardView, log: &ShardMirror, ledger: &ShardLedger, since: u64) -> Verdict {
    let until = view.commit.min(ledger.committed_index());
    for index in since.max(log.start.index) + 1..=until {
        let (Some(known), Some(mine)) = (ledger.committed(index), log.get(index)) else {
            continue;
        };
        if known.term != mine.term || known.hash != mine.hash {
            return violation(
                "R5 committed_forever",
                format!(
                    "shard {} index {index}: node {} has committed term {} {:016x}, \
                     but term {} {:016x} was committed before",
                    view.shard, view.node, mine.term, mine.hash, known.term, known.hash
                ),
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::mirror::EntryMark;
    use ikada_consensus::Start;

    #[test]
    fn another_entry_at_a_committed_index_is_noticed() {
        let mark = |term, hash| EntryMark { index: 2, term, hash, change: false };
        let mut ledger = ShardLedger::without_state();
        ledger.note_committed(mark(1, 9), 1);
        let view = ShardView { commit: 2, last_index: 2, ..ShardView::sample(3) };
        let log = |m| ShardMirror::found(Start { index: 1, term: 1 }, 1, 0, vec![m]);
        assert!(check(&view, &log(mark(1, 9)), &ledger, 1).is_ok());
        assert!(check(&view, &log(mark(2, 9)), &ledger, 1).is_err());
        assert!(check(&view, &log(mark(1, 8)), &ledger, 1).is_err());
        let behind = ShardView { commit: 1, ..view };
        assert!(check(&behind, &log(mark(2, 9)), &ledger, 1).is_ok());
    }
}
