//! The members of the cluster, as shard 0 records them: changes are driven to their end, leadership is steered.
//!
//! Promise: whoever leads shard 0 drives the one change under way, step by step and in every shard, from nothing but
//! the log: a leader that dies in the middle is followed by one that goes on. A step is proposed only while a majority
//! of the voters after it is connected, so that a change cannot cost the cluster its majority.
//!
//! Leaves out: what may be asked for (`state/members`), how one shard changes (`consensus/shard/change.rs`), and how
//! nodes find each other (`node`).

mod balance;
mod drive;
mod steer;

pub(crate) use balance::Balance;
pub use balance::Move;

use ikada_consensus::NodeId;
use ikada_state::{Member, Roster};

use crate::output::{Halt, Now};
use crate::replica::Replica;

/// How often changes and wishes are looked at.
const TEND_EVERY_MS: u64 = 250;

/// Who belongs to the cluster, for those who hold links and addresses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Roll {
    /// All members, in id order.
    pub members: Vec<Member>,
    /// Ids that left for good.
    pub removed: Vec<NodeId>,
}

/// What a node remembers between two looks.
#[derive(Debug, Default)]
pub(crate) struct Tending {
    next_ms: u64,
    told: Roll,
    priority: Option<i64>,
    noted_ms: u64,
    pub level_told_ms: u64,
    pub reach_told_ms: u64,
    pub stragglers_at_ms: u64,
    election_ms: u64,
    pub balance: Balance,
}

impl Replica {
    pub(crate) fn tend_members(&mut self, now: Now) {
        if now.mono_ms < self.tending.next_ms {
            return;
        }
        self.tending.next_ms = now.mono_ms + TEND_EVERY_MS;
        self.tell_roll();
        self.watch_disks(now);
        self.watch_database(now);
        self.follow_priority();
        self.follow_elections();
        self.note_priority(now);
        self.give_leaderships_away();
        self.tend_level(now);
        self.tell_reach(now);
        if self.seats[0].leads() {
            self.drive_change(now);
            self.balance_leaders(now);
        }
    }

    /// Hands out the roll when it has changed. A node that finds itself removed stops.
    fn tell_roll(&mut self) {
        let state = &self.seats[0].state;
        let removed = state.roster().map_or(&[][..], |roster| &roster.removed);
        if state.members() == self.tending.told.members && removed == self.tending.told.removed {
            return;
        }
        let roll = Roll { members: state.members().to_vec(), removed: removed.to_vec() };
        if roll.removed.contains(&self.config.node) {
            self.outputs.halt = Some(Halt::Removed { node: self.config.node });
        }
        self.tending.told = roll.clone();
        self.outputs.roll = Some(roll);
    }

    pub(crate) fn roster(&self) -> Option<&Roster> {
        self.seats[0].state.roster()
    }

    /// Whether a connection to the node stands, or it is this one.
    pub(crate) fn is_up(&self, node: NodeId) -> bool {
        node == self.config.node || self.peers.get(&node).is_some_and(|peer| peer.up)
    }
}
