//! `ChangeMembers` begins a change of membership, `SettleChange` ends it once every shard follows it.
//!
//! Promises: one change at a time; a node that left never comes back under its id, nor does one whose disk is another;
//! somebody always stays; nobody comes who understands less than the cluster's level. A change that is already so is answered as done, so that a resend is harmless. Removing the
//! node that is being added calls the addition off.
//!
//! Leaves out: how shards get there (the leader of shard 0 drives it) and whether enough nodes are up for it.

use minicbor::{Decode, Encode};

use super::roster::{MemberChange, REMOVED_MAX, VOTERS_MAX};
use super::{ADDRESS_BYTES_MAX, Member};
use crate::shard::{Batch, Shard};
use crate::{Effect, RefusalCode, Reply};

/// Begins a change: add a node, remove one, or put one in another's place.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct ChangeMembers {
    /// The node to add.
    #[n(0)]
    pub add: Option<Member>,
    /// The node to remove.
    #[n(1)]
    pub remove: Option<u64>,
    /// What the program of the node to add understands.
    #[n(2)]
    #[cbor(default)]
    pub level: u32,
}

/// Says that every shard has followed a change.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct SettleChange {
    /// Which change.
    #[n(0)]
    pub number: u64,
}

impl Shard {
    pub(crate) fn apply_change_members(
        &mut self,
        batch: &mut Batch,
        order: ChangeMembers,
    ) -> Reply {
        if self.core.shard != 0 {
            return Reply::refused(RefusalCode::WrongShard);
        }
        if self.is_change_done(&order) {
            return Reply::ChangeBegun { number: 0 };
        }
        let mut roster = self.roster_now();
        if let Some(change) = roster.change {
            let given_up = order.add.is_none() && order.remove.is_some();
            if !(given_up && order.remove == change.add && change.remove.is_none()) {
                return match self.is_same_change(&order, change) {
                    true => Reply::ChangeBegun { number: change.number },
                    false => Reply::refused(RefusalCode::ChangePending),
                };
            }
        }
        if self.growth_running().is_some() {
            return Reply::refused(RefusalCode::GrowthRunning);
        }
        if let Err(code) = self.check_change(&order) {
            return Reply::refused(code);
        }
        let number = self.core.applied.index;
        let add = order.add.as_ref().map(|member| member.node);
        let since_ms = self.core.time_ms;
        roster.change = Some(MemberChange { number, add, remove: order.remove, since_ms });
        if let Some(member) = order.add {
            let mut members = self.core.members.clone();
            members.push(member);
            members.sort();
            self.replace_members(members);
        }
        self.replace_roster(roster);
        batch.tell(Effect::MembersChanged);
        Reply::ChangeBegun { number }
    }

    pub(crate) fn apply_settle_change(&mut self, batch: &mut Batch, order: &SettleChange) -> Reply {
        let mut roster = self.roster_now();
        let Some(change) = roster.change.filter(|change| change.number == order.number) else {
            return Reply::refused(RefusalCode::VersionConflict);
        };
        roster.change = None;
        if let Some(node) = change.remove {
            if let Err(place) = roster.removed.binary_search(&node) {
                roster.removed.insert(place, node);
            }
            roster.forget(node);
            let mut members = self.core.members.clone();
            members.retain(|member| member.node != node);
            self.replace_members(members);
        }
        self.replace_roster(roster);
        batch.tell(Effect::MembersChanged);
        Reply::ChangeSettled
    }

    /// Whether nothing is left to do.
    fn is_change_done(&self, order: &ChangeMembers) -> bool {
        let roster = self.core.roster.as_deref();
        if roster.is_some_and(|roster| roster.change.is_some()) {
            return false;
        }
        let added = order.add.as_ref().is_none_or(|add| {
            let same =
                |have: &&Member| (have.node, have.incarnation) == (add.node, add.incarnation);
            self.core.members.iter().find(same).is_some()
        });
        let gone = |node| roster.is_some_and(|roster| roster.is_removed(node));
        let named = order.add.is_some() || order.remove.is_some();
        named && added && order.remove.is_none_or(gone)
    }

    fn is_same_change(&self, order: &ChangeMembers, change: MemberChange) -> bool {
        let add = order.add.as_ref();
        let known = add.is_none_or(|add| {
            let found = self.core.members.iter().find(|have| have.node == add.node);
            found.is_some_and(|have| have.incarnation == add.incarnation)
        });
        known && add.map(|add| add.node) == change.add && order.remove == change.remove
    }

    fn check_change(&self, order: &ChangeMembers) -> Result<(), RefusalCode> {
        let members = &self.core.members;
        let roster = self.core.roster.as_deref();
        if order.add.is_none() && order.remove.is_none() {
            return Err(RefusalCode::BadValue);
        }
        let mut after = members.len();
        if let Some(node) = order.remove {
            if !members.iter().any(|member| member.node == node) {
                return Err(RefusalCode::NodeNotFound);
            }
            if roster.is_some_and(|roster| roster.removed.len() >= REMOVED_MAX) {
                return Err(RefusalCode::TooManyMembers);
            }
            after -= 1;
        }
        if let Some(add) = &order.add {
            let too_long = [&add.peer_addr, &add.client_addr]
                .iter()
                .any(|addr| addr.is_empty() || addr.len() > ADDRESS_BYTES_MAX);
            if add.node == 0 || too_long {
                return Err(RefusalCode::BadValue);
            }
            if roster.is_some_and(|roster| roster.is_removed(add.node)) {
                return Err(RefusalCode::NodeRemoved);
            }
            if order.level < self.level() {
                return Err(RefusalCode::NodeTooOld);
            }
            let stays = |member: &&Member| Some(member.node) != order.remove;
            let same_id = members.iter().any(|member| member.node == add.node);
            let same_place =
                members.iter().filter(stays).any(|member| member.peer_addr == add.peer_addr);
            if same_id || same_place {
                return Err(RefusalCode::NodeExists);
            }
            after += 1;
        }
        match after {
            0 => Err(RefusalCode::LastVoter),
            1..=VOTERS_MAX => Ok(()),
            _ => Err(RefusalCode::TooManyMembers),
        }
    }
}
