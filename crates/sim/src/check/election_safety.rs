//! R1 Election safety: for each shard and term at most one node ever acts as leader.

use std::collections::BTreeMap;

use ikada_consensus::{NodeId, Role};
use ikada_state::ShardId;

use super::{ShardView, Verdict, violation};

/// Who led which term.
#[derive(Debug, Default)]
pub struct ElectionSafety {
    leaders: BTreeMap<(ShardId, u64), NodeId>,
}

impl ElectionSafety {
    /// Looks at one shard of one node.
    pub fn observe(&mut self, view: &ShardView) -> Verdict {
        if view.role != Role::Leader {
            return Ok(());
        }
        let first = *self.leaders.entry((view.shard, view.term)).or_insert(view.node);
        if first == view.node {
            return Ok(());
        }
        violation(
            "R1 election_safety",
            format!(
                "shard {} term {}: node {first} and node {} both lead",
                view.shard, view.term, view.node
            ),
        )
    }

    /// Who led a term, if anyone did.
    pub fn leader_of(&self, shard: ShardId, term: u64) -> Option<NodeId> {
        self.leaders.get(&(shard, term)).copied()
    }

    /// How many terms of all shards had a leader.
    pub fn terms_led(&self) -> usize {
        self.leaders.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_leaders_of_one_term_are_noticed() {
        let mut check = ElectionSafety::default();
        let leader = |node, term| ShardView { role: Role::Leader, term, ..ShardView::sample(node) };
        assert!(check.observe(&leader(1, 2)).is_ok());
        assert!(check.observe(&leader(1, 2)).is_ok());
        assert!(check.observe(&leader(2, 3)).is_ok());
        assert!(check.observe(&leader(2, 2)).is_err());
    }
}
