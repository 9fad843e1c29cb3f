//! The liveness phase: every fault is healed, and within bounds of simulated time the cluster must be well (V1 to V7).

use ikada_consensus::{NodeId, Role};
use ikada_state::ShardId;

use super::machine::Health;
use super::network::WireFaults;
use super::{Event, Phase, World};
use crate::check::{
    Verdict, accounting, all_settled, bounded, config_settled, equal_state, fresh_write,
    nobody_stuck, one_leader,
};
use crate::marks::Mark;
use crate::workload::Step;

/// How long a growth may take after the healing.
const GROWTH_MS: u64 = 300_000;
/// How long a membership change under way may take after the healing.
const CHANGE_MS: u64 = 90_000;

impl World {
    /// Heals everything and watches the cluster recover.
    pub fn run_liveness(&mut self) -> Verdict {
        self.heal()?;
        self.finish_growth()?;
        let healed_us = self.now_us();
        self.run_until(healed_us + self.leader_ms() * 1_000)?;
        let leaders = self.find_leaders()?;
        let targets: Vec<u64> = self.watch.ledgers.iter().map(|l| l.committed_index()).collect();
        drop(leaders);
        self.probe()?;
        self.run_until(healed_us + equal_state::CAUGHT_UP_MS * 1_000)?;
        for (position, target) in targets.iter().enumerate() {
            self.check_reached(position as ShardId, *target)?;
        }
        self.finish_changes()?;
        let elections = self.tally.elections;
        self.drain()?;
        self.settle_balance(elections)?;
        self.rest()
    }

    /// Slots under way arrive, and the new shards find leaders.
    fn finish_growth(&mut self) -> Verdict {
        let until_us = self.now_us() + GROWTH_MS * 1_000;
        while self.is_growing() && self.now_us() < until_us {
            self.run_until(self.now_us() + 500_000)?;
        }
        if self.is_growing() {
            let what = format!("the cluster still grows after {GROWTH_MS} ms");
            return crate::check::violation("V2 fresh_write", what);
        }
        Ok(())
    }

    /// How long after the healing every shard must have a leader: a lease that somebody lost runs out first, and a clock
    /// that was moved back may double that.
    pub(super) fn leader_ms(&self) -> u64 {
        const TAKING_MS: u64 = 5_000;
        let leased = self.plan.database.as_ref().map(|plan| 2 * plan.lease.ttl_ms + TAKING_MS);
        leased.unwrap_or(one_leader::LEADER_MS)
    }

    pub(super) fn heal(&mut self) -> Verdict {
        self.phase = Phase::Liveness;
        let now_us = self.now_us();
        self.note(0, "heal", (0, 0), |_| {});
        self.network.mend(now_us);
        self.network.faults = WireFaults::none();
        if let (Some(database), Some(plan)) = (&mut self.database, &mut self.plan.database) {
            database.heal();
            (plan.lost_permille, plan.late_permille) = (0, 0);
            plan.delay_us_max = plan.delay_us_max.min(10_000);
        }
        self.closed_doors.clear();
        let restart = self.rng.bool();
        let nodes: Vec<NodeId> = self.machines.keys().copied().collect();
        for node in &nodes {
            let death = self.fitting_death(*node);
            let older = self.is_older(*node);
            let Some(machine) = self.machines.get_mut(node) else {
                continue;
            };
            machine.clock.set_rate(now_us, 1_000);
            machine.clock.heal_wall(now_us);
            machine.disk.set_capacity(None);
            machine.slow_until_us = 0;
            machine.sync_extra_us = 0;
            machine.paused_until_us = 0;
            let (generation, fragile) = (machine.generation, machine.fragile);
            if restart || fragile || older || machine.process.as_ref().is_some_and(|p| p.stopping) {
                self.stop_process(*node, death);
            } else {
                if let Some(machine) = self.machines.get(node) {
                    machine.disk.forget_faults();
                }
                if let Some(process) = self.process_mut(*node) {
                    process.wake_us = u64::MAX;
                }
                self.schedule_wake(*node, generation);
                self.resume(*node, generation);
                // A sync that hangs comes to its end now; none under way is no harm.
                self.schedule.after(1, Event::Synced(*node, generation));
            }
        }
        for node in nodes {
            self.schedule.after(1, Event::Start(node));
        }
        self.run_until(now_us + 1)?;
        self.connect_everyone();
        Ok(())
    }

