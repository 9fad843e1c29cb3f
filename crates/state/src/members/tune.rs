//! `TuneElections`: how long silence lasts before followers choose another leader, for the whole cluster and at run time
//! (MQ-33). Heartbeats follow in the same ratio.
//!
//! Leaves out: the quorum. It is a majority of the voters and nothing else; who wants another changes the members.

use minicbor::{Decode, Encode};

use crate::shard::{Batch, Shard};
use crate::{Effect, RefusalCode, Reply};

/// Least silence before an election: a leader sends ten heartbeats in it, and disks and networks have their hiccups.
pub const ELECTION_MS_MIN: u32 = 200;
/// Most silence before an election: nobody writes for so long when a leader falls silent.
pub const ELECTION_MS_MAX: u32 = 60_000;

/// Changes how long silence lasts before an election.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct TuneElections {
    /// The least silence; the actual one is drawn from this up to twice this. None: as each node was started.
    #[n(0)]
    pub timeout_ms: Option<u32>,
}

/// Whether the silence is within its bounds.
pub(super) fn is_fit(timeout_ms: u32) -> bool {
    (ELECTION_MS_MIN..=ELECTION_MS_MAX).contains(&timeout_ms)
}

impl Shard {
    pub(crate) fn apply_tune_elections(
        &mut self,
        batch: &mut Batch,
        order: &TuneElections,
    ) -> Reply {
        if self.core.shard != 0 {
            return Reply::refused(RefusalCode::WrongShard);
        }
        if order.timeout_ms.is_some_and(|timeout_ms| !is_fit(timeout_ms)) {
            return Reply::refused(RefusalCode::BadValue);
        }
        let before = self.roster_now();
        if before.election_ms != order.timeout_ms {
            self.replace_roster(super::Roster { election_ms: order.timeout_ms, ..before });
            batch.tell(Effect::MembersChanged);
        }
        Reply::ElectionsTuned
    }
}
