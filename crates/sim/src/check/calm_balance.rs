//! V7 Calm balance: the balancer gives no leadership to a node that should not have it, and comes to an end.
//!
//! A move reduces a difference of two or more, so a cluster at rest sees at most one move per shard, and then none. That
//! it sees none afterwards is V1: leaders stay.

use ikada_consensus::NodeId;
use ikada_state::ShardId;

use super::{Verdict, violation};

const CHECK: &str = "V7 calm_balance";

/// What is known of the node that the balancer chose.
#[derive(Debug, Clone, Copy, Default)]
pub struct Target {
    /// It was asked to lead no longer.
    pub cordoned: bool,
    /// Its disk stands still for long, and it was heard meanwhile.
    pub still: bool,
}

/// Judges a choice.
pub fn check_target(shard: ShardId, to: NodeId, target: Target) -> Verdict {
    let why = match (target.cordoned, target.still) {
        (true, _) => "which is cordoned",
        (_, true) => "whose disk stands still",
        _ => return Ok(()),
    };
    violation(CHECK, format!("the balancer gives shard {shard} to node {to}, {why}"))
}

/// Judges how many leaderships changed while a cluster at rest was balanced.
pub fn check_moves(moves: u64, shards: u16) -> Verdict {
    if moves <= u64::from(shards) {
        return Ok(());
    }
    violation(CHECK, format!("{moves} leaderships of {shards} shards changed in a cluster at rest"))
}

/// Judges what came of it: how many shards each node leads that may lead.
pub fn check_spread(led: &[(NodeId, usize)]) -> Verdict {
    let counts = || led.iter().map(|(_, count)| *count);
    match (counts().min(), counts().max()) {
        (Some(least), Some(most)) if most > least + 1 => {
            violation(CHECK, format!("leaders are not spread over the nodes: {led:?}"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_targets_restless_moves_and_crowds_are_noticed() {
        let still = Target { still: true, ..Target::default() };
        let cordoned = Target { cordoned: true, ..Target::default() };
        assert!(check_target(0, 1, Target::default()).is_ok());
        assert!(check_target(0, 1, still).is_err());
        assert!(check_target(0, 1, cordoned).is_err());
        assert!(check_moves(3, 3).is_ok());
        assert!(check_moves(4, 3).is_err());
        assert!(check_spread(&[(1, 2), (2, 1), (3, 1)]).is_ok());
        assert!(check_spread(&[(1, 2), (2, 2), (3, 0)]).is_err());
        assert!(check_spread(&[]).is_ok());
    }
}
