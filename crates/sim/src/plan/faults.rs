//! Which faults a seed has, and how often.
//!
//! Rates are mean distances in time between two faults of a kind; zero switches a kind off. `Kind` is the catalogue
//! of faults: `world::nemesis` knows how to do each of them and when it would be unfair.

use fastrand::Rng;

use crate::draw::{chance, log_uniform};
use crate::world::network::WireFaults;

/// One kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A node's process dies; un-synced writes are lost or torn.
    Crash,
    /// A leader's process dies.
    CrashLeader,
    /// All processes die at once.
    CrashAll,
    /// A process stands still and then goes on.
    Pause,
    /// One direction of one wire is cut.
    CutOneWay,
    /// One wire is cut.
    CutWire,
    /// One node is cut off.
    Isolate,
    /// The leader's node hears nothing but is heard.
    DeafLeader,
    /// Two groups that cannot talk to each other.
    Split,
    /// Two groups with one node between them that reaches both.
    Bridge,
    /// A ring: each node reaches its two neighbours only.
    Ring,
    /// All cuts are mended.
    Mend,
    /// A connection breaks and is made again.
    DropConnection,
    /// A wall clock jumps by up to an hour.
    ClockJump,
    /// A clock runs at another rate.
    ClockRate,
    /// A disk is slow for a while.
    SlowDisk,
    /// A sync fails once; the process must exit.
    SyncError,
    /// A disk is full for a while.
    DiskFull,
    /// A bit flips at rest.
    FlipBit,
    /// A write lands in another place.
    Misdirect,
    /// A node loses its disk and starts again under its old id.
    Wipe,
    /// The database goes down; what is under way there is lost.
    DatabaseDown,
    /// The database does nothing for a while, and then everything.
    DatabaseStall,
    /// A node does not reach the database for a while.
    DatabaseCut,
    /// The database's clock is moved by up to an hour.
    DatabaseClock,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 21] = [
        Kind::Crash,
        Kind::CrashLeader,
        Kind::CrashAll,
        Kind::Pause,
        Kind::CutOneWay,
        Kind::CutWire,
        Kind::Isolate,
        Kind::DeafLeader,
        Kind::Split,
        Kind::Bridge,
        Kind::Ring,
        Kind::Mend,
        Kind::DropConnection,
        Kind::ClockJump,
        Kind::ClockRate,
        Kind::SlowDisk,
        Kind::SyncError,
        Kind::DiskFull,
        Kind::FlipBit,
        Kind::Misdirect,
        Kind::Wipe,
    ];

    /// Kinds that only a cluster knows whose logs live in a database.
    pub const OF_DATABASE: [Kind; 4] =
        [Kind::DatabaseDown, Kind::DatabaseStall, Kind::DatabaseCut, Kind::DatabaseClock];

    /// A stable word for traces and reports.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Crash => "crash",
            Kind::CrashLeader => "crash-leader",
            Kind::CrashAll => "crash-all",
            Kind::Pause => "pause",
            Kind::CutOneWay => "cut-one-way",
            Kind::CutWire => "cut-wire",
            Kind::Isolate => "isolate",
            Kind::DeafLeader => "deaf-leader",
            Kind::Split => "split",
            Kind::Bridge => "bridge",
            Kind::Ring => "ring",
            Kind::Mend => "mend",
            Kind::DropConnection => "drop-connection",
            Kind::ClockJump => "clock-jump",
            Kind::ClockRate => "clock-rate",
            Kind::SlowDisk => "slow-disk",
            Kind::SyncError => "sync-error",
            Kind::DiskFull => "disk-full",
            Kind::FlipBit => "flip-bit",
            Kind::Misdirect => "misdirect",
            Kind::Wipe => "wipe",
            Kind::DatabaseDown => "database-down",
            Kind::DatabaseStall => "database-stall",
            Kind::DatabaseCut => "database-cut",
            Kind::DatabaseClock => "database-clock",
        }
    }

    // Usual mean distance between two faults of this kind, and of how many seeds in 1000 have it at all.
    fn usual(self) -> (u64, u32) {
        match self {
            Kind::Crash => (8_000, 600),
            Kind::CrashLeader => (6_000, 500),
            Kind::CrashAll => (25_000, 200),
            Kind::Pause => (10_000, 400),
            Kind::CutOneWay => (8_000, 300),
            Kind::CutWire => (8_000, 300),
            Kind::Isolate => (12_000, 300),
            Kind::DeafLeader => (15_000, 150),
            Kind::Split => (12_000, 300),
            Kind::Bridge => (15_000, 200),
            Kind::Ring => (20_000, 100),
            Kind::Mend => (5_000, 1_000),
            Kind::DropConnection => (5_000, 400),
            Kind::ClockJump => (10_000, 300),
            Kind::ClockRate => (15_000, 300),
            Kind::SlowDisk => (12_000, 300),
            Kind::SyncError => (20_000, 200),
            Kind::DiskFull => (25_000, 150),
            Kind::FlipBit => (15_000, 250),
            Kind::Misdirect => (25_000, 150),
            Kind::Wipe => (30_000, 150),
            Kind::DatabaseDown => (12_000, 500),
            Kind::DatabaseStall => (10_000, 500),
            Kind::DatabaseCut => (6_000, 500),
            Kind::DatabaseClock => (15_000, 400),
        }
    }
}

