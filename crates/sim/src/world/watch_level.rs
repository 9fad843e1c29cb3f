//! Programs of two versions: some machines start with the older one and are upgraded when they start again; what is
//! committed must be known to all members (L1).

use ikada_consensus::NodeId;
use ikada_state::{Command, LEVEL, Order, Reply, Shard};

use super::{Phase, World};
use crate::check::{Verdict, known_commands};
use crate::marks::Mark;

impl World {
    /// A machine is about to start its process: perhaps with the newer program.
    pub(super) fn upgrade(&mut self, node: NodeId) {
        let healed = self.phase == Phase::Liveness;
        let Some(machine) = self.machines.get_mut(&node) else { return };
        let level = &mut machine.setup.config.level;
        // The first start is that of the program that was installed.
        if *level < LEVEL && (healed || (machine.generation > 1 && self.rng.bool())) {
            *level = LEVEL;
            self.mark(Mark::NodeUpgraded);
        }
    }

    /// Whether a machine runs the older program.
    pub(super) fn is_older(&self, node: NodeId) -> bool {
        self.machines.get(&node).is_some_and(|machine| machine.setup.config.level < LEVEL)
    }

    /// Looks at a committed order.
    pub(super) fn follow_level(&mut self, order: &Order, reply: &Reply) -> Verdict {
        let needed = order.command.level();
        if needed > 0 {
            let members: Vec<(NodeId, u32)> = self.member_levels();
            known_commands::check(needed, &members)?;
        }
        self.marks.hit_if(*reply == Reply::LevelRaised, Mark::LevelRaised);
        if let (Command::ChangeMembers(change), Reply::ChangeBegun { number: 1.. }) =
            (&order.command, reply)
            && let Some(added) = change.add.as_ref().and_then(|add| self.machines.get(&add.node))
        {
            let (node, level) = (added.node, added.setup.config.level);
            return known_commands::check_joined(node, level, self.cluster_level());
        }
        let refused = Reply::refused(ikada_state::RefusalCode::NodeTooOld);
        self.marks.hit_if(*reply == refused, Mark::OlderNodeRefused);
        Ok(())
    }

    /// At rest, with every member running the newer program.
    pub(super) fn check_level(&self) -> Verdict {
        let up = |node: &NodeId| self.machines.get(node).is_some_and(|machine| machine.is_up());
        match self.member_levels().iter().all(|(node, _)| up(node)) {
            true => known_commands::check_raised(self.cluster_level(), LEVEL),
            false => Ok(()),
        }
    }

    fn shard_zero(&self) -> Option<&Shard> {
        self.watch.ledgers.first().and_then(|ledger| ledger.reference())
    }

    fn cluster_level(&self) -> u32 {
        self.shard_zero().map_or(0, Shard::level)
    }

    fn member_levels(&self) -> Vec<(NodeId, u32)> {
        let members = self.shard_zero().map_or(&[][..], |state| state.members());
        let machines = members.iter().filter_map(|member| self.machines.get(&member.node));
        machines.map(|machine| (machine.node, machine.setup.config.level)).collect()
    }
}
