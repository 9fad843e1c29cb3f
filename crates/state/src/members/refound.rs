//! `Refound`: the first entry of a cluster that begins with the state of another, from a backup or from the one disk
//! that was left. Its members are new ones, and every fence from now on exceeds all that were ever granted before
//! (F-30, F-31).

use minicbor::{Decode, Encode};

use super::Member;
use crate::shard::{Batch, Shard};
use crate::{Effect, RefusalCode, Reply};

/// Begins anew with the state at hand.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Refound {
    /// The new restore epoch; must exceed the current one.
    #[n(0)]
    pub epoch: u16,
    /// The members of the new cluster; recorded in shard 0.
    #[n(1)]
    pub members: Vec<Member>,
}

impl Shard {
    pub(crate) fn apply_refound(&mut self, batch: &mut Batch, order: Refound) -> Reply {
        if order.epoch <= self.core.epoch {
            return Reply::refused(RefusalCode::VersionConflict);
        }
        if order.members.is_empty() {
            return Reply::refused(RefusalCode::BadValue);
        }
        self.core.epoch = order.epoch;
        if self.core.shard == 0 {
            let mut members = order.members;
            members.sort();
            self.replace_members(members);
            self.drop_roster();
            self.forget_first_voters();
            batch.tell(Effect::MembersChanged);
        }
        Reply::EpochRaised
    }
}
