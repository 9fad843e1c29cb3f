//! What shard 0 keeps about the members beside their addresses: the change under way, who left for good, how
//! leadership is steered, and what all of them understand. One small record, stored and hashed as a whole; absent while nothing was ever asked for.

use minicbor::{Decode, Encode};

use crate::hash::{RecordKind, digest_record};
use crate::shard::Shard;

/// Most ids of removed nodes that are remembered; beyond it no further node can be removed.
pub const REMOVED_MAX: usize = 4_096;
/// Most voters of a cluster: beyond it every write waits for too many disks.
pub const VOTERS_MAX: usize = 7;
/// Priorities lie between this and its negative.
pub const PRIORITY_MAX: i64 = 1_000;

/// A change of membership that was begun and is not finished in every shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct MemberChange {
    /// Index of the entry that began it; later changes have higher numbers.
    #[n(0)]
    pub number: u64,
    /// The node that shall become a voter of every shard.
    #[n(1)]
    pub add: Option<u64>,
    /// The node that shall be a member of no shard.
    #[n(2)]
    pub remove: Option<u64>,
    /// Log time at which it began.
    #[n(3)]
    pub since_ms: u64,
}

/// Cluster-wide wishes about the members.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Roster {
    /// The change under way; at most one.
    #[n(0)]
    pub change: Option<MemberChange>,
    /// Ids that left for good, sorted. None of them ever comes back.
    #[n(1)]
    pub removed: Vec<u64>,
    /// Members that shall not lead while another voter can, sorted.
    #[n(2)]
    pub cordoned: Vec<u64>,
    /// Priorities given at run time, sorted by node.
    #[n(3)]
    pub priorities: Vec<(u64, i64)>,
    /// What every member's program understands; none is 0, and is stored as nothing: nodes of before know no level.
    #[n(4)]
    pub level: Option<u32>,
    /// Least silence before an election, if it was changed at run time.
    #[n(5)]
    pub election_ms: Option<u32>,
}

impl Roster {
    /// Whether the node shall not lead.
    pub fn is_cordoned(&self, node: u64) -> bool {
        self.cordoned.binary_search(&node).is_ok()
    }

    /// Whether the node left for good.
    pub fn is_removed(&self, node: u64) -> bool {
        self.removed.binary_search(&node).is_ok()
    }

    /// The node's priority, if one was given at run time.
    pub fn priority(&self, node: u64) -> Option<i64> {
        let found = self.priorities.iter().find(|(of, _)| *of == node);
        found.map(|(_, priority)| *priority)
    }

    /// Forgets how a node that leaves was steered.
    pub(super) fn forget(&mut self, node: u64) {
        self.cordoned.retain(|other| *other != node);
        self.priorities.retain(|(other, _)| *other != node);
    }

    /// Whether a stored record obeys its bounds.
    pub(crate) fn is_valid(&self) -> bool {
        let rises = |list: &[u64]| list.windows(2).all(|pair| pair[0] < pair[1]);
        let steered: Vec<u64> = self.priorities.iter().map(|(node, _)| *node).collect();
        self.removed.len() <= REMOVED_MAX
            && self.level != Some(0)
            && self.election_ms.is_none_or(super::tune::is_fit)
            && rises(&self.removed)
            && rises(&self.cordoned)
            && rises(&steered)
            && self.priorities.iter().all(|(_, priority)| priority.abs() <= PRIORITY_MAX)
            && self.change.is_none_or(|change| change.add.is_some() || change.remove.is_some())
    }
}

impl Shard {
    /// Replaces the record and follows with the hash.
    pub(super) fn replace_roster(&mut self, roster: Roster) {
        if let Some(before) = &self.core.roster {
            self.core.hash.remove(digest_record(RecordKind::Roster, &**before));
        }
        self.core.hash.add(digest_record(RecordKind::Roster, &roster));
        self.core.roster = Some(Box::new(roster));
    }

    /// Forgets all wishes of a cluster that was given up. Its level stays: the records are of that level.
    pub(super) fn drop_roster(&mut self) {
        if let Some(before) = self.core.roster.take() {
            self.core.hash.remove(digest_record(RecordKind::Roster, &*before));
            if before.level.is_some() {
                self.replace_roster(Roster { level: before.level, ..Roster::default() });
            }
        }
    }

    /// A copy to change.
    pub(super) fn roster_now(&self) -> Roster {
        self.core.roster.as_deref().cloned().unwrap_or_default()
    }
}