    /// The one leader of every shard.
    pub(super) fn check_leaders(&self) -> Result<Vec<(NodeId, u64)>, crate::check::Violation> {
        let mut found = Vec::new();
        for shard in 0..self.shard_count() {
            let leads = |node: &NodeId| {
                self.view(*node, shard)
                    .filter(|view| view.role == Role::Leader)
                    .map(|v| (*node, v.term))
            };
            let leaders: Vec<(NodeId, u64)> = self.machines.keys().filter_map(leads).collect();
            let nodes: Vec<NodeId> = leaders.iter().map(|(node, _)| *node).collect();
            one_leader::check(shard, &nodes)?;
            found.extend(leaders);
        }
        Ok(found)
    }

    /// V2: a write to every shard.
    fn probe(&mut self) -> Verdict {
        let operator = self.actors.len() - 1;
        self.schedule.after(0, Event::Actor(operator, Step::Probe));
        self.schedule.after(0, Event::Actor(operator, Step::Change));
        self.run_until(self.now_us() + fresh_write::WRITE_MS * 1_000)?;
        for (shard, (sent_us, told_us)) in &self.probes {
            fresh_write::check(*shard, told_us.map(|told_us| (told_us - sent_us) / 1_000))?;
        }
        Ok(())
    }

    /// The probe of a shard was decided; the first time counts.
    pub fn probe_decided(&mut self, shard: ShardId) {
        let now_us = self.now_us();
        if let Some((_, told_us)) = self.probes.get_mut(&shard) {
            told_us.get_or_insert(now_us);
        }
    }

    /// Whether a shard holds as many unfinished tasks as it may, by the committed entries alone.
    pub fn is_shard_full(&self, shard: ShardId) -> bool {
        let reference =
            self.watch.ledgers.get(usize::from(shard)).and_then(|ledger| ledger.reference());
        reference.is_some_and(|state| {
            let sizes = state.sizes();
            sizes.scheduled + sizes.ready + sizes.claimed >= self.plan.knobs.pending_max
        })
    }

    /// V3: everyone has what was committed when the leaders were found.
    fn check_reached(&self, shard: ShardId, target: u64) -> Verdict {
        for node in self.members_of(shard) {
            let applied = self.applied(node, shard).map_or(0, |lsn| lsn.index);
            equal_state::check_reached(shard, node, applied, target)?;
        }
        Ok(())
    }

    /// Members that are expected to run.
    fn members_of(&self, shard: ShardId) -> Vec<NodeId> {
        let conf = self.watch.config_safety.newest(shard);
        let members = conf.map(|conf| conf.members()).unwrap_or_default();
        let usable = |node: &NodeId| self.machines.get(node).is_some_and(|m| m.is_usable());
        members.into_iter().filter(usable).collect()
    }

    /// The membership change under way comes to its end.
    fn finish_changes(&mut self) -> Verdict {
        let until_us = self.now_us() + CHANGE_MS * 1_000;
        while self.membership.is_changing() && self.now_us() < until_us {
            self.run_until(self.now_us() + 500_000)?;
        }
        if self.membership.is_changing() {
            return crate::check::violation(
                "V5 config_settled",
                format!("{:?} did not come true within {CHANGE_MS} ms", self.membership.wishes),
            );
        }
        Ok(())
    }

