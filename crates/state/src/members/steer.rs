//! `SteerMember`: where leaders shall be. A cordoned node gives its leaderships away and takes none while another
//! voter can lead; a priority decides between voters whose logs are equal. Both are wishes: a cluster that has nobody
//! else left still gets a leader.

use minicbor::{Decode, Encode};

use super::roster::PRIORITY_MAX;
use crate::shard::{Batch, Shard};
use crate::{Effect, RefusalCode, Reply};

/// Steers leadership towards or away from one member; what is absent stays.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct SteerMember {
    /// Which member.
    #[n(0)]
    pub node: u64,
    /// Whether it shall not lead.
    #[n(1)]
    pub cordoned: Option<bool>,
    /// Its priority.
    #[n(2)]
    pub priority: Option<i64>,
}

impl Shard {
    pub(crate) fn apply_steer_member(&mut self, batch: &mut Batch, order: &SteerMember) -> Reply {
        if self.core.shard != 0 {
            return Reply::refused(RefusalCode::WrongShard);
        }
        if !self.core.members.iter().any(|member| member.node == order.node) {
            return Reply::refused(RefusalCode::NodeNotFound);
        }
        if order
            .priority
            .is_some_and(|priority| !(-PRIORITY_MAX..=PRIORITY_MAX).contains(&priority))
        {
            return Reply::refused(RefusalCode::BadValue);
        }
        let before = self.roster_now();
        let mut roster = before.clone();
        if let Some(cordoned) = order.cordoned {
            roster.cordoned.retain(|node| *node != order.node);
            if cordoned {
                roster.cordoned.push(order.node);
                roster.cordoned.sort_unstable();
            }
        }
        if let Some(priority) = order.priority {
            roster.priorities.retain(|(node, _)| *node != order.node);
            roster.priorities.push((order.node, priority));
            roster.priorities.sort_unstable();
        }
        if roster != before {
            self.replace_roster(roster);
            batch.tell(Effect::MembersChanged);
        }
        Reply::MemberSteered
    }
}
