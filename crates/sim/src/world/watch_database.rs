//! Looks at a node whose logs live in a database after each of its turns: what changed is shown to the checks that hold in
//! both modes (R1, R3, R4, R5, R7), and to those of leases (P3). There is no quorum and no log on its disk to look at.

use ikada_consensus::{NodeId, Role};

use super::World;
use crate::check::{
    ShardView, Verdict, leader_completeness, lease_time, state_machine_safety, violation,
};

impl World {
    /// A shard of a node looks other than before.
    pub(super) fn observe_leased(
        &mut self,
        view: &ShardView,
        before: Option<&ShardView>,
    ) -> Verdict {
        let shard = view.shard;
        self.watch.election_safety.observe(view)?;
        self.note_leaders(view);
        let ledger = &self.watch.ledgers[usize::from(shard)];
        if view.commit > ledger.committed_index() {
            return violation(
                "R5 committed_forever",
                format!(
                    "shard {shard}: node {} has {} as written, the database has {}",
                    view.node,
                    view.commit,
                    ledger.committed_index()
                ),
            );
        }
        if before.is_none_or(|before| before.role != Role::Leader) {
            leader_completeness::check_leased(view, ledger)?;
        }
        // While a snapshot is being loaded the state is older than the log says; it is compared when it is there.
        if view.applied.index < view.start_index.max(1) {
            return Ok(());
        }
        state_machine_safety::check(view, ledger)?;
        self.watch.monotonic.observe(view)
    }

    /// P3, after every turn: whoever leads by its own belief has a lease that still holds by its own clock.
    pub(super) fn check_leases(&self, node: NodeId) -> Verdict {
        let Some(machine) = self.machines.get(&node) else { return Ok(()) };
        let now_ms = machine.clock.read(self.now_us()).mono_ms;
        let Some(process) = &machine.process else { return Ok(()) };
        for view in process.views.iter().flatten().filter(|view| view.role == Role::Leader) {
            let until_ms = process.held_until_ms.get(&view.shard).copied();
            lease_time::check(node, view.shard, now_ms, until_ms)?;
        }
        Ok(())
    }
}
