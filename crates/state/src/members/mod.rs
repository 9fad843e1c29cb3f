//! Cluster-wide records of shard 0: the members, changes to them, what all of them understand, how leadership is steered;
//! and the restore epoch of each shard.

mod change;
mod raise_epoch;
mod raise_level;
mod refound;
mod roster;
mod set;
mod steer;
mod tune;

pub use change::{ChangeMembers, SettleChange};
pub use raise_epoch::RaiseEpoch;
pub use raise_level::{LEVEL, RaiseLevel};
pub use refound::Refound;
pub use roster::{MemberChange, PRIORITY_MAX, REMOVED_MAX, Roster, VOTERS_MAX};
pub use set::SetMembers;
pub use steer::SteerMember;
pub use tune::{ELECTION_MS_MAX, ELECTION_MS_MIN, TuneElections};

use minicbor::{Decode, Encode};

/// Longest address kept.
pub(crate) const ADDRESS_BYTES_MAX: usize = 256;

/// One node of the cluster as recorded in the log.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
pub struct Member {
    /// Id of the node; never reused after its disk was lost.
    #[n(0)]
    pub node: u64,
    /// Which life of the node this is.
    #[n(1)]
    pub incarnation: u64,
    /// Where peers reach it.
    #[n(2)]
    pub peer_addr: String,
    /// Where clients reach it.
    #[n(3)]
    pub client_addr: String,
}
