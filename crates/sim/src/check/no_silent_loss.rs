//! R11 No silent loss: a node that lost entries which it had synced neither leads nor votes until it has them again, or
//! until a leader of a term newer than any that it had acknowledged has committed here in that term: such a leader holds
//! every committed entry and counts none of the old acknowledgements.

use std::collections::BTreeMap;

use ikada_consensus::{NodeId, Role};
use ikada_state::ShardId;

use super::{ShardView, Verdict, violation};

const NAME: &str = "R11 no_silent_loss";

/// Which damaged node must reach which index before it may take part in elections.
#[derive(Debug, Default)]
pub struct NoSilentLoss {
    owed: BTreeMap<(NodeId, ShardId), Owed>,
}

#[derive(Debug, Clone, Copy)]
struct Owed {
    index: u64,
    /// Term at the start.
    term: u64,
}

impl NoSilentLoss {
    /// A node came back from damage in `term`: it had synced up to `had` and found its log up to `found`.
    pub fn restarted(&mut self, node: NodeId, shard: ShardId, had: u64, found: u64, term: u64) {
        let index = self.owed.get(&(node, shard)).map_or(0, |owed| owed.index).max(had);
        if found < index {
            self.owed.insert((node, shard), Owed { index, term });
        } else {
            self.owed.remove(&(node, shard));
        }
    }

    /// Whether a shard of a node still lacks entries.
    pub fn owes(&self, node: NodeId, shard: ShardId) -> bool {
        self.owed.contains_key(&(node, shard))
    }

    /// Whether a node lacks anything.
    pub fn owes_any(&self, node: NodeId) -> bool {
        self.owed.keys().any(|(of, _)| *of == node)
    }

    /// The node is gone for good.
    pub fn forget(&mut self, node: NodeId) {
        self.owed.retain(|(of, _), _| *of != node);
    }

    /// Looks at one shard of one node, whose committed log ends with `commit_term`; true when it has just been made
    /// whole.
    pub fn observe(
        &mut self,
        view: &ShardView,
        commit_term: Option<u64>,
    ) -> Result<bool, super::Violation> {
        let Some(owed) = self.owed.get(&(view.node, view.shard)).copied() else {
            return Ok(false);
        };
        let overtaken = view.term > owed.term && commit_term == Some(view.term);
        if view.last_index >= owed.index || overtaken {
            self.owed.remove(&(view.node, view.shard));
            return Ok(true);
        }
        if view.role != Role::Follower {
            let text = format!(
                "shard {}: node {} is {:?} with its log up to {}, but had synced up to {}",
                view.shard, view.node, view.role, view.last_index, owed.index
            );
            return violation(NAME, text).map(|()| false);
        }
        Ok(false)
    }

    /// A node grants its vote.
    pub fn voted(&self, node: NodeId, shard: ShardId, candidate: NodeId) -> Verdict {
        let Some(owed) = self.owed.get(&(node, shard)) else {
            return Ok(());
        };
        violation(
            NAME,
            format!(
                "shard {shard}: node {node} votes for {candidate} while entries up to {} are lost",
                owed.index
            ),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_node_that_leads_or_votes_is_noticed() {
        let mut check = NoSilentLoss::default();
        check.restarted(1, 0, 10, 4, 3);
        let view = ShardView { last_index: 5, ..ShardView::sample(1) };
        assert!(matches!(check.observe(&view, None), Ok(false)));
        assert!(check.observe(&ShardView { role: Role::Leader, ..view }, None).is_err());
        assert!(check.voted(1, 0, 2).is_err());
        assert!(check.voted(1, 1, 2).is_ok());
        assert!(matches!(check.observe(&ShardView { last_index: 10, ..view }, None), Ok(true)));
        assert!(check.voted(1, 0, 2).is_ok());
    }

    #[test]
    fn a_newer_leader_settles_the_debt() {
        let mut check = NoSilentLoss::default();
        check.restarted(1, 0, 10, 4, 3);
        let view = ShardView { last_index: 5, term: 4, ..ShardView::sample(1) };
        assert!(matches!(check.observe(&view, Some(3)), Ok(false)));
        assert!(matches!(check.observe(&view, Some(4)), Ok(true)));
    }

    #[test]
    fn nothing_is_owed_by_a_whole_log() {
        let mut check = NoSilentLoss::default();
        check.restarted(1, 0, 10, 10, 3);
        assert!(!check.owes_any(1));
    }
}
