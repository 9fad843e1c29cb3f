//! V4 All settled: with all faults gone and workers at work, every task reaches an end.

use ikada_state::ShardId;

use super::{Verdict, violation};

/// How long the workers get.
pub const DRAIN_MS: u64 = 300_000;

/// What is left of a shard: tasks scheduled, ready and claimed.
pub fn check(shard: ShardId, scheduled: u64, ready: u64, claimed: u64) -> Verdict {
    if scheduled + ready + claimed == 0 {
        return Ok(());
    }
    violation(
        "V4 all_settled",
        format!(
            "shard {shard}: {scheduled} scheduled, {ready} ready and {claimed} claimed tasks are left after {DRAIN_MS} ms"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leftovers_are_noticed() {
        assert!(check(0, 0, 0, 0).is_ok());
        assert!(check(0, 0, 1, 0).is_err());
        assert!(check(0, 1, 0, 0).is_err());
        assert!(check(0, 0, 0, 1).is_err());
    }
}
