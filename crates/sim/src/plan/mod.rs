//! What one seed will go through: shape of the cluster, settings of the product, and which faults at which rates.
//!
//! A swarm: every kind of fault is switched on or off per seed, and the rates differ by orders of magnitude, because
//! runs with every fault at once hide bugs that need one of them alone. The product's own settings are drawn too:
//! whether a textbook bug is visible at all can hang on the number of entries per message.
//!
//! Invariant: a plan is a function of (seed, operations) only.

pub mod database;
pub mod faults;
pub mod knobs;

use fastrand::Rng;

use crate::draw::{chance, log_uniform, weighted};
use database::DatabasePlan;
use faults::{FaultPlan, Kind};
use knobs::Knobs;

/// How often a cluster grows during its run.
const GROWTH_PERMILLE: u32 = 250;

/// How often leaders are balanced during a run.
const BALANCE_PERMILLE: u32 = 500;

/// How often some machines start with the older program.
const OLDER_PERMILLE: u32 = 400;

/// Everything drawn before the first event.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Where all randomness comes from.
    pub seed: u64,
    /// Voters at the start.
    pub nodes: u64,
    /// Shards.
    pub shards: u16,
    /// Shards that the cluster grows to; as many as at the start if it does not grow.
    pub grows_to: u16,
    /// Machines that start with the older program, of 1000; they are upgraded during the run.
    pub older_permille: u32,
    /// Client operations to make before the safety phase may end.
    pub operations: u64,
    /// The safety phase lasts at least this long.
    pub safety_ms: u64,
    /// Settings of the product.
    pub knobs: Knobs,
    /// Faults.
    pub faults: FaultPlan,
    /// The database that holds the logs; without it they are on the nodes' disks.
    pub database: Option<DatabasePlan>,
}

impl Plan {
    /// Draws the plan of a seed.
    pub fn draw(seed: u64, operations: u64) -> Self {
        let mut rng = Rng::with_seed(seed ^ 0x5eed_0000_0000_0001);
        let nodes = [1, 3, 5][weighted(&mut rng, &[1, 7, 4]).unwrap_or(1)];
        let shards = rng.u16(1..=4);
        let mut knobs = Knobs::draw(&mut rng);
        let faults = FaultPlan::draw(&mut rng, nodes);
        // Not where frames come twice, as they do over no connection of ours: one of the two may be turned away.
        if faults.wires.duplicate_permille == 0 {
            let mut rng = Rng::with_seed(seed ^ 0x7065_6e64);
            knobs.pending_bytes_max = knobs::draw_pending_bytes_max(&mut rng);
        }
        if faults.kinds.iter().any(|(kind, _)| *kind == Kind::ClockJump) {
            // Jumps add up to hours on several machines: log time may follow them, and the window is of log time.
            knobs.dedup_window_ms = knobs.dedup_window_ms.max(86_400_000);
        }
        let safety_ms = rng.u64(60_000..=90_000);
        // Drawn apart, so that the rest of the plan does not depend on it.
        let mut rng = Rng::with_seed(seed ^ 0x6772_6f77);
        let grows_to =
            if chance(&mut rng, GROWTH_PERMILLE) { shards + rng.u16(1..=2) } else { shards };
        let mut rng = Rng::with_seed(seed ^ 0x6261_6c61);
        if chance(&mut rng, BALANCE_PERMILLE) {
            knobs.balance_quiet_ms = log_uniform(&mut rng, 1_000, 15_000);
        }
        let mut rng = Rng::with_seed(seed ^ 0x6f6c_6465);
        let older_permille =
            if chance(&mut rng, OLDER_PERMILLE) { rng.u32(200..=1_000) } else { 0 };
        let database = None;
        Self {
            seed,
            nodes,
            shards,
            grows_to,
            older_permille,
            operations,
            safety_ms,
            knobs,
            faults,
            database,
        }
    }

    /// Draws the plan of a seed whose logs live in a database: the same users and settings, and the faults that
    /// matter there. Members and shards do not change at run time in this mode, and no log is on the disks that
    /// could be damaged.
    pub fn draw_leased(seed: u64, operations: u64) -> Self {
        let mut plan = Self::draw(seed, operations);
        let mut rng = Rng::with_seed(seed ^ 0x6c65_6173);
        plan.faults.draw_database(&mut rng);
        plan.faults.membership_ms = 0;
        plan.knobs.balance_quiet_ms = 0;
        Self { grows_to: plan.shards, database: Some(DatabasePlan::draw(&mut rng)), ..plan }
    }

    /// A calm plan whose logs live in a database.
    pub fn calm_leased(seed: u64, nodes: u64, shards: u16, operations: u64) -> Self {
        let database = Some(DatabasePlan::calm());
        Self { database, ..Self::calm(seed, nodes, shards, operations) }
    }

    /// A calm plan for tests: no faults, three nodes, one shard.
    pub fn calm(seed: u64, nodes: u64, shards: u16, operations: u64) -> Self {
        Self {
            nodes,
            shards,
            grows_to: shards,
            older_permille: 0,
            faults: FaultPlan::none(),
            knobs: Knobs::usual(),
            ..Self::draw(seed, operations)
        }
    }

    /// A generator for one part of the world, independent of the others.
    pub fn rng(&self, part: u64) -> Rng {
        let mut rng = Rng::with_seed(self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ part);
        rng.fork()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_a_function_of_its_seed() {
        for seed in 0..50 {
            let (one, other) = (Plan::draw(seed, 500), Plan::draw(seed, 500));
            assert_eq!(format!("{one:?}"), format!("{other:?}"));
        }
    }

    #[test]
    fn every_cluster_size_is_drawn() {
        let sizes: std::collections::BTreeSet<u64> =
            (0..200).map(|seed| Plan::draw(seed, 1).nodes).collect();
        assert_eq!(sizes.into_iter().collect::<Vec<_>>(), [1, 3, 5]);
    }
}
