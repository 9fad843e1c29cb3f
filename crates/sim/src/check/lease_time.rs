//! P3: a holder acts on its lease only until its own monotonic clock, from before the question was sent, nears the ttl.

use ikada_state::ShardId;

use super::{Verdict, violation};

/// A node leads a shard by its own belief at `now_ms`; `until_ms` is the end of the newest lease that it was given, counted
/// from the moment the question was sent, less the margin. Both are on its monotonic clock.
pub fn check(node: u64, shard: ShardId, now_ms: u64, until_ms: Option<u64>) -> Verdict {
    match until_ms {
        Some(until_ms) if now_ms < until_ms => Ok(()),
        _ => violation(
            "P3 lease_time",
            format!(
                "shard {shard}: node {node} leads at {now_ms} ms, its lease ends at {until_ms:?}"
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p_3_a_lease_that_is_over_is_noticed() {
        assert!(check(1, 0, 99, Some(100)).is_ok());
        assert!(check(1, 0, 100, Some(100)).is_err());
        assert!(check(1, 0, 1, None).is_err(), "never given");
    }
}
