//! V5 Config settled: with all faults gone, no joint configuration remains.

use ikada_consensus::{Conf, NodeId};
use ikada_state::ShardId;

use super::{Verdict, violation};

/// Looks at a member's configuration at the end.
pub fn check(shard: ShardId, node: NodeId, conf: &Conf) -> Verdict {
    if !conf.is_joint() {
        return Ok(());
    }
    violation(
        "V5 config_settled",
        format!("shard {shard}: node {node} is still in the joint {conf:?}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_joint_configuration_is_noticed() {
        let plain = Conf::of_voters([1, 2, 3]);
        assert!(check(0, 1, &plain).is_ok());
        let joint = Conf { voters_outgoing: vec![1, 2], ..plain };
        assert!(check(0, 1, &joint).is_err());
    }
}
