//! `SetMembers`: records who belongs to the cluster. The consensus layer decides membership; this
//! record makes it readable and carries addresses.

use minicbor::{Decode, Encode};

use super::{ADDRESS_BYTES_MAX, Member};
use crate::shard::{Batch, Shard};
use crate::{Effect, RefusalCode, Reply};

/// Replaces the recorded members.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct SetMembers {
    /// All members, each node once.
    #[n(0)]
    pub members: Vec<Member>,
}

impl Shard {
    pub(crate) fn apply_set_members(&mut self, batch: &mut Batch, order: SetMembers) -> Reply {
        if self.core.shard != 0 {
            return Reply::refused(RefusalCode::WrongShard);
        }
        let roster = self.roster_now();
        let named = roster.change.iter().flat_map(|change| [change.add, change.remove]).flatten();
        let steered = roster.priorities.iter().map(|(node, _)| *node);
        let mut needed = named.chain(steered).chain(roster.cordoned.iter().copied());
        let mut members = order.members;
        if needed.any(|node| !members.iter().any(|member| member.node == node)) {
            return Reply::refused(RefusalCode::ChangePending);
        }
        if members.iter().any(|member| roster.is_removed(member.node)) {
            return Reply::refused(RefusalCode::NodeRemoved);
        }
        members.sort();
        if members.len() > self.core.limits.members_max as usize {
            return Reply::refused(RefusalCode::TooLarge);
        }
        let too_long = |member: &Member| {
            member.peer_addr.len() > ADDRESS_BYTES_MAX
                || member.client_addr.len() > ADDRESS_BYTES_MAX
        };
        let twice = members.windows(2).any(|pair| pair[0].node == pair[1].node);
        if members.is_empty() || twice || members.iter().any(too_long) {
            return Reply::refused(RefusalCode::BadValue);
        }
        if members != self.core.members {
            self.replace_members(members);
            batch.tell(Effect::MembersChanged);
        }
        Reply::MembersSet
    }
}
