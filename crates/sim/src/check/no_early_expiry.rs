//! Q6 No early expiry: a claim expires only after the proposing leader's monotonic clock saw a whole lifetime since the
//! grant, since the last renewal that it took, and since it became leader.
//!
//! The times are those at which the world saw these things happen, which is never later than the leader did; so the
//! check is a little lenient and never wrong.

use ikada_state::{Fence, ShardId};

use super::{Verdict, violation};

/// Clocks are read in milliseconds, so a whole lifetime may look this much shorter.
const ROUNDING_US: u64 = 2_000;

/// What is known about one expiry; times are on the proposing leader's monotonic clock.
#[derive(Debug, Clone, Copy)]
pub struct Expiry {
    /// The shard.
    pub shard: ShardId,
    /// The claim.
    pub fence: Fence,
    /// Its lifetime.
    pub ttl_ms: u64,
    /// When the expiry was proposed.
    pub proposed_us: u64,
    /// When the grant was committed.
    pub granted_us: u64,
    /// When the proposer became leader.
    pub led_us: u64,
    /// When the last renewal that the proposer certainly took was sent.
    pub renewed_us: Option<u64>,
}

/// Looks at one expiry.
pub fn check(expiry: &Expiry) -> Verdict {
    let since = [
        ("the grant", Some(expiry.granted_us)),
        ("the leader took over", Some(expiry.led_us)),
        ("a renewal", expiry.renewed_us),
    ];
    for (what, at_us) in since {
        let Some(at_us) = at_us else { continue };
        let passed_us = expiry.proposed_us.saturating_sub(at_us);
        if passed_us + ROUNDING_US < expiry.ttl_ms * 1_000 {
            return violation(
                "Q6 no_early_expiry",
                format!(
                    "shard {}: claim {} with a lifetime of {} ms expired {} ms after {what}",
                    expiry.shard,
                    expiry.fence,
                    expiry.ttl_ms,
                    passed_us / 1_000
                ),
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expiry_before_a_whole_lifetime_is_noticed() {
        let good = Expiry {
            shard: 0,
            fence: Fence(1),
            ttl_ms: 1_000,
            proposed_us: 5_000_000,
            granted_us: 1_000_000,
            led_us: 2_000_000,
            renewed_us: Some(4_000_000),
        };
        assert!(check(&good).is_ok());
        assert!(check(&Expiry { renewed_us: Some(4_500_000), ..good }).is_err());
        assert!(check(&Expiry { led_us: 4_500_000, ..good }).is_err());
        assert!(check(&Expiry { granted_us: 4_500_000, ..good }).is_err());
    }
}
