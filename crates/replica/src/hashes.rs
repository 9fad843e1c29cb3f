//! Comparing state hashes between replicas.
//!
//! Promise: a node whose state differs from what a majority of the voters has at the same index stops, and only that
//! node (R4). A mere disagreement between two nodes stops nobody: it cannot tell who is wrong.

use std::collections::BTreeMap;

use ikada_consensus::NodeId;
use ikada_state::ShardId;

use crate::output::Halt;
use crate::peer::HashReport;

/// Checkpoints remembered per shard.
const CHECKPOINTS_MAX: usize = 16;

/// Reports per shard and index.
#[derive(Debug, Default)]
pub(crate) struct Hashes {
    seen: BTreeMap<ShardId, BTreeMap<u64, BTreeMap<NodeId, u64>>>,
}

impl Hashes {
    /// Adds a report; the verdict is about `node` (ourselves).
    pub fn report(
        &mut self,
        from: NodeId,
        report: HashReport,
        node: NodeId,
        voters: &[NodeId],
    ) -> Option<Halt> {
        let checkpoints = self.seen.entry(report.shard).or_default();
        checkpoints.entry(report.index).or_default().insert(from, report.hash);
        while checkpoints.len() > CHECKPOINTS_MAX {
            checkpoints.pop_first();
        }
        let reports = checkpoints.get(&report.index)?;
        let ours = *reports.get(&node)?;
        let theirs = report.hash;
        let votes = voters.iter().filter(|voter| reports.get(voter) == Some(&theirs)).count();
        (theirs != ours && votes > voters.len() / 2).then_some(Halt::Diverged {
            shard: report.shard,
            index: report.index,
            ours,
            theirs,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_minority_stops() {
        let mut hashes = Hashes::default();
        let voters = [1, 2, 3];
        let report = |hash| HashReport { shard: 0, index: 1_000, hash };
        assert_eq!(hashes.report(1, report(7), 1, &voters), None);
        assert_eq!(hashes.report(2, report(8), 1, &voters), None, "one against one");
        let halt = hashes.report(3, report(8), 1, &voters);
        assert_eq!(halt, Some(Halt::Diverged { shard: 0, index: 1_000, ours: 7, theirs: 8 }));
        // Seen from the majority, nobody stops.
        let mut hashes = Hashes::default();
        hashes.report(2, report(8), 2, &voters);
        hashes.report(3, report(8), 2, &voters);
        assert_eq!(hashes.report(1, report(7), 2, &voters), None);
    }
}
