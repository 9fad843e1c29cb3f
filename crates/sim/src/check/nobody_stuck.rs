//! V6 Nobody stuck: with all faults gone, no member stays in repair, in an install, down, or read-only.

use ikada_consensus::NodeId;
use ikada_state::ShardId;

use super::{Verdict, violation};

const NAME: &str = "V6 nobody_stuck";

/// A member's shard at the end.
pub fn check(shard: ShardId, node: NodeId, repairing: bool) -> Verdict {
    if !repairing {
        return Ok(());
    }
    violation(NAME, format!("shard {shard}: node {node} is still in repair"))
}

/// A member's process at the end; `why` tells why it does not run.
pub fn check_running(node: NodeId, running: bool, why: &str) -> Verdict {
    if running {
        return Ok(());
    }
    violation(NAME, format!("node {node} does not run: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endless_repair_and_a_dead_process_are_noticed() {
        assert!(check(0, 1, false).is_ok());
        assert!(check(0, 1, true).is_err());
        assert!(check_running(1, true, "").is_ok());
        assert!(check_running(1, false, "bad snapshot").is_err());
    }
}
