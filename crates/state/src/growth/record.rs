//! What shard 0 remembers of growth: who the first voters of added shards were, and the growth that runs.

use std::collections::VecDeque;

use minicbor::{Decode, Encode};

use crate::limits::{MOVES_IN_FLIGHT_MAX, SHARDS_MAX};
use crate::slots::SLOTS;
use crate::{ShardId, SlotMap};

/// Shards that one growth added. Kept for ever: a node that was down opens them from this.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct NewShards {
    /// The first of them.
    #[n(0)]
    pub first: ShardId,
    /// One past the last.
    #[n(1)]
    pub end: ShardId,
    /// Nodes that are their first voters.
    #[n(2)]
    pub voters: Vec<u64>,
}

/// One slot on its way.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Moving {
    #[n(0)]
    pub(crate) slot: u16,
    #[n(1)]
    pub(crate) target: ShardId,
    /// The target has it; the map follows once all chosen before it have arrived too.
    #[n(2)]
    pub(crate) settled: bool,
}

/// A growth that is not finished.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Running {
    /// Shards before.
    #[n(0)]
    pub(crate) from: u16,
    /// Slots that move in all.
    #[n(1)]
    pub(crate) slots: u16,
    /// Slots whose map entry has changed.
    #[n(2)]
    pub(crate) moved: u16,
    /// Slots on their way, in the order in which the map will change.
    #[n(3)]
    pub(crate) moving: VecDeque<Moving>,
    /// Messages with settings that each new shard must have applied before anything moves; 0 once all have.
    #[n(4)]
    pub(crate) settings: u64,
    /// Log time of its beginning.
    #[n(5)]
    pub(crate) started_ms: u64,
}

/// All that shard 0 knows of growth.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Growth {
    #[n(0)]
    pub(crate) added: Vec<NewShards>,
    #[n(1)]
    pub(crate) running: Option<Running>,
}

/// A running growth as readers see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrowthView {
    /// Shards before.
    pub from: u16,
    /// Shards in the end.
    pub to: u16,
    /// Slots that move in all.
    pub slots: u16,
    /// Slots that have moved.
    pub moved: u16,
    /// Log time of its beginning.
    pub started_ms: u64,
}

impl Growth {
    /// The first voters of a shard; none if the cluster was founded with it.
    pub fn voters_of(&self, shard: ShardId) -> Option<&[u64]> {
        let added = self.added.iter().find(|added| (added.first..added.end).contains(&shard))?;
        Some(&added.voters)
    }

    /// Whether a decoded record obeys what the steps rely on.
    pub(crate) fn is_valid(&self, shards: u16, map: &SlotMap) -> bool {
        let lists = self
            .added
            .iter()
            .all(|added| added.first > 0 && added.first < added.end && added.end <= shards);
        let is_new = |moving: &Moving, running: &Running| {
            moving.slot < SLOTS
                && (running.from..shards).contains(&moving.target)
                && map.shard(moving.slot) != moving.target
        };
        let running = self.running.as_ref().is_none_or(|running| {
            running.from > 0
                && running.from < shards
                && running.moving.len() <= MOVES_IN_FLIGHT_MAX
                && running.moving.iter().all(|moving| is_new(moving, running))
        });
        shards <= SHARDS_MAX.max(shards.min(SLOTS)) && lists && running
    }
}
