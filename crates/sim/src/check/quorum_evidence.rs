//! R6 Quorum evidence: when an entry becomes committed, a quorum of every active configuration holds it on synced
//! storage. The simulated disks are asked, not the nodes.

use ikada_consensus::{Conf, NodeId};
use ikada_state::ShardId;

use super::{Verdict, violation};
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_is_not_a_quorum_and_both_halves_of_a_joint_count() {
        let mark = EntryMark {
            index: 2,
            term: 1,
            hash: 9,
            change: false,
        };
        let plain = Conf::of_voters([1, 2, 3, 4]);
        assert!(check(0, &mark, &plain, |node| node <= 3).is_ok());
        assert!(check(0, &mark, &plain, |node| node <= 2).is_err());
        let joint = Conf {
            voters_outgoing: vec![4, 5, 6],
            ..Conf::of_voters([1, 2, 3])
        };
        assert!(check(0, &mark, &joint, |node| node <= 3).is_err());
        assert!(check(0, &mark, &joint, |node| [1, 2, 4, 5].contains(&node)).is_ok());
    }
}
