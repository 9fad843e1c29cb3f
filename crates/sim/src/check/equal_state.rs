//! V3 Equal state: with all faults gone, every member catches up soon, and once nothing is written any more all have
//! the same position and the same hash.

use ikada_consensus::NodeId;
use ikada_state::{Lsn, ShardId};

use super::{Verdict, violation};

const NAME: &str = "V3 equal_state";

/// How soon every member must have what was committed when the leader was found.
pub const CAUGHT_UP_MS: u64 = 30_000;

/// Compares one member's position with what it had to reach.
pub fn check_reached(shard: ShardId, node: NodeId, applied: u64, target: u64) -> Verdict {
    if applied >= target {
        return Ok(());
    }
    violation(
        NAME,
        format!("shard {shard}: node {node} is at {applied} of {target} after {CAUGHT_UP_MS} ms"),
    )
}

/// Compares all members at the end.
pub fn check_equal(shard: ShardId, members: &[(NodeId, Lsn, u64)]) -> Verdict {
    let Some((first, rest)) = members.split_first() else {
        return Ok(());
    };
    match rest.iter().find(|member| (member.1, member.2) != (first.1, first.2)) {
        None => Ok(()),
        Some(other) => {
            violation(NAME, format!("shard {shard}: {first:?} and {other:?} differ at rest"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_laggard_and_another_hash_are_noticed() {
        let at = |node, index, hash| (node, Lsn { term: 1, index }, hash);
        assert!(check_reached(0, 1, 9, 9).is_ok());
        assert!(check_reached(0, 1, 8, 9).is_err());
        assert!(check_equal(0, &[at(1, 5, 7), at(2, 5, 7)]).is_ok());
        assert!(check_equal(0, &[at(1, 5, 7), at(2, 5, 8)]).is_err());
        assert!(check_equal(0, &[at(1, 5, 7), at(2, 6, 7)]).is_err());
    }
}
