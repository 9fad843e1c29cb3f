//! What scenarios are played on: a calm cluster under load, and what is counted.

use ikada_consensus::{NodeId, Role};

use crate::check::{Verdict, violation};
use crate::plan::Plan;
use crate::world::World;

const CHECK: &str = "scenario";
/// A cluster that starts has settled by then.
const OPEN_MS: u64 = 8_000;
/// Work without faults before the first of them.
const BASE_MS: u64 = 60_000;
/// How closely the world is looked at while something is awaited.
const LOOK_MS: u64 = 10;

/// What a scenario came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// Elections won while the faults were on.
    pub changes: u64,
    /// How many would still be well.
    pub changes_max: u64,
    /// Acknowledged orders under the fault, in percent of those of the same seed in the same time without it; only where
    /// it matters.
    pub throughput_percent: Option<u64>,
    /// Longest time without a leader that takes writes, as far as the scenario measured it.
    pub gap_ms: Option<u64>,
    /// Simulated time.
    pub simulated_s: u64,
    /// What went wrong, if anything.
    pub violation: Option<String>,
}

/// A cluster of one shard, and a scenario's notes.
pub struct Stage {
    /// The cluster.
    pub world: World,
    seed: u64,
    elections_before: u64,
    changes_max: u64,
    throughput_percent: Option<u64>,
    gap_ms: Option<u64>,
}

impl Stage {
    /// A cluster that has not begun.
    pub fn new(seed: u64, nodes: u64) -> Stage {
        Stage {
            world: World::new(Plan::calm(seed, nodes, 1, 0), false),
            seed,
            elections_before: 0,
            changes_max: 0,
            throughput_percent: None,
            gap_ms: None,
        }
    }

    /// Lets it settle and work for a while; counting begins.
    pub(super) fn open(&mut self) -> Verdict {
        self.pass(OPEN_MS + BASE_MS)?;
        self.elections_before = self.world.tally.elections;
        Ok(())
    }

    /// Compares the changes with their bound, heals everything, and lets the simulator look at all of it.
    pub(super) fn close(&mut self) -> Verdict {
        let (changes, most) = (self.changes(), self.changes_max);
        if changes > most {
            return violation(
                CHECK,
                format!("{changes} changes of leaders, at most {most} are well"),
            );
        }
        self.elections_before = self.world.tally.elections - changes;
        let counted = self.world.tally.elections;
        let verdict = self.world.run_liveness();
        // What the healing brings is none of the scenario's.
        self.elections_before += self.world.tally.elections - counted;
        verdict
    }

    pub(super) fn told(&self, verdict: Verdict) -> Told {
        Told {
            changes: self.changes(),
            changes_max: self.changes_max,
            throughput_percent: self.throughput_percent,
            gap_ms: self.gap_ms,
            simulated_s: self.world.now_us() / 1_000_000,
            violation: verdict.err().map(|violation| violation.to_string()),
        }
    }

    fn changes(&self) -> u64 {
        self.world.tally.elections - self.elections_before
    }

    /// So many changes of leaders belong to the scenario.
    pub(super) fn allow_changes(&mut self, count: u64) {
        self.changes_max = count;
    }

    /// Time passes.
    pub(super) fn pass(&mut self, ms: u64) -> Verdict {
        self.world.run_until(self.world.now_us() + ms * 1_000)
    }

    /// Time passes, in which work must get on nearly as well as without the fault.
    pub(super) fn pass_working(&mut self, ms: u64, percent_min: u64) -> Verdict {
        let usual = self.usually_acked(ms)?;
        let before = self.world.tally.acked;
        self.pass(ms)?;
        let percent = (self.world.tally.acked - before) * 100 / usual.max(1);
        self.throughput_percent = Some(percent);
        if percent < percent_min {
            return violation(CHECK, format!("work went on at {percent} % of its usual rate"));
        }
        Ok(())
    }

    /// What the same seed acknowledges in the time to come if nothing ever fails: jobs and sweeps make some minutes busier
    /// than others, so the minute before says little.
    fn usually_acked(&self, ms: u64) -> Result<u64, crate::check::Violation> {
        let mut twin = Stage::new(self.seed, self.world.machines.len() as u64);
        twin.world.run_until(self.world.now_us())?;
        let before = twin.world.tally.acked;
        twin.pass(ms)?;
        Ok(twin.world.tally.acked - before)
    }

    /// The newest leader, if one is known.
    pub(super) fn leader(&self) -> Option<(NodeId, u64)> {
        let leads = |node: &NodeId| {
            let view = self.world.view(*node, 0).filter(|view| view.role == Role::Leader);
            view.map(|view| (*node, view.term))
        };
        self.world.machines.keys().filter_map(leads).max_by_key(|(_, term)| *term)
    }

    /// The leader of a cluster that is well.
    pub(super) fn the_leader(&self) -> NodeId {
        self.leader().map_or(0, |(node, _)| node)
    }

    /// All nodes but this one.
    pub(super) fn others(&self, node: NodeId) -> Vec<NodeId> {
        self.world.machines.keys().copied().filter(|other| *other != node).collect()
    }

    /// Waits for a leader of a higher term than this, at most so long; the wait is noted.
    pub(super) fn await_leader(
        &mut self,
        above: u64,
        limit_ms: u64,
    ) -> Result<NodeId, crate::check::Violation> {
        let began_us = self.world.now_us();
        loop {
            if let Some((node, _)) = self.leader().filter(|(_, term)| *term > above) {
                let gap_ms = (self.world.now_us() - began_us) / 1_000;
                self.gap_ms = self.gap_ms.max(Some(gap_ms));
                return Ok(node);
            }
            if self.world.now_us() - began_us > limit_ms * 1_000 {
                let what = format!("no other leader within {limit_ms} ms");
                return Err(crate::check::Violation { check: CHECK, what });
            }
            self.pass(LOOK_MS)?;
        }
    }

    /// Says that this must be so.
    pub(super) fn demand(&self, is_so: bool, what: &str) -> Verdict {
        if is_so { Ok(()) } else { violation(CHECK, format!("not so: {what}")) }
    }

    /// Nobody calls these nodes: what their callers suffer is another question.
    pub(super) fn close_doors(&mut self, nodes: &[NodeId]) {
        self.world.closed_doors = nodes.iter().copied().collect();
    }

    /// Leaves only these links.
    pub(super) fn only_links(&mut self, links: &[(NodeId, NodeId)]) {
        let nodes: Vec<NodeId> = self.world.machines.keys().copied().collect();
        for one in &nodes {
            for other in &nodes {
                let stays = links.contains(&(*one, *other)) || links.contains(&(*other, *one));
                if one < other && !stays {
                    self.world.network.cut_both(*one, *other);
                }
            }
        }
        self.world.cut_noticed();
    }

    /// Mends all links.
    pub(super) fn mend(&mut self) {
        let now_us = self.world.now_us();
        self.world.network.mend(now_us);
        self.world.connect_everyone();
    }
}
