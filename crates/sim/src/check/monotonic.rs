//! R7 Monotonic: what a node knows only grows. Within one process: term, vote in a term, commit, applied, beginning of
//! the log; over its whole life: durable term and vote, checked when it starts again.
//! Always: beginning <= applied <= commit <= last.

use std::collections::BTreeMap;

use ikada_consensus::NodeId;
use ikada_state::ShardId;

use super::{ShardView, Verdict, violation};
use crate::oracle::mirror::ShardMirror;

const NAME: &str = "R7 monotonic";

/// The newest view of every shard of every node.
#[derive(Debug, Default)]
pub struct Monotonic {
    views: BTreeMap<(NodeId, ShardId), ShardView>,
}

impl Monotonic {
    /// Looks at one shard of one node.
    pub fn observe(&mut self, view: &ShardView) -> Verdict {
        let before = self.views.insert((view.node, view.shard), *view);
        ordered(view)?;
        let Some(before) = before.filter(|before| before.generation == view.generation) else {
            return Ok(());
        };
        let pairs = [
            ("term", before.term, view.term),
            ("commit", before.commit, view.commit),
            ("applied", before.applied.index, view.applied.index),
            ("log start", before.start_index, view.start_index),
        ];
        for (what, old, new) in pairs {
            if new < old {
                return fall(view, what, old, new);
            }
        }
        if before.term == view.term && before.vote != 0 && before.vote != view.vote {
            return fall(view, "vote", before.vote, view.vote);
        }
        Ok(())
    }

    /// A node without damage has started again: what was durable must be there.
    pub fn restarted(
        node: NodeId,
        shard: ShardId,
        durable: &ShardMirror,
        found: &ShardMirror,
        settled: u64,
    ) -> Verdict {
        Self::restarted_vote(node, shard, durable, found)?;
        let place = format!("shard {shard}: node {node} started again");
        if found.start.index < durable.start.index {
            let (new, old) = (found.start.index, durable.start.index);
            return violation(NAME, format!("{place} with its log from {new} after {old}"));
        }
        for mark in durable.iter().filter(|mark| mark.index <= settled) {
            if !found.covers(mark) {
                let text = format!("{place} without its synced entry {}.{}", mark.term, mark.index);
                return violation(NAME, text);
            }
        }
        Ok(())
    }

    /// Any node that starts again, damaged or not, remembers its term and vote.
    pub fn restarted_vote(
        node: NodeId,
        shard: ShardId,
        durable: &ShardMirror,
        found: &ShardMirror,
    ) -> Verdict {
        let place = format!("shard {shard}: node {node} started again");
        if found.term < durable.term {
            return violation(
                NAME,
                format!("{place} in term {} after {}", found.term, durable.term),
            );
        }
        if found.term == durable.term && durable.vote != 0 && found.vote != durable.vote {
            return violation(
                NAME,
                format!("{place} with vote {} after {}", found.vote, durable.vote),
            );
        }
        Ok(())
    }
}

fn ordered(view: &ShardView) -> Verdict {
    let right = view.start_index <= view.applied.index
        && view.applied.index <= view.commit
        && view.commit <= view.last_index;
    if right {
        return Ok(());
    }
    violation(
        NAME,
        format!(
            "shard {}: node {} has start {} applied {} commit {} last {}",
            view.shard,
            view.node,
            view.start_index,
            view.applied.index,
            view.commit,
            view.last_index
        ),
    )
}

fn fall(view: &ShardView, what: &str, old: u64, new: u64) -> Verdict {
    violation(
        NAME,
        format!("shard {}: node {} went from {what} {old} to {new}", view.shard, view.node),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::mirror::EntryMark;
    use ikada_consensus::Start;

    #[test]
    fn falling_numbers_and_changed_votes_are_noticed() {
        let base = ShardView { term: 5, vote: 2, ..ShardView::sample(1) };
        for bad in [ShardView { term: 4, ..base }, ShardView { vote: 3, ..base }] {
            let mut check = Monotonic::default();
            assert!(check.observe(&base).is_ok());
            assert!(check.observe(&bad).is_err());
            // Another process of the node may begin anew in memory.
            assert!(check.observe(&ShardView { generation: 2, ..bad }).is_ok());
        }
        let unordered = ShardView { commit: 9, ..base };
        assert!(Monotonic::default().observe(&unordered).is_err());
    }

    #[test]
    fn a_forgotten_vote_term_or_entry_is_noticed() {
        let mark = EntryMark { index: 2, term: 3, hash: 1, change: false };
        let start = Start { index: 1, term: 1 };
        let durable = ShardMirror::found(start, 3, 2, vec![mark]);
        let same = durable.clone();
        assert!(Monotonic::restarted(1, 0, &durable, &same, 2).is_ok());
        let no_vote = ShardMirror::found(start, 3, 0, vec![mark]);
        assert!(Monotonic::restarted(1, 0, &durable, &no_vote, 2).is_err());
        let old_term = ShardMirror::found(start, 2, 2, vec![mark]);
        assert!(Monotonic::restarted(1, 0, &durable, &old_term, 2).is_err());
        let short = ShardMirror::found(start, 4, 0, Vec::new());
        assert!(Monotonic::restarted(1, 0, &durable, &short, 2).is_err());
        assert!(Monotonic::restarted(1, 0, &durable, &short, 1).is_ok());
    }
}
