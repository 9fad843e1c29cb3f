//! V1 One leader: with all faults gone, every shard has one leader soon, and keeps it.

use ikada_consensus::NodeId;
use ikada_state::ShardId;

use super::{Verdict, violation};

/// A leader must be there this long after the healing.
pub const LEADER_MS: u64 = 5_000;
/// And stay for this long.
pub const STABLE_MS: u64 = 60_000;

/// The nodes that lead a shard at the end of the wait.
pub fn check(shard: ShardId, leaders: &[NodeId]) -> Verdict {
    if leaders.len() == 1 {
        return Ok(());
    }
    violation(
        "V1 one_leader",
        format!("shard {shard}: {leaders:?} lead {LEADER_MS} ms after healing"),
    )
}

/// Who led at the beginning and at the end of the stable time, and in which terms.
pub fn check_stable(
    shard: ShardId,
    before: (NodeId, u64),
    after: Option<(NodeId, u64)>,
) -> Verdict {
    if after == Some(before) {
        return Ok(());
    }
    violation(
        "V1 one_leader",
        format!(
            "shard {shard}: node {} of term {} did not stay leader, but {after:?}",
            before.0, before.1
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn none_two_and_another_leader_are_noticed() {
        assert!(check(0, &[2]).is_ok());
        assert!(check(0, &[]).is_err());
        assert!(check(0, &[1, 2]).is_err());
        assert!(check_stable(0, (2, 7), Some((2, 7))).is_ok());
        assert!(check_stable(0, (2, 7), Some((2, 9))).is_err());
        assert!(check_stable(0, (2, 7), None).is_err());
    }
}
