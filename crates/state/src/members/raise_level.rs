//! `RaiseLevel`: what every member's program understands, as one number that only rises.
//!
//! A program of level n knows every order and every stored record of the levels up to n. An order of a higher level than the
//! cluster's is not proposed, so that a node of an older version never meets one. The order names the nodes that were heard
//! to understand the level: should another have become a member meanwhile, nothing is raised.
//!
//! Leaves out: who is heard, and what is refused until then (`replica/level.rs`).

use minicbor::{Decode, Encode};

use crate::shard::{Batch, Shard};
use crate::{Effect, RefusalCode, Reply};

/// What this program understands. Raised by one, once per release, if the release brings orders, fields of orders or stored
/// records that the one before does not know.
pub const LEVEL: u32 = 1;

/// Raises the cluster's level.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct RaiseLevel {
    /// The new level; must exceed the current one.
    #[n(0)]
    pub level: u32,
    /// Nodes that understand it.
    #[n(1)]
    pub nodes: Vec<u64>,
}

impl Shard {
    /// The cluster's level; 0 until it was raised, and outside shard 0.
    pub fn level(&self) -> u32 {
        self.core.roster.as_deref().and_then(|roster| roster.level).unwrap_or(0)
    }

    pub(crate) fn apply_raise_level(&mut self, batch: &mut Batch, order: &RaiseLevel) -> Reply {
        if self.core.shard != 0 {
            return Reply::refused(RefusalCode::WrongShard);
        }
        let is_named = |node: u64| order.nodes.contains(&node);
        if !self.core.members.iter().all(|member| is_named(member.node)) {
            return Reply::refused(RefusalCode::ChangePending);
        }
        if order.level <= self.level() {
            return Reply::refused(RefusalCode::VersionConflict);
        }
        // Whatever follows may be of that level.
        batch.is_newer |= order.level > LEVEL;
        let roster = super::Roster { level: Some(order.level), ..self.roster_now() };
        self.replace_roster(roster);
        batch.tell(Effect::MembersChanged);
        Reply::LevelRaised
    }
}
