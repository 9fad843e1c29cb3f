//! Fencing tokens and log positions.

use std::fmt;

use minicbor::{Decode, Encode};

/// Bits of a fence that hold the grant counter; the rest holds the restore epoch.
const COUNTER_BITS: u32 = 48;

/// Fencing token of one attempt: restore epoch (16 bits), then grant counter (48 bits). It only
/// rises for one task, also over failovers, snapshots and restores (Q3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
#[cbor(transparent)]
pub struct Fence(#[n(0)] pub u64);

impl Fence {
    /// Highest grant counter a fence can carry.
    pub const COUNTER_MAX: u64 = (1 << COUNTER_BITS) - 1;

    /// Joins an epoch and a counter. The counter must not exceed [`Fence::COUNTER_MAX`].
    pub fn new(epoch: u16, counter: u64) -> Fence {
        assert!(counter <= Self::COUNTER_MAX, "grant counter exceeds 48 bits");
        Fence(u64::from(epoch) << COUNTER_BITS | counter)
    }

    /// The restore epoch.
    pub fn epoch(self) -> u16 {
        (self.0 >> COUNTER_BITS) as u16
    }

    /// The grant counter.
    pub fn counter(self) -> u64 {
        self.0 & Self::COUNTER_MAX
    }
}

impl fmt::Display for Fence {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.0)
    }
}

/// Position in a shard's log; ordered by term, then index (MQ-5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
pub struct Lsn {
    /// Era of the leader that wrote the entry.
    #[n(0)]
    pub term: u64,
    /// Place in the log.
    #[n(1)]
    pub index: u64,
}

impl fmt::Display for Lsn {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.term, self.index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // MQ-5
    #[test]
    fn mq_5_positions_order_by_term_first() {
        assert!(Lsn { term: 5, index: 2 } > Lsn { term: 4, index: 1000 });
    }

    // Q3
    #[test]
    fn a_higher_epoch_beats_any_counter() {
        assert!(Fence::new(1, 0) > Fence::new(0, Fence::COUNTER_MAX));
        let fence = Fence::new(7, 42);
        assert_eq!((fence.epoch(), fence.counter()), (7, 42));
    }
}
