//! R9 Config: at most one uncommitted configuration; a leader proposes one only after committing an entry of its own
//! term; a configuration takes effect where the log says, on every node alike; a wiped identity takes no part.

use std::collections::BTreeMap;

use ikada_consensus::{Conf, NodeId};
use ikada_state::ShardId;

use super::{ShardView, Verdict, violation};
use crate::oracle::mirror::{EntryMark, ShardMirror};

const NAME: &str = "R9 config_safety";

/// Which configuration holds from which index on, per shard, as the first node to apply it had it.
#[derive(Debug, Default)]
pub struct ConfigSafety {
    confs: BTreeMap<ShardId, BTreeMap<u64, Conf>>,
}

impl ConfigSafety {
    /// The configuration with which a shard begins.
    pub fn begin(&mut self, shard: ShardId, index: u64, conf: Conf) {
        self.confs.entry(shard).or_default().insert(index, conf);
    }

    /// The configuration in force at an index.
    pub fn at(&self, shard: ShardId, index: u64) -> Option<&Conf> {
        self.confs.get(&shard)?.range(..=index).next_back().map(|(_, conf)| conf)
    }

    /// A leader appended a change to its log, which is `log` with the change in it.
    pub fn proposed(view: &ShardView, log: &ShardMirror, mark: &EntryMark) -> Verdict {
        let place = format!(
            "shard {}: node {} proposes a change at index {}",
            view.shard, view.node, mark.index
        );
        let open = log.iter().find(|e| e.change && e.index > view.commit && e.index < mark.index);
        if let Some(open) = open {
            return violation(
                NAME,
                format!("{place} while the one at {} is not committed", open.index),
            );
        }
        if log.term_at(view.commit).is_some_and(|term| term != mark.term) {
            return violation(
                NAME,
                format!("{place} before it has committed an entry of its term {}", mark.term),
            );
        }
        Ok(())
    }

    /// A node's configuration after a turn. It must be one that the log gives between applied and commit.
    /// `changed` tells whether the entry at an index is a change.
    pub fn observe(
        &mut self,
        view: &ShardView,
        conf: &Conf,
        changed: impl Fn(u64) -> bool,
    ) -> Verdict {
        let known = self.confs.entry(view.shard).or_default();
        if view.applied.index < view.start_index || known.is_empty() {
            return Ok(());
        }
        let low = known.range(..=view.applied.index).next_back().map_or(0, |(index, _)| *index);
        if known.range(low..=view.commit).any(|(_, known)| known == conf) {
            return Ok(());
        }
        let unseen = (view.applied.index.max(low)..=view.commit)
            .chain(low + 1..=view.applied.index)
            .find(|index| changed(*index) && !known.contains_key(index));
        if let Some(index) = unseen {
            known.insert(index, conf.clone());
            return Ok(());
        }
        violation(
            NAME,
            format!(
                "shard {}: node {} at applied {} commit {} has configuration {conf:?}, which no entry there gives",
                view.shard, view.node, view.applied.index, view.commit
            ),
        )
    }

    /// A process with a wiped disk was seen.
    pub fn wiped(view: &ShardView, commit_at_start: u64) -> Verdict {
        let took_part = view.role == ikada_consensus::Role::Leader || view.commit > commit_at_start;
        if took_part {
            return violation(
                NAME,
                format!(
                    "shard {}: node {} takes part under its old id with a wiped disk",
                    view.shard, view.node
                ),
            );
        }
        Ok(())
    }

    /// A node answers a question about votes; `wiped` tells whether the asker lost its disk before it asked.
    pub fn answered(node: NodeId, asker: NodeId, wiped: bool) -> Verdict {
        if !wiped {
            return Ok(());
        }
        violation(
            NAME,
            format!("node {node} answers a vote request of node {asker}, whose disk was wiped"),
        )
    }

    /// Every node that some configuration of a shard names.
    pub fn newest(&self, shard: ShardId) -> Option<&Conf> {
        self.confs.get(&shard)?.values().next_back()
    }

    /// Whether a node votes in the newest configuration of any shard.
    pub fn is_voter(&self, node: NodeId) -> bool {
        self.confs.values().filter_map(|c| c.values().next_back()).any(|conf| conf.is_voter(node))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ikada_consensus::{Role, Start};

    fn change(index: u64, term: u64) -> EntryMark {
        EntryMark { index, term, hash: index, change: true }
    }

    #[test]
    fn a_second_or_an_early_change_is_noticed() {
        let start = Start { index: 1, term: 1 };
        let view = ShardView { role: Role::Leader, term: 2, commit: 2, ..ShardView::sample(1) };
        let plain = EntryMark { change: false, ..change(2, 2) };
        let log = ShardMirror::found(start, 2, 1, vec![plain, change(3, 2), change(4, 2)]);
        assert!(ConfigSafety::proposed(&view, &log, &change(3, 2)).is_ok());
        assert!(ConfigSafety::proposed(&view, &log, &change(4, 2)).is_err());
        let early = ShardView { commit: 1, ..view };
        assert!(ConfigSafety::proposed(&early, &log, &change(3, 2)).is_err());
    }

    #[test]
    fn a_configuration_out_of_nowhere_is_noticed() {
        let mut check = ConfigSafety::default();
        check.begin(0, 1, Conf::of_voters([1, 2, 3]));
        let view = ShardView::sample(1);
        assert!(check.observe(&view, &Conf::of_voters([1, 2, 3]), |_| false).is_ok());
        assert!(check.observe(&view, &Conf::of_voters([1, 2]), |_| false).is_err());
        let later = ShardView { commit: 4, last_index: 4, ..view };
        assert!(check.observe(&later, &Conf::of_voters([1, 2]), |index| index == 3).is_ok());
        assert!(check.observe(&later, &Conf::of_voters([1, 4]), |index| index == 3).is_err());
        assert_eq!(check.at(0, 3), Some(&Conf::of_voters([1, 2])));
    }

    #[test]
    fn a_wiped_node_that_takes_part_is_noticed() {
        let view = ShardView::sample(1);
        assert!(ConfigSafety::answered(2, 1, false).is_ok());
        assert!(ConfigSafety::answered(2, 1, true).is_err());
        assert!(ConfigSafety::wiped(&view, 1).is_ok());
        assert!(ConfigSafety::wiped(&ShardView { commit: 5, ..view }, 1).is_err());
        assert!(ConfigSafety::wiped(&ShardView { role: Role::Leader, ..view }, 1).is_err());
    }
}