    /// V4: the workers settle every task.
    fn drain(&mut self) -> Verdict {
        let until_us = self.now_us() + all_settled::DRAIN_MS * 1_000;
        loop {
            let left = self.left_over();
            // Between two stages a job has no task; it is not over all the same.
            let waits = self.jobs_run() && self.now_us() < until_us;
            if left.iter().all(|(_, left)| *left == (0, 0, 0)) && !waits {
                return Ok(());
            }
            if self.now_us() >= until_us {
                for (shard, (scheduled, ready, claimed)) in left {
                    all_settled::check(shard, scheduled, ready, claimed)?;
                }
            }
            self.run_until(self.now_us() + 1_000_000)?;
        }
    }

    fn left_over(&self) -> Vec<(ShardId, (u64, u64, u64))> {
        let sizes = |(position, ledger): (usize, &crate::oracle::ledger::ShardLedger)| {
            let sizes = ledger.reference()?.sizes();
            Some((position as ShardId, (sizes.scheduled, sizes.ready, sizes.claimed)))
        };
        self.watch.ledgers.iter().enumerate().filter_map(sizes).collect()
    }

    /// A minute of rest, then a last look at everything.
    fn rest(&mut self) -> Verdict {
        let before = self.find_leaders()?;
        self.run_until(self.now_us() + one_leader::STABLE_MS * 1_000)?;
        let after = self.check_leaders()?;
        for shard in 0..self.shard_count() {
            let position = usize::from(shard);
            one_leader::check_stable(shard, before[position], after.get(position).copied())?;
        }
        self.full_check()?;
        self.review_health();
        for shard in 0..self.shard_count() {
            self.check_members(shard)?;
        }
        self.check_level()?;
        self.check_logs()?;
        self.watch.schedules.all_there()?;
        self.check_jobs_over()?;
        self.check_clients()
    }

    /// V3, V5, V6 for every member of a shard.
    fn check_members(&self, shard: ShardId) -> Verdict {
        let mut states = Vec::new();
        for node in self.members_of(shard) {
            let Some(machine) = self.machines.get(&node) else {
                continue;
            };
            let why = format!("{:?}", machine.health);
            nobody_stuck::check_running(node, machine.is_up(), &why)?;
            let Some(process) = &machine.process else {
                continue;
            };
            let consensus = process.replica.consensus();
            nobody_stuck::check(shard, node, consensus.is_repairing(shard))?;
            config_settled::check(shard, node, &consensus.conf(shard))?;
            let Some(state) = process.replica.shard(shard) else {
                continue;
            };
            states.push((node, state.applied(), state.hash()));
        }
        equal_state::check_equal(shard, &states)
    }

    /// Q13: logs do not keep much more than they need.
    fn check_logs(&self) -> Verdict {
        for machine in self.machines.values().filter(|m| m.health == Health::Sound) {
            let Some(process) = &machine.process else {
                continue;
            };
            let Some((purged_at, 2..)) = process.purged else {
                continue;
            };
            let stats = process.log.stats();
            bounded::check_log(&stats, self.plan.knobs.segment_bytes, purged_at)?;
        }
        Ok(())
    }

    /// Q1: nothing acknowledged has vanished; open requests are settled by the final state.
    fn check_clients(&mut self) -> Verdict {
        let namespace = ikada_state::Namespace::default();
        for id in &self.clients.acked {
            let shard = usize::from(self.shard_of_task(id));
            let Some(reference) = self.watch.ledgers[shard].reference() else {
                continue;
            };
            let present = reference.task(&namespace, id).is_some();
            accounting::acknowledged(id, present, &self.watch.model)?;
        }
        let open: Vec<_> = self.clients.open.keys().cloned().collect();
        for key in open {
            let committed = self.clients.committed.contains(&key);
            self.mark(if committed { Mark::UnknownCommitted } else { Mark::UnknownLost });
        }
        Ok(())
    }

    /// Nodes that a client may try: all that ever belonged to the cluster and were not removed, nor closed to callers.
    pub fn doors(&self) -> Vec<NodeId> {
        let left = &self.membership.left;
        let open = |node: &NodeId| !left.contains(node) && !self.closed_doors.contains(node);
        self.machines.keys().copied().filter(open).collect()
    }
}
