//! L1 Known commands: an order is committed only when the programs of all members understand it, nobody becomes a member
//! whose program understands less than the cluster's level, and after an upgrade of all the level rises by itself.

use ikada_consensus::NodeId;

use super::{Verdict, violation};

const CHECK: &str = "L1 known_commands";

/// Judges an order of some level that was committed while these were the members, each with what its program understands.
pub fn check(needed: u32, members: &[(NodeId, u32)]) -> Verdict {
    match members.iter().find(|(_, level)| *level < needed) {
        Some((node, level)) => violation(
            CHECK,
            format!(
                "an order of level {needed} was committed, and node {node} understands {level}"
            ),
        ),
        None => Ok(()),
    }
}

/// Judges a node that becomes a member of a cluster of some level.
pub fn check_joined(node: NodeId, level: u32, cluster: u32) -> Verdict {
    match level < cluster {
        true => violation(
            CHECK,
            format!("node {node}, which understands {level}, joins a cluster of level {cluster}"),
        ),
        false => Ok(()),
    }
}

/// Judges the level of a cluster at rest whose members all run programs of the same level.
pub fn check_raised(cluster: u32, programs: u32) -> Verdict {
    match cluster == programs {
        true => Ok(()),
        false => violation(
            CHECK,
            format!("the cluster stays at level {cluster}, all its members understand {programs}"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_that_a_member_does_not_know_are_noticed() {
        assert!(check(1, &[(1, 1), (2, 2)]).is_ok());
        assert!(check(1, &[(1, 1), (2, 0)]).is_err());
        assert!(check_joined(3, 1, 1).is_ok());
        assert!(check_joined(3, 0, 1).is_err());
        assert!(check_raised(1, 1).is_ok());
        assert!(check_raised(0, 1).is_err());
    }
}
