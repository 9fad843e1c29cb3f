//! `RaiseEpoch`: after a restore from an older state, fences handed out since then are unknown. A
//! higher epoch makes every new fence exceed all of them (F-31).

use minicbor::{Decode, Encode};

use crate::shard::Shard;
use crate::{RefusalCode, Reply};

/// Raises the restore epoch of this shard.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct RaiseEpoch {
    /// The new epoch; must exceed the current one.
    #[n(0)]
    pub epoch: u16,
}

impl Shard {
    pub(crate) fn apply_raise_epoch(&mut self, order: &RaiseEpoch) -> Reply {
        if order.epoch <= self.core.epoch {
            return Reply::refused(RefusalCode::VersionConflict);
        }
        self.core.epoch = order.epoch;
        Reply::EpochRaised
    }
}
