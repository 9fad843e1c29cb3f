//! R3 Leader completeness: an entry committed in term T is in the log of every leader of a later term.
//!
//! Only entries whose commit term is lower than the leader's are asked for: an old-term leader elected late is legal.
//! By R2 it is enough to ask for the last of them. Where logs live in a database, a holder has what it has read of it: it must
//! lead only once it has read everything of earlier epochs.

use ikada_consensus::Role;

use super::{ShardView, Verdict, violation};
use crate::oracle::ledger::ShardLedger;
use crate::oracle::mirror::{EntryMark, ShardMirror};

/// Looks at a leader and its log as the world mirrors it.
pub fn check(view: &ShardView, log: &ShardMirror, ledger: &ShardLedger) -> Verdict {
    if view.role != Role::Leader {
        return Ok(());
    }
    let Some(last) = ledger.last_committed_before_term(view.term) else {
        return Ok(());
    };
    if log.covers(&last) { Ok(()) } else { lacking(view, &last) }
}

/// Looks at a holder whose log lives in a database; `view.commit` is how far it has read.
pub fn check_leased(view: &ShardView, ledger: &ShardLedger) -> Verdict {
    match ledger.last_committed_before_term(view.term) {
        Some(last) if view.role == Role::Leader && view.commit < last.index => lacking(view, &last),
        _ => Ok(()),
    }
}

fn lacking(view: &ShardView, last: &EntryMark) -> Verdict {
    violation(
        "R3 leader_completeness",
        format!(
            "shard {}: node {} leads term {} without the committed entry {}.{}",
            view.shard, view.node, view.term, last.term, last.index
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use ikada_consensus::Start;

    #[test]
    fn a_leader_without_a_committed_entry_is_noticed() {
        let mark = EntryMark { index: 2, term: 1, hash: 9, change: false };
        let mut ledger = ShardLedger::without_state();
        ledger.note_committed(mark, 1);
        let view = ShardView { role: Role::Leader, term: 2, ..ShardView::sample(1) };
        let start = Start { index: 1, term: 1 };
        let whole = ShardMirror::found(start, 2, 1, vec![mark]);
        let short = ShardMirror::found(start, 2, 1, Vec::new());
        assert!(check(&view, &whole, &ledger).is_ok());
        assert!(check(&view, &short, &ledger).is_err());
        // An old-term leader is not asked for what was committed in a later term.
        let late = ShardView { term: 1, ..view };
        assert!(check(&late, &short, &ledger).is_ok());
    }

    #[test]
    fn a_holder_that_has_not_read_to_the_end_is_noticed() {
        let mark = EntryMark { index: 2, term: 1, hash: 9, change: false };
        let mut ledger = ShardLedger::without_state();
        ledger.note_committed(mark, 1);
        let behind = ShardView { role: Role::Leader, term: 2, commit: 1, ..ShardView::sample(1) };
        assert!(check_leased(&behind, &ledger).is_err());
        assert!(check_leased(&ShardView { commit: 2, ..behind }, &ledger).is_ok());
        assert!(check_leased(&ShardView { role: Role::Candidate, ..behind }, &ledger).is_ok());
    }
}