/// The faults of one seed.
#[derive(Debug, Clone)]
pub struct FaultPlan {
    /// Wires.
    pub wires: WireFaults,
    /// Mean distance in ms between faults of each kind that is on.
    pub kinds: Vec<(Kind, u64)>,
    /// How long a killed process usually stays down.
    pub outage_ms_max: u64,
    /// How long a pause lasts at most.
    pub pause_ms_max: u64,
    /// Mean distance between membership changes; 0 means none.
    pub membership_ms: u64,
    /// Mean distance between leadership transfers; 0 means none.
    pub transfer_ms: u64,
    /// Claims after which a worker dies, of 1000.
    pub worker_crash_permille: u32,
    /// Claims on which a worker stalls past the claim's lifetime, of 1000.
    pub worker_stall_permille: u32,
    /// Claims that a worker fails, of 1000.
    pub worker_fail_permille: u32,
}

impl FaultPlan {
    /// No faults at all.
    pub fn none() -> Self {
        Self {
            wires: WireFaults::none(),
            kinds: Vec::new(),
            outage_ms_max: 1_000,
            pause_ms_max: 1_000,
            membership_ms: 0,
            transfer_ms: 0,
            worker_crash_permille: 0,
            worker_stall_permille: 0,
            worker_fail_permille: 0,
        }
    }

    /// Draws the faults of a seed; a lone node gets none that only a cluster can survive.
    pub fn draw(rng: &mut Rng, nodes: u64) -> Self {
        let mut kinds = Vec::new();
        for kind in Kind::ALL {
            let (usual_ms, permille) = kind.usual();
            // Drawn in any case, so that adding a node does not move every later draw.
            let on = chance(rng, permille);
            let mean_ms = usual_ms * log_uniform(rng, 1, 8) / 2;
            let needs_peers = matches!(kind, Kind::FlipBit | Kind::Misdirect | Kind::Wipe);
            if on && !(needs_peers && nodes == 1) {
                kinds.push((kind, mean_ms));
            }
        }
        Self {
            wires: Self::draw_wires(rng),
            kinds,
            outage_ms_max: log_uniform(rng, 200, 20_000),
            pause_ms_max: log_uniform(rng, 200, 15_000),
            membership_ms: if chance(rng, 350) && nodes > 1 { rng.u64(4_000..=30_000) } else { 0 },
            transfer_ms: if chance(rng, 350) { rng.u64(2_000..=20_000) } else { 0 },
            worker_crash_permille: if chance(rng, 600) { rng.u32(0..=150) } else { 0 },
            worker_stall_permille: if chance(rng, 600) { rng.u32(0..=150) } else { 0 },
            worker_fail_permille: if chance(rng, 700) { rng.u32(0..=250) } else { 0 },
        }
    }

    /// Adds the faults of a database, and takes those away that need logs on the nodes' disks.
    pub fn draw_database(&mut self, rng: &mut Rng) {
        let needs_log = |kind: Kind| matches!(kind, Kind::FlipBit | Kind::Misdirect | Kind::Wipe);
        self.kinds.retain(|(kind, _)| !needs_log(*kind));
        for kind in Kind::OF_DATABASE {
            let (usual_ms, permille) = kind.usual();
            let on = chance(rng, permille);
            let mean_ms = usual_ms * log_uniform(rng, 1, 8) / 2;
            if on {
                self.kinds.push((kind, mean_ms));
            }
        }
    }

    fn draw_wires(rng: &mut Rng) -> WireFaults {
        let delay_us_max = log_uniform(rng, 300, 60_000);
        WireFaults {
            loss_permille: if chance(rng, 450) { log_uniform(rng, 1, 300) as u32 } else { 0 },
            duplicate_permille: if chance(rng, 350) { log_uniform(rng, 1, 200) as u32 } else { 0 },
            reorder_permille: if chance(rng, 400) { log_uniform(rng, 1, 300) as u32 } else { 0 },
            late_permille: if chance(rng, 300) { log_uniform(rng, 1, 50) as u32 } else { 0 },
            late_ms_max: log_uniform(rng, 100, 5_000),
            delay_us_min: 50,
            delay_us_max,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_drawn_and_stays_in_bounds() {
        let mut rng = Rng::with_seed(9);
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..300 {
            let plan = FaultPlan::draw(&mut rng, 3);
            seen.extend(plan.kinds.iter().map(|(kind, _)| *kind));
            assert!(plan.wires.loss_permille <= 300);
            assert!(plan.wires.duplicate_permille <= 200);
            assert!(plan.wires.late_ms_max <= 5_000);
        }
        assert_eq!(seen.len(), Kind::ALL.len());
    }

    #[test]
    fn a_lone_node_keeps_its_disk() {
        let mut rng = Rng::with_seed(10);
        for _ in 0..100 {
            let plan = FaultPlan::draw(&mut rng, 1);
            let deadly = |kind: &Kind| matches!(kind, Kind::FlipBit | Kind::Misdirect | Kind::Wipe);
            assert!(!plan.kinds.iter().any(|(kind, _)| deadly(kind)));
        }
    }
}
