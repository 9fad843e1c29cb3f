//! R6 Quorum evidence: when an entry becomes committed, a quorum of every active configuration holds it on synced
//! storage. The simulated disks are asked, not the nodes.

use ikada_consensus::{Conf, NodeId, Role};
use ikada_state::ShardId;

use super::{ShardView, Verdict, violation};
use crate::oracle::mirror::EntryMark;

/// Looks at the moment in which an entry became committed; `holds` tells whether a node's disk has it.
pub fn check(
    shard: ShardId,
    mark: &EntryMark,
    conf: &Conf,
    holds: impl Fn(NodeId) -> bool,
) -> Verdict {
    for voters in [&conf.voters, &conf.voters_outgoing] {
        if voters.is_empty() {
            continue;
        }
        let holders: Vec<NodeId> = voters.iter().copied().filter(|node| holds(*node)).collect();
        if holders.len() * 2 <= voters.len() {
            return violation(
                "R6 quorum_evidence",
                format!(
                    "shard {shard} entry {}.{} was committed while only {holders:?} of {voters:?} hold it on disk",
                    mark.term, mark.index
                ),
            );
        }
    }
    Ok(())
}

/// A leader moves its commit index only to entries of its own term; older ones follow from those (the trap of
/// counting copies of an old entry).
pub fn check_term(view: &ShardView, before: &ShardView, term_at_commit: Option<u64>) -> Verdict {
    let led = before.role == Role::Leader && before.term == view.term && view.role == Role::Leader;
    let wrong = term_at_commit.is_some_and(|term| term != view.term);
    if !led || before.commit == view.commit || !wrong {
        return Ok(());
    }
    violation(
        "R6 quorum_evidence",
        format!(
            "shard {}: node {} leads term {} and committed index {} of term {term_at_commit:?} by counting",
            view.shard, view.node, view.term, view.commit
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_is_not_a_quorum_and_both_halves_of_a_joint_count() {
        let mark = EntryMark { index: 2, term: 1, hash: 9, change: false };
        let plain = Conf::of_voters([1, 2, 3, 4]);
        assert!(check(0, &mark, &plain, |node| node <= 3).is_ok());
        assert!(check(0, &mark, &plain, |node| node <= 2).is_err());
        let joint = Conf { voters_outgoing: vec![4, 5, 6], ..Conf::of_voters([1, 2, 3]) };
        assert!(check(0, &mark, &joint, |node| node <= 3).is_err());
        assert!(check(0, &mark, &joint, |node| [1, 2, 4, 5].contains(&node)).is_ok());
    }

    #[test]
    fn an_old_entry_committed_by_counting_is_noticed() {
        let before = ShardView { role: Role::Leader, term: 4, ..ShardView::sample(1) };
        let after = ShardView { commit: 2, last_index: 2, ..before };
        assert!(check_term(&after, &before, Some(4)).is_ok());
        assert!(check_term(&after, &before, Some(3)).is_err());
        let follower = ShardView { role: Role::Follower, ..before };
        assert!(check_term(&after, &follower, Some(3)).is_ok());
    }
}
