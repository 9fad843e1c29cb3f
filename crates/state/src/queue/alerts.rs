//! When a queue needs attention. The thresholds are settings of the queue; whoever looks at the queue
//! judges by them (TQ-24).

use minicbor::{Decode, Encode};

/// Thresholds; 0 turns an alert off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct AlertThresholds {
    /// More waiting tasks (scheduled, ready) than this, over all shards.
    #[n(0)]
    pub pending: u64,
    /// A claim older than this share of its lifetime, in percent.
    #[n(1)]
    pub claim_age_percent: u32,
    /// A larger share of dead among finished tasks than this, in percent.
    #[n(2)]
    pub dead_percent: u32,
    /// Unfinished tasks have only become more for this long.
    #[n(3)]
    pub growing_s: u32,
}

impl Default for AlertThresholds {
    fn default() -> Self {
        Self { pending: 1_000, claim_age_percent: 200, dead_percent: 5, growing_s: 60 }
    }
}

impl AlertThresholds {
    /// Longest time over which growth is watched.
    pub const GROWING_S_MAX: u32 = 300;

    /// Whether every value is inside its bounds.
    pub(crate) fn is_valid(&self) -> bool {
        self.dead_percent <= 100 && self.growing_s <= Self::GROWING_S_MAX
    }
}
