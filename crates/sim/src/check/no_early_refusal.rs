//! Q6 No early refusal: a renewal is refused only when the claim has ended, or may be ending by right.
//!
//! A leader may refuse a claim that is still alive once its own end of it is on its way into the log: after the ttl, after
//! the timeout, or when its worker's lists lacked it for long. None of these can be before the shortest of them has passed
//! since the grant and since the newest leader took over. Clocks of nodes run at rates of their own, so that half of it is
//! asked for: lenient, and never wrong.

use ikada_state::{Fence, ShardId};

use super::{Verdict, violation};

/// How long a claim may be missing from its worker's lists, as the leader counts it.
const MISSING_MS: u64 = 2_000;

/// A refusal of a claim that is alive.
#[derive(Debug, Clone, Copy)]
pub struct Refusal {
    /// The shard.
    pub shard: ShardId,
    /// The claim.
    pub fence: Fence,
    /// Its lifetime.
    pub ttl_ms: u64,
    /// Longest time for the whole attempt; 0 if there is none.
    pub timeout_ms: u64,
    /// When the refusal left the node that was asked.
    pub told_us: u64,
    /// When the grant was committed.
    pub granted_us: u64,
    /// When the newest leader before the question took over.
    pub led_us: u64,
}

/// Looks at one refusal.
pub fn check(refusal: &Refusal) -> Verdict {
    let timeout_ms = if refusal.timeout_ms == 0 { u64::MAX } else { refusal.timeout_ms };
    let shortest_ms = refusal.ttl_ms.min(timeout_ms).min(MISSING_MS);
    let since_us = refusal.granted_us.max(refusal.led_us);
    let passed_us = refusal.told_us.saturating_sub(since_us);
    if passed_us < shortest_ms * 1_000 / 2 {
        let Refusal { shard, fence, ttl_ms, .. } = refusal;
        let passed_ms = passed_us / 1_000;
        return violation(
            "Q6 no_early_refusal",
            format!(
                "shard {shard}: claim {fence} of {ttl_ms} ms is alive, and was refused to its worker {passed_ms} ms \
                 after its grant or the last change of leader"
            ),
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_that_nothing_can_have_caused_is_noticed() {
        let good = Refusal {
            shard: 0,
            fence: Fence(1),
            ttl_ms: 1_000,
            timeout_ms: 0,
            told_us: 5_000_000,
            granted_us: 1_000_000,
            led_us: 2_000_000,
        };
        assert!(check(&good).is_ok());
        assert!(check(&Refusal { granted_us: 4_600_000, ..good }).is_err());
        assert!(check(&Refusal { led_us: 4_600_000, ..good }).is_err());
        let long = Refusal { ttl_ms: 60_000, granted_us: 3_500_000, led_us: 0, ..good };
        assert!(check(&long).is_ok(), "its worker's lists may lack it");
        assert!(check(&Refusal { granted_us: 4_500_000, ..long }).is_err());
        assert!(check(&Refusal { granted_us: 4_500_000, timeout_ms: 500, ..long }).is_ok());
    }
}
